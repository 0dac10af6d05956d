"""Kinds of scores from outside: every line of the table leads to a scorer and to an option."""

from importlib import import_module

import pytest

from rerank.cli import cli
from rerank.registry import OUTSIDE
from rerank.scorers.outside import Outside


@pytest.mark.parametrize("option", sorted(OUTSIDE))
def test_a_kind_names_a_scorer_that_reads_a_file(option: str) -> None:
    module, _, attribute = OUTSIDE[option].scorer.partition(":")
    assert issubclass(getattr(import_module(module), attribute), Outside)


@pytest.mark.parametrize("command", ["score", "decode", "tune-mert"])
def test_a_kind_is_an_option_of_every_command_that_scores(command: str) -> None:
    known = {opt for parameter in cli.commands[command].params for opt in parameter.opts}
    assert {f"--{option}" for option in OUTSIDE} <= known


def test_kinds_without_a_name_make_features_of_different_names() -> None:
    labels = [kind.label for kind in OUTSIDE.values()]
    assert len(set(labels)) == len(labels)
