"""Options of the training: their defaults are those of the recipe, as the help says."""

import re

import click
import pytest

from lm.batches import SEGMENTS
from lm.training.initialisation import INITIALISATIONS
from lm.training.optimisers import OPTIMISERS
from lm.training.recipes import NAMES, STRONG
from lm.training.schedules import SCHEDULES
from lm.training.stages import LEVELS
from rerank.cli import cli

OPTIONS = {option.name: option for option in cli.commands["train-lm"].params}


@pytest.mark.parametrize("name", STRONG)
def test_the_help_says_the_value_of_the_strong_recipe(name: str) -> None:
    option = OPTIONS[name]
    assert isinstance(option, click.Option)
    assert option.default is None
    (default,) = re.findall(r"\[default: (.*)\]\.$", option.help or "")
    value = STRONG[name]
    shown = {True: "tied"}.get(value, value) if isinstance(value, bool) else value
    assert default == (f"{shown:g}" if isinstance(shown, float) else str(shown))


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("recipe", NAMES),
        ("optimiser", OPTIMISERS),
        ("schedule", SCHEDULES),
        ("segments", SEGMENTS),
        ("levels", LEVELS),
        ("initialisation", INITIALISATIONS),
    ],
)
def test_the_choices_are_those_of_the_table(name: str, table: object) -> None:
    found = OPTIONS[name].type.choices  # type: ignore[attr-defined]
    assert list(found) == list(table)  # type: ignore[call-overload]
