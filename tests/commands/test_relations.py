"""`relations`: a classifier of relations between sentences, and labels that it writes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.world import World

SENSES = {"but": "Comparison", "so": "Contingency", "and": None}  # of a sentence's first word


@pytest.fixture(autouse=True)
def annotated(world: World) -> None:
    rng = np.random.default_rng(2)
    lines = []
    for split in ["train"] * 20 + ["test"] * 5:
        opening = rng.choice(list(SENSES), 6).tolist()
        words = ["lamp", "it", "burns", "light"]
        sentences = [[word, *rng.choice(words, 4).tolist()] for word in opening]
        relations = [{"sense": own} if (own := SENSES[word]) else None for word in opening[1:]]
        one = {"sentences": sentences, "relations": [None, *relations], "split": split}
        lines.append(json.dumps(one))
    world.write("annotated.jsonl", lines)


def test_a_classifier_learns_and_labels_texts_and_files_beside_lists(world: World) -> None:
    found = world.ok("relations train annotated.jsonl --out model --format json -q").json
    assert found["labels"] == ["Comparison", "Contingency", "none"]
    test = found["splits"]["test"]
    assert (test["pairs"], test["accuracy"]) == (25, 1.0)
    senses, train = (
        [
            (relation or {"sense": "none"})["sense"]
            for one in map(json.loads, world.lines("annotated.jsonl"))
            if one["split"] == split
            for relation in one["relations"][1:]
        ]
        for split in ("test", "train")
    )
    majority = max({*train}, key=train.count)
    assert test["majority_class"] == pytest.approx(senses.count(majority) / 25)
    label = "relations label --model model text --out labels -q"
    world.write("text", ["so it burns", "but it is", "", "", "and it", "so light", "and it"])
    world.ok(label)
    expected = ["none", "Comparison", "", "", "none", "Contingency", "none"]
    assert world.lines("labels") == expected
    train_lm = "train-lm --train text --valid text --relations labels --valid-relations labels -q"
    world.ok(f"{train_lm} --model dclm-projection --embed 4 --hidden 4 --epochs 1 --out lm")
    world.write("text", ["so it burns", "but it is", "", "so light"])
    world.write("docs", ["a", "a", "b", "b"])
    world.ok(f"{label} --docs docs")
    assert world.lines("labels") == ["none", "Comparison", "none", "Contingency"]
    world.write("docs", ["a", "a", "b"])
    refused = world.run(f"{label} --docs docs").err
    assert "text: expected 3 lines, one for each line of docs, found 4; " in refused
    assert "majority" in world.ok("relations train annotated.jsonl --out again").out
