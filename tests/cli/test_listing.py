"""`rerank list` for people and for machines, without loading what it lists."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rerank.cli import run
from rerank.cli.listing import list_group
from rerank.listing import Sizes, listing, model_listing

kinds = pytest.mark.parametrize("kind", sorted(list_group.commands))


@kinds
def test_the_help_of_a_list_has_examples_that_run(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", kind, "--help"]) == 0
    examples = capsys.readouterr().out.partition("Example:\n")[2].partition("\n\n")[0]
    assert len(examples.splitlines()) == 2
    for example in examples.splitlines():
        words = shlex.split(example)
        assert words[:3] == ["rerank", "list", kind]
        assert run(words[1:]) == 0


@kinds
def test_json_is_an_array_of_objects_with_names(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", kind, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows == [*(model_listing(Sizes()) if kind == "models" else listing(kind)).rows]
    assert run(["list", kind]) == 0
    text = capsys.readouterr().out
    assert all(row["name"] in text for row in rows)


@kinds
def test_a_list_loads_nothing_heavy_unless_parameters_are_counted(kind: str) -> None:
    rows = f"from rerank.listing import listing; listing('{kind}')"
    whole = f"from rerank.cli import run; run(['list', '{kind}'])"
    program = f"{rows if kind == 'models' else whole}\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {"torch", "numba", "scipy"} & {*done.stdout.splitlines()[-1].split()} == set()
