"""Options of tuning become an objective and settings; contradictions are refused in one line."""

from __future__ import annotations

from typing import Any

import click
import pytest

from rerank.cli import cli
from rerank.cli.tuning_options import objective_of, settings_of
from rerank.errors import UsageError
from rerank.pipeline import MertSettings, ObjectiveOptions
from rerank.tuning.plan import POOLS


def parsed(*arguments: str) -> dict[str, Any]:
    """Parameters of `tune-mert` as click reads them."""
    needed = ["--kbest", "k", "--docs", "d", "--ref", "r", "--out", "o.json"]
    context = cli.commands["tune-mert"].make_context("tune-mert", [*needed, *arguments])
    return dict(context.params)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", ObjectiveOptions()),
        ("--objective chrf", ObjectiveOptions((("chrf", 1.0),))),
        ("--objective bleu --objective ter=0.5", ObjectiveOptions((("bleu", 1.0), ("ter", 0.5)))),
        ("--objective m=1e1 --metric m=a=b", ObjectiveOptions((("m", 10.0),), {"m": "a=b"})),
        ("--per-document", ObjectiveOptions(documents=True)),
        ("--worst 25", ObjectiveOptions(worst=0.25)),
        ("--length-ratio keep", ObjectiveOptions(length="keep")),
        ("--length-ratio 0.97 --length-price 8", ObjectiveOptions(length=0.97, price=8.0)),
        ("--length-ratio keep --length-price 0", ObjectiveOptions(length="keep", price=0.0)),
        ("--shrink 2.5", ObjectiveOptions(shrinkage=2.5)),
    ],
)
def test_options_become_an_objective(arguments: str, expected: ObjectiveOptions) -> None:
    assert objective_of(parsed(*arguments.split())) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", MertSettings()),
        ("--starts 0 --threads 3", MertSettings(random_starts=0, threads=3)),
        ("--seed 7", MertSettings(seed=7)),
    ],
)
def test_options_become_settings(arguments: str, expected: MertSettings) -> None:
    assert settings_of(parsed(*arguments.split())) == expected


def test_options_that_were_taken_are_not_left() -> None:
    """What is left are the lists', the search's and the command's own."""
    options = parsed()
    before = set(options)
    objective_of(options)
    settings_of(options)
    gone = before - set(options)
    assert gone >= {"objectives", "metrics", "worst", "shrink", "starts", "threads", "seed"}
    assert not gone & {"kbest", "method", "tokenize", "pools", "replicates", "plot"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--objective bleu=", "expected NAME or NAME=WEIGHT; found 'bleu='"),
        ("--objective bleu=much", "expected a finite decimal number, found 'much'"),
        ("--objective bleu=1e308", "1e+308 is not in the range 1e-06<=x<=1000000."),
        ("--metric dev.m", "expected NAME=FILE; found 'dev.m'"),
        ("--metric =dev.m", "expected NAME=FILE; found '=dev.m'"),
        ("--metric m=", "expected NAME=FILE; found 'm='"),
        ("--metric m=a --metric m=b", "--metric m=…: two of one name; give one"),
        ("--length-ratio 0", "0.0 is not in the range 0<x<=100."),
        ("--length-ratio inf", "expected keep, free or a number, found 'inf'"),
        ("--length-ratio nan", "expected keep, free or a number, found 'nan'"),
        ("--length-ratio Keep", "expected keep, free or a number, found 'Keep'"),
        (
            "--length-ratio free --length-price 1",
            "--length-price: --length-ratio free has no price",
        ),
    ],
)
def test_what_makes_no_sense_is_told_in_a_line(arguments: str, message: str) -> None:
    with pytest.raises((UsageError, click.BadParameter)) as fault:
        objective_of(parsed(*arguments.split()))
    assert str(fault.value).startswith(message)
    assert "\n" not in str(fault.value)


def test_names_to_choose_from_are_all_that_there_are() -> None:
    """They are written out on the command line, because help must not wait for numpy."""
    found = {p.name: p for p in cli.commands["tune-mert"].params if isinstance(p, click.Option)}

    def choices(name: str) -> list[str]:
        option = found[name].type
        assert isinstance(option, click.Choice)
        return list(option.choices)

    assert choices("pools") == list(POOLS)


def test_the_price_that_the_help_states_is_that_of_the_pipeline() -> None:
    found = {p.name: p for p in cli.commands["tune-mert"].params if isinstance(p, click.Option)}
    assert f"[default: {ObjectiveOptions().price:g}]" in str(found["length_price"].help)
