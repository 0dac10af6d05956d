"""Every row of the catalogue of faults has tests that exist, or a reason to have none."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "recipes" / "reliability")
    return import_module("fault_rows")


def test_each_row_is_held_or_says_why_not(rows: Any) -> None:
    held = set(rows.evidence())
    assert held | set(rows.NOT_APPLICABLE) | set(rows.OPEN) == set(range(1, 101))
    assert not held & (set(rows.NOT_APPLICABLE) | set(rows.OPEN))


def test_the_tests_that_are_named_exist(rows: Any) -> None:
    for tests in rows.evidence().values():
        for test in tests:
            if "::" in test:
                file, _, name = test.partition("::")
                text = (ROOT / "tests" / file).read_text(encoding="utf-8")
                assert re.search(rf"^def {name}\(", text, re.MULTILINE), test
            elif not test.startswith("check: "):
                assert rows.folders_of(test), test
