"""`rerank lm-eval` on the shell: help, examples, formats, exit codes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.cli import examples
from support.files import write

from rerank import pipeline
from rerank.cli import run
from rerank.cli.lm_eval import lm_eval
from rerank.report.coherence import CoherenceReport
from rerank.report.contrastive import ContrastiveReport
from rerank.report.next_sentence import NextSentenceReport

ITEM = {"context": ["the lamp is lit"], "right": "it burns", "wrong": "she burns"}
TEXT = ("the lamp is lit", "it burns", "she gives light", "", "it is lit", "no one burns")
every_experiment = pytest.mark.parametrize("name", sorted(lm_eval.commands))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    items = [{**ITEM, "context": [f"the lamp {i}"]} for i in "abc"]
    text = "".join(f"{json.dumps(item)}\n" for item in items)
    Path("set.jsonl").write_text(text, encoding="utf-8")
    write("text", TEXT)
    return tmp_path


@every_experiment
def test_the_help_of_an_experiment_has_an_example_of_options_that_it_has(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lm-eval", name, "--help"]) == 0
    (words,) = examples(capsys.readouterr().out)
    assert words[:3] == ["rerank", "lm-eval", name]
    known = {opt for option in lm_eval.commands[name].params for opt in option.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_every_option_arrives_at_the_pipeline(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}

    def record(lms: object, files: object, **named: Any) -> ContrastiveReport:
        seen.update(named, lms=lms, files=files)
        return ContrastiveReport((), 0, 1)

    monkeypatch.setattr(pipeline, "contrastive", record)
    options = "--lm a --lm b --seed 7 --device cuda:1 --threads 3 --strict --format json one two"
    assert run(["lm-eval", "contrastive", *options.split()]) == 0
    assert seen.pop("notices").strict is True
    assert seen == {
        "lms": (Path("a"), Path("b")),
        "files": ("one", "two"),
        "seed": 7,
        "device": "cuda:1",
        "threads": 3,
    }
    assert json.loads(capsys.readouterr().out)["models"] == []


def test_results_are_text_json_or_tsv(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lm = str(model_folders["codclm"])
    command = ["lm-eval", "contrastive", "--lm", lm, "set.jsonl", "--device", "cpu", "-q"]
    assert run(command) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.split()[:3] == ["model", "group", "items"]
    assert run([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["items"], found["models"][0]["lm"]) == (1, 3, lm)
    assert run([*command, "--format", "tsv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[3] for line in lines] == ["condition", "context", "null", "other"]


@pytest.mark.parametrize("name", ["coherence", "ordering"])
def test_every_option_of_coherence_arrives_at_the_pipeline(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}

    def record(lms: object, text: object, **named: Any) -> CoherenceReport:
        seen.update(named, lms=lms, text=text)
        return CoherenceReport((), (), (), 0, 7, 3)

    monkeypatch.setattr(pipeline, "coherence", record)
    options = "--lm one=a/b --lm c/d=e --permutations 7 --seed 3 --documents equals --device cuda:1"
    assert run(["lm-eval", name, *options.split(), *["--threads", "3", "--strict", "t"]]) == 0
    assert seen.pop("notices").strict is True
    assert seen == {
        "lms": (("one", Path("a/b")), ("c/d=e", Path("c/d=e"))),
        "text": "t",
        "documents": "equals",
        "permutations": 7,
        "seed": 3,
        "device": "cuda:1",
        "threads": 3,
    }


def test_coherence_is_text_or_json(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    named = [f"{name}={model_folders[name]}" for name in ("codclm", "rnnlm")]
    command = ["lm-eval", "coherence", "--lm", named[0], "--lm", named[1], "text", "-q"]
    assert run([*command, "--device", "cpu"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.split()[:4] == ["model", "accuracy", "ties", "sets"]
    assert "6 pairs of 2 documents" in captured.out
    assert run([*command, "--device", "cpu", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [model["lm"] for model in found["models"]] == ["codclm", "rnnlm"]
    assert (found["models"][1]["accuracy"], found["models"][1]["ties"]) == (0.5, 6)
    assert [own["permutations"] for own in found["documents"]] == [5, 1]


def test_ordering_is_text_or_json_of_the_pairs_of_coherence(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lms = [word for name in ("codclm", "rnnlm") for word in ("--lm", str(model_folders[name]))]
    options = [*lms, "text", "-q", "--device", "cpu"]
    assert run(["lm-eval", "ordering", *options]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.split()[:4] == ["model", "right", "accuracy", "ties"]
    assert "3 of 6" in captured.out
    found = {}
    for name in ("ordering", "coherence"):
        assert run(["lm-eval", name, *options, "--format", "json"]) == 0
        found[name] = json.loads(capsys.readouterr().out)
    assert found["ordering"]["documents"] == found["coherence"]["documents"]
    for own, other in zip(*(found[name]["models"] for name in found), strict=True):
        assert own == {name: other[name] for name in own}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("text", 2, "Missing option '--lm'"),
        ("--lm m", 2, "Missing argument 'TEXT'"),
        ("--lm m= text", 2, "expected NAME=DIR or DIR"),
        ("--lm a=m --lm a=n text", 2, "--lm a: given 2 times"),
        ("--lm m text --permutations 0", 2, "0 is not in the range"),
        ("--lm m text", 3, "m: expected a folder made by `rerank train-lm`, found none"),
        ("--lm m text --device cuda:99", 2, "--device cuda:99"),
    ],
)
def test_faults_of_coherence_end_in_one_line_and_the_exit_code(
    words: str, code: int, told: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lm-eval", "coherence", *words.split()]) == code
    assert told in capsys.readouterr().err


def test_every_option_of_next_sentence_arrives_at_the_pipeline(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}

    def record(lms: object, text: object, settings: object, **named: Any) -> NextSentenceReport:
        seen.update(named, lms=lms, text=text, settings=settings)
        return NextSentenceReport((), (), 0, 9, 2, "consecutive", 0, 3)

    monkeypatch.setattr(pipeline, "next_sentence", record)
    options = "--lm one=a/b --block 9 --context 2 --candidates consecutive --blocks 8 --seed 3"
    options += " --errors e.jsonl --topics t.topics --documents paragraphs --device cuda:1"
    options += " --threads 3 --strict t"
    assert run(["lm-eval", "next-sentence", *options.split()]) == 0
    assert seen.pop("notices").strict is True
    assert seen == {
        "lms": (("one", Path("a/b")),),
        "text": "t",
        "settings": pipeline.BlockSettings(9, 2, "consecutive", 8, 3),
        "errors": "e.jsonl",
        "topics": "t.topics",
        "documents": "paragraphs",
        "device": "cuda:1",
        "threads": 3,
    }


def test_next_sentence_is_text_or_json(
    here: Path, model_folders: Mapping[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    named = [f"{name}={model_folders[name]}" for name in ("codclm", "rnnlm")]
    command = ["lm-eval", "next-sentence", "--lm", named[0], "--lm", named[1], "text", "-q"]
    command += ["--block", "2", "--context", "1", "--device", "cpu"]
    assert run([*command, "--errors", "wrong.jsonl"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.split()[:4] == ["model", "eq.", "4", "log"]
    lines = Path("wrong.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["lm"] for line in lines} <= {"codclm", "rnnlm"}
    assert run([*command, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [model["lm"] for model in found["models"]] == ["codclm", "rnnlm"]
    assert found["models"][1]["accuracies"]["normalised"]["accuracy"] == found["chance"] == 0.5


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("text", 2, "Missing option '--lm'"),
        ("--lm m text --block 1", 2, "1 is not in the range"),
        ("--lm m text --context 0", 2, "0 is not in the range"),
        ("--lm m text --candidates all", 2, "'all' is not one of"),
        ("--lm a=m --lm a=n text", 2, "--lm a: given 2 times"),
        ("--lm m text --errors text", 2, "output text is also the input text"),
        ("--lm m text", 3, "m: expected a folder made by `rerank train-lm`, found none"),
    ],
)
def test_faults_of_next_sentence_end_in_one_line_and_the_exit_code(
    words: str, code: int, told: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["lm-eval", "next-sentence", *words.split()]) == code
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("set.jsonl", 2, "Missing option '--lm'"),
        ("--lm m", 2, "Missing argument 'FILE...'"),
        ("--lm m set.jsonl --seed -1", 2, "-1 is not in the range"),
        ("--lm m none.jsonl", 2, "no file none.jsonl"),
        ("--lm m - -", 2, "only one input can be -"),
        ("--lm m set.jsonl", 3, "m: expected a folder made by `rerank train-lm`, found none"),
        ("--lm m wrong.jsonl", 3, "wrong.jsonl:1: expected the field 'right', found none; a line"),
        ("--lm m set.jsonl --device cuda:99", 2, "--device cuda:99"),
    ],
)
def test_faults_end_in_one_line_and_the_exit_code(
    words: str, code: int, told: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong.jsonl").write_text('{"context": []}\n', encoding="utf-8")
    assert run(["lm-eval", "contrastive", *words.split()]) == code
    assert told in capsys.readouterr().err
