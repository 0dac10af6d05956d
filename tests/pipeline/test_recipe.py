"""The settings of a training: those that another record has, too."""

from lm.model import Config
from lm.training.settings import Settings
from rerank.pipeline import Recipe


def test_values_are_those_that_were_given_and_that_the_record_has() -> None:
    recipe = Recipe("codclm", hidden=7, epochs=3, tied=False, device="cpu")
    assert recipe.values(Config) == {"model": "codclm", "hidden": 7, "tied": False}
    assert recipe.values(Settings) == {"epochs": 3, "seed": 1}
