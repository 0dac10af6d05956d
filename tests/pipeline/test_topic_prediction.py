"""Predictors of topics through the command line, from topics learned to topics predicted."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files import read, write

from rerank.cli import cli, run

WORDS = (["lamp", "light", "oil", "wick"], ["boat", "oar", "sail", "mast"])
TRAIN = "topics train --train text --topics labels --valid text --valid-topics labels -q"
SMALL = f"{TRAIN} --embed 4 --hidden 6 --epochs 2 --streams 4 --out model"


def write_text(name: str, documents: int, seed: int) -> None:
    """Sentences of two topics in turns, from either one on, and the labels of their topics."""
    rng = np.random.default_rng(seed)
    lines, labels = [], []
    for n in range(documents):
        for i in range(4):
            lines.append(" ".join(rng.choice(WORDS[(n + i) % 2], 5).tolist()))
            labels.append("ab"[(n + i) % 2])
        lines.append("")
        labels.append("")
    write(name, lines)
    write("labels" if name == "text" else f"{name}.labels", labels)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a training text and a test text."""
    monkeypatch.chdir(tmp_path)
    write_text("text", 60, 1)
    write_text("test", 10, 2)
    return tmp_path


def evaluated(capsys: pytest.CaptureFixture[str], options: str = "") -> dict[str, Any]:
    capsys.readouterr()
    labels = "" if "--topics" in options else "--topics test.labels"
    command = f"lm-eval topics --model model test {labels} --format json -q {options}"
    assert run(command.split()) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_from_topics_learned_to_topics_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(3)  # to learn from: documents of one topic each
    for_topics = [[" ".join(rng.choice(WORDS[n % 2], 5).tolist())] * 4 + [""] for n in range(60)]
    write("plain", [line for own in for_topics for line in own])
    assert run(["topics", "learn", "plain", "--topics-number", "2", "--out", "topics", "-q"]) == 0
    for name in ("text", "test"):
        label = f"topics label --model topics {name} --out {name}.topics -q"
        assert run(label.split()) == 0
    assert set(zip(read("labels"), read("text.topics"), strict=True)) in (
        {("a", "1"), ("b", "2"), ("", "")},
        {("a", "2"), ("b", "1"), ("", "")},
    )
    command = "topics train --train text --topics text.topics --valid test"
    command += " --valid-topics test.topics -q --embed 8 --hidden 12 --epochs 8 --streams 4"
    assert run(f"{command} --learning-rate 0.03 --dropout 0 --out model".split()) == 0
    found = evaluated(capsys, "--topics test.topics")
    assert found["predictions"] == 30
    assert found["topic_predictor"]["accuracy"] == 1.0
    assert found["topic_predictor"]["perplexity"] < 1.3
    assert found["bigram_of_topics"]["accuracy"] == 1.0
    assert found["topic_of_the_sentence_before"] == {"perplexity": None, "accuracy": 0.0}
    assert 0.4 < found["most_frequent_topic"]["accuracy"] < 0.6


