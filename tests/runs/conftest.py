"""Lists of four documents with candidates, weights for them, and what a run of theirs wrote."""

from __future__ import annotations

import pytest
from support.world import World

MODELS = ("rnnlm", "codclm", "ccdclm")  # of order 0, of order 1, unbounded
WEIGHTS = {"LM0": 0.5, "TM0": [0.25, 0.125], "lm": 1.5, "lmoov": -0.5}


@pytest.fixture
def drawn(world: World) -> World:
    """The world with drawn lists, a model of each name in a folder of that name, and weights."""
    world.draw()
    world.weights("w.json", WEIGHTS)
    for name in MODELS:
        world.model(name, name)
    return world
