"""`explain`, and `decode --explain`, of decodings of made-up lists."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.files import read, write_weights

from rerank.cli import run
from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline import Lists, Reports, decode, explain
from rerank.pipeline.explanation import split_place

WEIGHTS = {"LM0": [0.125], "TM0": [0.0, 0.0], "lm": [4.0], "lmoov": [-0.5]}


@pytest.fixture(autouse=True)
def here(tuning_lists: Path) -> None:
    write_weights("w.json", WEIGHTS)


def decoded(folder: Path, **options: object) -> list[str]:
    given = Lists("dev.kbest", lms=(("lm", folder),), **{"docs": "dev.docs", **options})  # type: ignore[arg-type]
    decode(given, "w.json", "out.txt", reports=Reports(trace="out.trace"), notices=Notices())
    return read("out.txt")


def test_counts_are_those_of_the_output(model_folders: Mapping[str, Path]) -> None:
    first, chosen = decoded(model_folders["drnnlm"], top=1), decoded(model_folders["drnnlm"])
    found = explain("out.trace")
    changed = [t for t, (a, b) in enumerate(zip(first, chosen, strict=True)) if a != b]
    assert found.changed == len(changed) > 0
    assert sum(one.most for one in found.features.values()) == len(changed)
    name = read("dev.docs")[changed[0]]
    of_document = explain("out.trace", name)
    own = [t for t in changed if read("dev.docs")[t] == name]
    assert [choice.texts["chosen"] for _, choice in of_document.shown] == [chosen[t] for t in own]


def test_places_are_documents_or_sentences_of_them() -> None:
    names = ["a", "b:7", "b"]
    assert split_place("a", names, "t") == ("a", None)
    assert split_place("b:7", names, "t") == ("b:7", None)
    assert split_place("b:12", names, "t") == ("b", 12)
    assert split_place("b:7:0", names, "t") == ("b:7", 0)
    for place in ("c", "c:1", "a:", "a:-1", "a:x", "a:12345678901"):
        with pytest.raises(UsageError, match="expected DOC or DOC:SENT"):
            split_place(place, names, "t")


def test_the_commands_print_the_same_of_a_sentence(
    model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["decode", "--kbest", "dev.kbest", "--docs", "dev.docs", "--weights", "w.json"]
    command += ["--lm", f"lm={model_folders['codclm']}", "--out", "out.txt"]
    assert run([*command, "--trace", "out.trace", "--explain", "x:1"]) == 0
    said = capsys.readouterr().err
    assert run(["explain", "out.trace", "x:1", "--quiet"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("document x, sentence 1\n  before ")
    assert text in said
    assert run([*command, "--explain", "x:1", "--quiet"]) == 0
    assert capsys.readouterr().err == text  # a result, which --quiet leaves
    assert run(["explain", "out.trace", "--format", "json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == 4  # the fifth has no candidates


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (["explain", "out.trace", "x:99"], 2, "has no sentence 99 of 'x'"),
        (["explain", "out.trace", "q"], 2, "expected DOC or DOC:SENT"),
        (["explain", "dev.ref"], 3, "dev.ref:1: expected a line of a trace"),
        (["decode", "--explain", "x:5"], 2, "'x' has 5 sentences"),
        (["decode", "--explain", "q"], 2, "expected DOC or DOC:SENT"),
    ],
)
def test_places_that_are_not_there_are_refused(
    command: list[str],
    code: int,
    message: str,
    model_folders: Mapping[str, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:
    decoded(model_folders["codclm"])
    if command[0] == "decode":
        command = [*command, "--kbest", "dev.kbest", "--docs", "dev.docs", "--weights", "w.json"]
        command += ["--lm", f"lm={model_folders['codclm']}", "--out", "not.txt"]
    capsys.readouterr()
    assert run(command) == code
    assert message in capsys.readouterr().err
    assert not Path("not.txt").exists()
