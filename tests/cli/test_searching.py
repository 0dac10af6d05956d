"""Options of the search on the command line."""

import inspect
import math
import re
from typing import Any

import click
import pytest

from decoders.mbr import SPREAD
from decoders.resampling import RESAMPLING
from decoders.search import SEED, Options
from decoders.smc import LAG
from decoders.survivors import MERGES
from decoders.table import AUTO_WIDTH, DECODERS
from rerank.cli import cli, run
from rerank.cli.searching import search_of
from rerank.pipeline import Search
from rerank.pipeline.searching import UTILITY
from rerank.registry import FLAGS, UTILITIES

SEARCHING = ["decode", "score", "tune-mert"]


def options(command: str = "decode") -> dict[str, click.Option]:
    """Options of the search by the name that decoders use."""
    found = {p.name: p for p in cli.commands[command].params if isinstance(p, click.Option)}
    return {name: found[name] for name in (*FLAGS, "method", "gap") if name in found}


def choices(option: click.Option) -> list[str]:
    assert isinstance(option.type, click.Choice)
    return list(option.type.choices)


@pytest.mark.parametrize("command", SEARCHING)
def test_every_option_of_decoders_is_one_of_the_shell(command: str) -> None:
    found = options(command)
    gap = {"gap"} if command == "decode" else set()  # the others report no gap
    assert found.keys() == {*FLAGS, "method"} | gap
    for name, flag in FLAGS.items():
        assert found[name].opts[-1] == flag


def test_an_option_that_decoders_take_has_a_flag() -> None:
    fields = {*Options.__dataclass_fields__} - {"n_best", "scale", "gap"}
    assert {*FLAGS} == fields
    taken_by_some = {name for row in DECODERS.values() for name in row.options}
    assert taken_by_some - {"rng", "n_best", "start"} <= {*FLAGS}


def test_names_to_choose_from_are_all_that_there_are() -> None:
    """Most are written out on the command line, because help must not wait for numpy."""
    found = options()
    assert choices(found["method"]) == ["auto", *DECODERS]
    assert choices(found["merge"]) == list(MERGES)
    assert sorted(choices(found["resampling"])) == sorted(RESAMPLING)
    assert choices(found["utility"]) == list(UTILITIES)


def real_default(name: str) -> set[object]:
    """What decoders do where an option is not given; some take it from elsewhere."""
    if name == "utility":
        return {UTILITY}
    if name == "seed":
        return {SEED}
    found: set[object] = set()
    for row in DECODERS.values():
        if name in row.options:
            found.add(inspect.signature(row.load()).parameters[name].default)
    return found


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_the_default_that_the_help_states_is_that_of_every_decoder(name: str) -> None:
    text = options()[name].help or ""
    stated = re.search(r"\[default: ([^\]]*)\]", text)
    found = real_default(name)
    if stated is None:
        assert found == {math.inf}  # of a threshold: none
    elif name == "lag":
        assert stated[1] == f"{LAG}; for ffbs the order, 2 if unbounded"
        assert found == {LAG, None}
    elif name == "horizon":
        assert stated[1] == "the order, 2 if unbounded"
        assert found == {None}
    elif name == "alpha":
        assert stated[1] == "that of the weights file; for mbr --spread decides"
        assert found <= {None, inspect.Parameter.empty}
    elif name == "spread":
        assert stated[1] == f"that of the weights file, as tune-mbr writes it, else {SPREAD}"
        assert found == {SPREAD}
    elif name == "width":
        assert found <= {AUTO_WIDTH, inspect.Parameter.empty}
        assert int(stated[1]) == AUTO_WIDTH
    else:
        (value,) = found
        assert type(value)(stated[1]) == value  # type: ignore[call-arg]


def test_options_become_a_search_and_are_taken_out() -> None:
    given: dict[str, Any] = {name: None for name in options()}
    given |= {"method": "smc", "particles": 5, "alpha": 0.5, "gap": 3, "other": 1}
    assert search_of(given) == Search("smc", Options(particles=5, alpha=0.5, gap=3))
    assert given == {"other": 1}


def test_a_command_with_a_seed_of_its_own_has_no_second() -> None:
    seeds = [p for p in cli.commands["tune-mert"].params if "--seed" in p.opts]
    assert len(seeds) == 1
    given: dict[str, Any] = {name: None for name in options() if name != "seed"}
    given |= {"method": "auto", "seed": 4}
    given.pop("seed")
    assert search_of(given) == Search()


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        *(("--beam", "0"), ("--particles", "0"), ("--samples", "0"), ("--lag", "0")),
        *(("--block", "0"), ("--horizon", "-1"), ("--gibbs", "-1"), ("--gap", "0")),
        *(("--ess", "1.5"), ("--temper", "-0.1"), ("--alpha", "0"), ("--alpha", "-1")),
        *(("--beam-threshold", "0"), ("--seed", "-1"), ("--merge", "sum"), ("--utility", "ter")),
        *(("--spread", "0"), ("--word-reward", "101"), ("--word-reward", "x")),
        *(("--resampling", "best"), ("--search", "best")),
    ],
)
def test_values_of_no_sense_are_refused_with_the_flag(
    flag: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["decode", "--kbest", "x", "--weights", "y", flag, value]) == 2
    assert f"Invalid value for '{flag}'" in capsys.readouterr().err


@pytest.mark.parametrize("command", SEARCHING)
def test_help_fits_the_screen(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100
