"""Bilingual models whose source side begins with a model of source text, by the command line."""

from pathlib import Path

import pytest
import torch
from support.files import write

from lm.checkpoint import load_model
from rerank.cli import run

SIZES = "--embed 5 --hidden 6 --streams 2 --epochs 1 -q"
SOURCE_TEXT = ["eins zwei", "drei", "", "zwei zwei drei vier", "eins"] * 4
SOURCE = ["eins", "zwei neu", "", "drei vier"] * 4
TARGET = ["one", "two new", "", "three four"] * 4


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder: source text alone, and a text with its source."""
    monkeypatch.chdir(tmp_path)
    write("mono.src", SOURCE_TEXT)
    write("train.src", SOURCE)
    write("train.txt", TARGET)


def train(model: str, text: str, out: str, *options: str) -> int:
    files = ["--train", text, "--valid", text, "--out", out]
    return run(["train-lm", "--model", model, *files, *SIZES.split(), *options])


def bilingual(model: str, out: str, *options: str) -> int:
    given = ["--source", "train.src", "--valid-source", "train.src"]
    return train(model, "train.txt", out, *given, *options)


@pytest.mark.parametrize("name", ["dclm-bilingual", "dclm-bilingual-decoupled", "dclm-right"])
@pytest.mark.parametrize("encoder", ["cnn", "rnn"])
def test_the_source_side_begins_with_the_weights_and_words_of_the_model(
    name: str, encoder: str
) -> None:
    """At a learning rate of almost 0 the saved model is the one that training began with."""
    assert train("dclm", "mono.src", "mono", "--encoder", encoder) == 0
    still = ["--source-lm", "mono", "--learning-rate", "1e-20", "--encoder", encoder]
    assert bilingual(name, "both", *still) == 0
    source, both = load_model(Path("mono")), load_model(Path("both"))
    assert both.side["source"].words == source.vocabulary.words
    level = both.model.context.source_level
    assert level is not None
    given = source.model.context.state_dict()
    assert level.state_dict().keys() == given.keys()
    for key, tensor in level.state_dict().items():
        torch.testing.assert_close(tensor, given[key], rtol=0, atol=0)
    assert both.about["source_lm"] == source.digest
    assert not torch.equal(both.model.embedding.weight[:4], source.model.embedding.weight[:4])


@pytest.mark.parametrize(
    ("source", "options", "fault"),
    [
        ("dclm", ["--hidden", "7"], "train both with the same --embed, --hidden"),
        ("dclm", ["--encoder", "bag"], "encoder.filters.bias: expected none, found (6,)"),
        ("dclm", ["--source-vocab", "9"], "leave out --source-vocab"),
        ("codclm", [], "expected a dclm that reads sentences from left to right, found codclm"),
        ("dclm", ["--reverse-documents"], "read documents in different directions"),
    ],
)
def test_models_that_do_not_fit_are_refused(
    source: str, options: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(source, "mono.src", "mono") == 0
    capsys.readouterr()
    assert bilingual("dclm-bilingual-decoupled", "both", "--source-lm", "mono", *options) == 2
    assert fault in capsys.readouterr().err
    assert not Path("both").exists()


def test_models_without_source_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert train("dclm", "mono.src", "mono") == 0
    capsys.readouterr()
    assert train("dclm", "train.txt", "other", "--source-lm", "mono") == 2
    assert "--source-lm mono: dclm reads no source sentences" in capsys.readouterr().err
