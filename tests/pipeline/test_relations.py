"""Relations by a classifier: learned from annotated documents, written beside texts, and faults."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.files import read, write

from rerank.cli import run

OPENINGS = {"but": "Comparison", "so": "Contingency", "and": None}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: documents in which the first word of a sentence tells its relation."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    documents = [document(rng, split) for split in ["train"] * 20 + ["test"] * 5]
    write("annotated.jsonl", [json.dumps(one) for one in documents])
    return tmp_path


def document(rng: np.random.Generator, split: str) -> dict[str, Any]:
    words = ["lamp", "it", "burns", "light"]
    opening = rng.choice(list(OPENINGS), 6).tolist()
    sentences = [[word, *rng.choice(words, 4).tolist()] for word in opening]
    senses = [OPENINGS[word] for word in opening]
    relations = [None, *({"sense": own} if own else None for own in senses[1:])]
    return {"sentences": sentences, "relations": relations, "split": split}


def test_a_classifier_learns_and_labels_texts_for_training_and_lists(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        run(["relations", "train", "annotated.jsonl", "--out", "model", "--format", "json", "-q"])
        == 0
    )
    figures = json.loads(capsys.readouterr().out)
    assert figures["labels"] == ["Comparison", "Contingency", "none"]
    test = figures["splits"]["test"]
    assert (test["pairs"], test["accuracy"]) == (25, 1.0)
    assert 0.2 < test["majority_class"] < 0.7
    write("text", ["so it burns", "but it is", "", "", "and it", "so light", "and it"])
    assert run(["relations", "label", "--model", "model", "text", "--out", "labels", "-q"]) == 0
    assert read("labels") == ["none", "Comparison", "", "", "none", "Contingency", "none"]
    write("source", ["so it burns", "but it is", "", "so light"])
    write("docs", ["a", "a", "b", "b"])
    assert (
        run(
            [
                "relations",
                "label",
                "--model",
                "model",
                "source",
                "--docs",
                "docs",
                "--out",
                "labels",
                "-q",
            ]
        )
        == 0
    )
    assert read("labels") == ["none", "Comparison", "none", "Contingency"]


def test_labels_are_relations_to_train_on() -> None:
    assert run(["relations", "train", "annotated.jsonl", "--out", "model", "-q"]) == 0
    write("text", ["so it burns", "but it is", "", "and it", "so light", "", "it", "", "so"])
    assert run(["relations", "label", "--model", "model", "text", "--out", "labels", "-q"]) == 0
    train = "train-lm --train text --valid text --relations labels --valid-relations labels -q"
    train = f"{train} --model dclm-projection --embed 4 --hidden 4 --epochs 1 --out lm"
    assert run(train.split()) == 0


def fault_of(command: str, capsys: pytest.CaptureFixture[str], code: int) -> str:
    """The last line of a command's messages, which ends with an error."""
    capsys.readouterr()
    assert run(command.split()) == code
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    "line",
    [
        *('{"sentences": [["a"]]}', "[", "3"),
        '{"sentences": [["a"], ["b"]], "relations": [null]}',
        '{"sentences": [["a b"]], "relations": [null]}',
    ],
)
def test_annotated_documents_are_checked(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("annotated.jsonl", [*read("annotated.jsonl")[:2], line])
    fault = fault_of("relations train annotated.jsonl --out model", capsys, 3)
    assert "annotated.jsonl:3: expected a JSON object with sentences" in fault
    assert not Path("model").exists()


def test_other_faults_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    write("few.jsonl", ['{"sentences": [["a"], ["b"]], "relations": [null, null]}'])
    fault = fault_of("relations train few.jsonl --out model", capsys, 3)
    assert "with at least two relations" in fault
    write("text", ["a", "b"])
    assert "relations.json" in fault_of("relations label --model model text", capsys, 3)
    assert run(["relations", "train", "annotated.jsonl", "--out", "model", "-q"]) == 0
    fault = fault_of("relations train annotated.jsonl --out model", capsys, 2)
    assert fault.endswith("model: not empty; name a new folder")
    write("docs", ["a", "a", "b"])
    fault = fault_of("relations label --model model text --docs docs", capsys, 3)
    assert "text: expected 3 lines, one for each line of docs, found 2" in fault
