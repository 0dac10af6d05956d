"""The checks of `recipes/reliability/supply_chain.py`, on made-up metadata and wheels."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from email.message import Message
from importlib import import_module, metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("packaging.licenses")  # of packaging 24.2 and later

SOURCES = ["lm/__init__.py", "decoders/__init__.py", "rerank/a.py", "rerank/w.ini", "tests/t.py"]
INFO = "rerank_mt-1.dist-info"


@pytest.fixture
def chain(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "recipes" / "reliability")
    return import_module("supply_chain")


def fields(*pairs: tuple[str, str]) -> Message:
    message = Message()
    for name, value in pairs:
        message[name] = value
    return message


def wheel(folder: Path, **more: bytes) -> Path:
    """A wheel of SOURCES, with further files."""
    members: Mapping[str, bytes] = {
        **{name: b"x = 1\n" for name in SOURCES if not name.startswith("tests")},
        **{f"{INFO}/{name}": b"" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE")},
        **more,
    }
    with zipfile.ZipFile(folder / "one.whl", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return folder / "one.whl"


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("mit and bsd-3-clause", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("GPL-3.0-only", False),
        ("GPL-3.0-only WITH GCC-exception-3.1", False),
        ("MIT AND GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("GPL-2.0-only OR LGPL-3.0-only", False),
        ("MIT AND (GPL-3.0-only OR Apache-2.0)", True),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("MIT OR Apache-2.0 AND GPL-3.0-only", True),  # AND binds first
        ("((GPL-3.0-only))", False),
        ("Do what you like", False),
        ("MIT AND", False),
        ("", False),
    ],
)
def test_expressions_are_met_by_licences_of_the_list(
    chain: Any, expression: str, allowed: bool
) -> None:
    assert chain.is_allowed(expression) is allowed


@pytest.mark.parametrize(
    ("pairs", "stated"),
    [
        ([("License", "GPL"), ("License-Expression", "MIT")], ("MIT", "License-Expression")),
        ([("License", "BSD")], ("LicenseRef-BSD", "License")),
        (
            [
                ("License", "Copyright (c) nobody\nAll rights"),
                ("Classifier", "Topic :: Software Development"),
                ("Classifier", "License :: OSI Approved :: BSD License"),
                ("Classifier", "License :: OSI Approved :: MIT License"),
            ],
            ("LicenseRef-BSD AND MIT", "Classifier"),
        ),
        ([("Classifier", "License :: OSI Approved")], ("OSI Approved", "Classifier")),
        ([("License", "Copyright (c) nobody\nAll")], ("Copyright (c) nobody", "License")),
        ([], ("", "")),
    ],
    ids=["expression", "known-name", "text-and-classifiers", "vague", "only-a-text", "none"],
)
def test_the_licence_is_that_of_the_most_exact_field(
    chain: Any, pairs: list[tuple[str, str]], stated: tuple[str, str]
) -> None:
    assert chain.stated_licence(fields(*pairs)) == stated


def test_packages_are_followed_without_extras_but_with_those_that_are_asked_for(chain: Any) -> None:
    needs = {
        "One": ["two[fast]>=1", "test-tool; extra == 'test'", "old; python_version < '3'"],
        "two": ["three; extra == 'fast'", "four; extra == 'slow'", "one"],
        "three": ["absent_name"],
    }

    def find(name: str) -> Any:
        if name not in needs:
            raise metadata.PackageNotFoundError(name)
        return SimpleNamespace(requires=needs[name])

    packages = chain.run_time_packages(["One>=2"], find)
    assert list(packages) == ["absent-name", "one", "three", "two"]
    assert [name for name, found in packages.items() if found is None] == ["absent-name"]


def test_a_licence_off_the_list_is_found(
    chain: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = SimpleNamespace(version="1", metadata=fields(("License", "GPL-3.0-only")))
    monkeypatch.setattr(chain, "run_time_packages", lambda _: {"good": None, "bad": package})
    assert not chain.check_licences()
    assert capsys.readouterr().out.endswith("2 packages, 2 without an allowed licence\n")


def test_a_wheel_of_the_packages_and_their_data_has_no_fault(chain: Any, tmp_path: Path) -> None:
    assert chain.content_faults(wheel(tmp_path), SOURCES) == []


@pytest.mark.parametrize(
    ("member", "content", "fault"),
    [
        ("tests/t.py", b"", "unexpected: tests/t.py"),
        ("recipes/r.py", b"", "unexpected: recipes/r.py"),
        ("rerank/left.py", b"", "unexpected: rerank/left.py"),
        (f"{INFO}/notes.txt", b"", f"unexpected metadata: {INFO}/notes.txt"),
        ("lm/test_a.py", b"", "a test: lm/test_a.py"),
        ("lm/tests/a.py", b"", "a test: lm/tests/a.py"),
        ("lm/a.pkl", b"", "neither a module nor known package data: lm/a.pkl"),
        ("lm/a.ini", b"\x80\x04K\x01.", "a pickle: lm/a.ini"),
    ],
)
def test_other_members_of_a_wheel_are_listed(
    chain: Any, tmp_path: Path, member: str, content: bytes, fault: str
) -> None:
    sources = SOURCES if fault.startswith("unexpected") else [*SOURCES, member]
    assert chain.content_faults(wheel(tmp_path, **{member: content}), sources) == [fault]


def test_a_source_that_a_wheel_lacks_is_listed(chain: Any, tmp_path: Path) -> None:
    assert chain.content_faults(wheel(tmp_path), [*SOURCES, "rerank/b.py"]) == [
        "missing: rerank/b.py"
    ]
