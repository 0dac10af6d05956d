"""A decoder and a model of another package, used from the shell by their entry points."""

import json
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import pytest
from support.files import write_weights

from rerank.cli import run

PACKAGE = '''
from decoders.batching import path_score
from decoders.problem import Path
from decoders.table import ANY, NONE, Decoder
from lm.composition import Composition


def last(problem):
    """The path of last candidates."""
    choices = tuple(length - 1 for length in problem.lengths)
    return Path(choices, path_score(problem, choices))


LAST = Decoder("last", "somebody:last", ANY, NONE, "O(T) scores", "somebody")
SUMS = Composition("lm.contexts.last_hidden:LastHidden", "lm.fusions:Output", "somebody", "?")
'''
LISTS = ["0 ||| a lamp is lit", "0 ||| lit", "1 ||| it gives", "1 ||| the lamp", "1 ||| the"]
TEXT = "a lamp is lit\nit gives light\n\nthe lamp\na lamp gives light\n"
POINTS = [
    EntryPoint("last", "somebody:LAST", "rerank.decoders"),
    EntryPoint("sums", "somebody:SUMS", "rerank.models"),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with lists and texts, and the package on the path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def found(**given: Any) -> Any:
        if not given.get("group", "").startswith("rerank."):
            return entry_points(**given)  # torch asks, too
        return [point for point in POINTS if point.group == given["group"]]

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    Path("somebody.py").write_text(PACKAGE)
    Path("dev.kbest").write_text("".join(f"{line} ||| LM0= -1 ||| -1\n" for line in LISTS))
    Path("text").write_text(TEXT)


DECODE = "decode --kbest dev.kbest --no-docs one --weights w.json --out out --summary s.json -q"


def decoded(options: str, weights: dict[str, list[float]]) -> str:
    """The 1-best output of `decode`."""
    write_weights("w.json", weights)
    assert run([*DECODE.split(), *options.split()]) == 0
    return Path("out").read_text()


def test_decode_searches_with_the_decoder_of_another_package() -> None:
    assert decoded("", {"LM0": [1]}) == "a lamp is lit\nit gives\n"
    assert decoded("--search last", {"LM0": [1]}) == "lit\nthe\n"
    summary = json.loads(Path("s.json").read_text())
    assert "rerank|search:last|exact:no" in summary["signature"]


def test_a_model_of_another_package_is_trained_and_scores() -> None:
    train = "train-lm --model sums --train text --valid text --out lm --embed 4 --hidden 4"
    assert run([*train.split(), "--epochs", "1", "-q"]) == 0
    assert decoded("--lm own=lm", {"LM0": [0], "own": [1], "ownoov": [0]}).count("\n") == 2
    assert "|ctx:1|lm:own=" in json.loads(Path("s.json").read_text())["signature"]
