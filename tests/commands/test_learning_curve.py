"""`rerank train-lm --curve`: a line for every validation, of the figures that training reports."""

import re
import signal

import numpy as np
import pytest
from support.forked import stopped
from support.texts import TRAIN, with_texts
from support.world import World

COLUMNS = ["update", "epoch", "seconds", "training_nats", "valid_perplexity", "rate", "stage"]
TWICE = f"{TRAIN} --model rnnlm --epochs 2 --validations 2"


@pytest.fixture
def texts(world: World) -> World:
    with_texts(world)
    return world


def rows(world: World, name: str) -> list[dict[str, str]]:
    header, *lines = [line.split("\t") for line in world.lines(name)]
    assert header == COLUMNS
    return [dict(zip(COLUMNS, line, strict=True)) for line in lines]


def test_a_curve_has_the_perplexities_that_training_reports(texts: World) -> None:
    """A file that is there is replaced; seconds never fall."""
    texts.write("curve.tsv", "anything\n")
    run = texts.ok(TWICE, "--curve", "curve.tsv")
    own = rows(texts, "curve.tsv")
    shown = re.findall(r"perplexity ([\d.]+)", run.err)
    assert len(own) == 4
    for row in own:
        assert any(abs(float(row["valid_perplexity"]) - float(one)) < 0.06 for one in shown)
    epochs = [float(row["epoch"]) for row in own]
    assert epochs == sorted(epochs)
    assert epochs[-1] == 2
    seconds = [float(row["seconds"]) for row in own]
    assert seconds == sorted(seconds)
    updates = [int(row["update"]) for row in own]
    assert updates == sorted({*updates})
    assert {row["stage"] for row in own} == {"words"}
    # of ten words and the end of a sentence: between perfect prediction and worse than uniform
    assert all(0 < float(row["training_nats"]) < 2 * np.log(12) for row in own)


def test_a_resumed_training_keeps_the_lines_up_to_its_state(texts: World) -> None:
    """Later lines are of updates that are made again."""
    command = f"{TWICE} --epochs 4 --curve curve.tsv"
    with stopped(signal.SIGINT, 12):  # a write of the second validation
        run = texts.run(command)
    assert "stopped, state saved" in run.err
    before = texts.lines("curve.tsv")
    texts.write("curve.tsv", [*before, "99999\t9\t9\t9\t9\t9\twords"])
    texts.write("other.tsv", "update\tsomething\n")
    refused = texts.refused(command.replace("curve.tsv", "other.tsv"), "--resume", exit=3)
    assert "other.tsv:1: expected the learning curve of the interrupted run" in refused
    assert texts.text("other.tsv") == "update\tsomething\n"
    texts.ok(command, "--resume")
    assert texts.lines("curve.tsv")[: len(before)] == before
    updates = [int(row["update"]) for row in rows(texts, "curve.tsv")]
    assert updates == sorted({*updates})
    assert len(updates) == 8
