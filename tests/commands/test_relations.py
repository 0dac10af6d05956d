"""`relations`: labels beside lists, and what a training with them takes.

Accuracies and labels of texts have their origins in `tests/golden`.
"""

import numpy as np
from support.golden import annotated
from support.world import World


def test_labels_stand_beside_texts_and_lists(world: World) -> None:
    rng = np.random.default_rng(2)
    world.write("annotated.jsonl", [annotated(rng, n) for n in range(25)])
    world.ok("relations train annotated.jsonl --out model -q")
    label = "relations label --model model text --out labels -q"
    world.write("text", ["so it burns", "but it is", "", "", "and it", "so light", "and it"])
    world.ok(label)
    train_lm = "train-lm --train text --valid text --relations labels --valid-relations labels -q"
    world.ok(f"{train_lm} --model dclm-projection --embed 4 --hidden 4 --epochs 1 --out lm")
    world.write("text", ["so it burns", "but it is", "", "so light"])
    world.write("docs", ["a", "a", "b", "b"])
    world.ok(f"{label} --docs docs")
    assert world.lines("labels") == ["none", "Comparison", "none", "Contingency"]
    world.write("docs", ["a", "a", "b"])
    refused = world.run(f"{label} --docs docs").err
    assert "text: expected 3 lines, one for each line of docs, found 4; " in refused
