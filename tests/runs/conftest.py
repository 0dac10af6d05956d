"""Lists of four documents with candidates, weights for them, and what a run of theirs wrote."""

import pytest
from support.runs import MODELS
from support.world import World


@pytest.fixture
def drawn(world: World) -> World:
    """The world with drawn lists, a model of each name in a folder of that name, and weights."""
    world.draw()
    world.weights("w.json", {"LM0": 0.5, "TM0": [0.25, 0.125], "lm": 1.5, "lmoov": -0.5})
    for name in MODELS:
        world.model(name, name)
    return world