@pytest.mark.parametrize(
    "options",
    [
        "--inputs words",
        "--inputs topics --architecture rolled-up",
        "--inputs words+thought --architecture rolled-up --thought 2",
        "--target joint",
        "--given-next-words",
        "--architecture bow-dnn --inputs words --given-next-words",
        "--recurrence gru --layers 2 --schedule constant --optimiser adagrad",
    ],
)
def test_every_form_is_trained_and_evaluated(
    options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(f"{SMALL} {options}".split()) == 0
    found = evaluated(capsys)
    assert found["predictions"] == 30
    assert 1.0 <= found["topic_predictor"]["perplexity"] < 5.0
    suffixes = {path.suffix for path in Path("model").iterdir()}
    assert suffixes == {".json", ".safetensors"}
    manifest = json.loads(Path("model", "topic-prediction.json").read_text())
    assert manifest["about"]["data"].keys() == {"train", "valid", "topics", "valid_topics"}
    assert manifest["about"]["valid"].keys() == {"perplexity", "accuracy"}


def test_a_table_and_the_course_of_training_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(SMALL.replace(" -q", "").split()) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("unrolled (words+topics): ")
    assert lines[0].endswith("parameters; 2 topics, 180 predictions, 60 documents")
    assert [line.split()[:2] for line in lines[1:3]] == [["epoch", "1"], ["epoch", "2"]]
    assert lines[3] == "predictor written to model"
    assert run(["lm-eval", "topics", "--model", "model", "test", "--topics", "test.labels"]) == 0
    table = capsys.readouterr().out.splitlines()
    names = [line.rstrip("0123456789.% infte").strip() for line in table[2:6]]
    assert names[1:] == ["most frequent topic", "topic of the sentence befor", "bigram of topics"]
    assert table[-1] == "30 topics of next sentences"


def test_labels_that_training_has_not_are_unknown_topics(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(SMALL.split()) == 0
    write("test.labels", ["c" if label == "a" else label for label in read("test.labels")])
    capsys.readouterr()
    assert run(["lm-eval", "topics", "--model", "model", "test", "--topics", "test.labels"]) == 0
    message = capsys.readouterr().err
    assert "20 x topic that is not in the training text" in message


def fault_of(command: str, capsys: pytest.CaptureFixture[str], code: int) -> str:
    """The last line of a command's messages, which ends with an error."""
    capsys.readouterr()
    assert run(command.split()) == code
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--inputs topics --target joint", "inputs topics have no words for a joint target"),
        ("--inputs topics --given-next-words", "have no words of the next sentence"),
        ("--thought 3", "inputs words+topics have no thought vector of a size"),
        ("--architecture bow-dnn --recurrence lstm", "bow-dnn has no recurrence, found 'lstm'"),
        ("--architecture bow-dnn --inputs words+thought", "bow-dnn has no inputs 'thought'"),
        ("--vocab-min-count 9999", "no word is so frequent"),
    ],
)
def test_shapes_that_are_not_possible_are_usage_errors(
    options: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in fault_of(f"{SMALL} {options}", capsys, 2)
    assert not Path("model").exists()


def test_files_that_do_not_fit_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write("labels", read("labels")[:-2])
    fault = fault_of(SMALL, capsys, 3)
    assert "document 60 has 3 sentences, not 4" in fault
    write("labels", ["a b", *read("labels")[1:], "a", ""])
    assert "expected one label for each sentence" in fault_of(SMALL, capsys, 3)
    write("text", ["a", "", "b", ""])
    write("labels", ["1", "", "2", ""])
    fault = fault_of(SMALL, capsys, 3)
    assert fault.startswith("rerank: text: expected a document of two sentences or more")
    evaluation = "lm-eval topics --model model test --topics test.labels"
    assert "topic-prediction.json: cannot be read" in fault_of(evaluation, capsys, 3)
    assert not Path("model").exists()
    Path("model").mkdir()
    write("model/x", [])
    assert fault_of(SMALL, capsys, 2).endswith("model: not empty; name a new folder")


def test_a_training_that_diverges_leaves_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    diverging = f"{SMALL} --optimiser sgd --learning-rate 10 --clip 0 --weight-decay 10"
    fault = fault_of(f"{diverging} --epochs 60 --schedule constant", capsys, 1)
    assert "training diverged" in fault
    assert fault.endswith("lower --learning-rate")
    assert not Path("model").exists()


def test_options_have_the_defaults_of_the_recipe_and_of_the_settings() -> None:
    from lm.topics.prediction import PredictorConfig
    from lm.topics.prediction.training import PredictorSettings
    from rerank.pipeline import PredictorRecipe

    own = {field.name: field.default for field in fields(PredictorRecipe)}
    group: Any = cli.commands["topics"]
    context = group.commands["train"].make_context("train", SMALL.split()[2:])
    chosen = {"embed": 4, "hidden": 6, "epochs": 2, "streams": 4}
    found = {name: value for name, value in context.params.items() if name in own}
    assert found == own | chosen
    for record in (PredictorConfig, PredictorSettings):
        for field in fields(record):
            if field.name not in ("words", "labels"):
                assert own[field.name] == field.default, field.name
