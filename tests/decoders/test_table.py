"""The table of decoders: what its rows say, and the choice of one."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys

import numpy as np
import pytest

from decoders.arrays import Chain, HistoryTable, Pairwise, Unary
from decoders.beam import beam
from decoders.exhaustive import exhaustive
from decoders.greedy import greedy
from decoders.problem import UnsuitedDecoder
from decoders.search import Options
from decoders.table import ANY, DECODERS, NONE, choose, named
from decoders.viterbi import viterbi

NAMES = (
    *("greedy", "viterbi", "beam", "survivors", "random-beam", "smc", "ffbs", "mbr", "sweeps"),
    "exhaustive",
)
SAMPLERS = ("random-beam", "smc", "ffbs", "mbr")
UNARY = Unary([np.zeros(5)] * 6)
PAIRWISE = Pairwise([np.zeros((1 if t == 0 else 5, 5)) for t in range(6)])
SECOND = HistoryTable([np.zeros((3,) * min(t + 1, 3)) for t in range(5)], order=2)
TABLE = HistoryTable([np.zeros((3,) * (t + 1)) for t in range(5)])


class Expensive(Chain):
    """Of order 2, with lists too long for exact search."""

    lengths = (1000,) * 5
    order = 2


class RightToLeft(Chain):
    """Sentences that depend on later ones."""

    lengths = (2, 2)
    order = None
    causal = False


def test_the_rows_are_those_of_the_help_in_its_order() -> None:
    assert tuple(DECODERS) == NAMES
    assert all(row.name == name for name, row in DECODERS.items())


def test_every_row_names_a_function_that_takes_its_options() -> None:
    for row in DECODERS.values():
        taken = inspect.signature(row.load()).parameters
        keywords = {n for n, p in taken.items() if p.kind == p.KEYWORD_ONLY}
        assert keywords - set(row.options) <= {"start"}, row.name
        assert set(row.options) <= keywords, row.name
    loaded = [DECODERS[name].load() for name in ("greedy", "viterbi", "beam", "exhaustive")]
    assert loaded == [greedy.steps, viterbi.steps, beam.steps, exhaustive]


def test_every_option_of_a_row_can_be_asked_for() -> None:
    own = {"rng", "utility", "start"}
    asked = {field.name for field in dataclasses.fields(Options)}
    assert {o for row in DECODERS.values() for o in row.options} - own <= asked


def test_rows_say_where_they_serve_and_where_they_are_exact() -> None:
    orders = (0, 1, 2, None)
    serves = {name: [row.serves(o) for o in orders] for name, row in DECODERS.items()}
    exact = {name: [row.exact(o) for o in orders] for name, row in DECODERS.items()}
    assert serves.pop("viterbi") == exact["viterbi"] == [True, True, True, False]
    assert all(all(row) for row in serves.values())
    assert exact["exhaustive"] == [True] * 4
    assert exact["survivors"] == [True, True, False, False]
    for name in ("beam", "greedy", "sweeps"):
        assert exact[name] == [True, False, False, False]
    for name in SAMPLERS:
        assert exact[name] == [False] * 4


def test_orders_are_described_for_people() -> None:
    assert DECODERS["viterbi"].orders == DECODERS["viterbi"].exact_orders == "finite"
    assert DECODERS["beam"].orders == "any"
    assert DECODERS["beam"].exact_orders == "0"
    assert DECODERS["survivors"].exact_orders == "up to 1"
    assert DECODERS["smc"].exact_orders == "none"


def test_a_row_may_be_exact_nowhere() -> None:
    row = dataclasses.replace(DECODERS["beam"], highest_order=0, exact_to=NONE)
    assert not row.exact(0)
    assert row.orders == "0"
    assert dataclasses.replace(row, highest_order=1).orders == "up to 1"
    assert dataclasses.replace(row, highest_order=ANY).serves(None)


def test_a_scale_is_needed_by_what_samples() -> None:
    always = {name for name, row in DECODERS.items() if row.scaled({})}
    assert always == set(SAMPLERS)
    survivors, sweeps = DECODERS["survivors"], DECODERS["sweeps"]
    assert [survivors.scaled({"merge": m}) for m in ("max", "sample", "mean")] == [0, 1, 1]
    assert [sweeps.scaled({"gibbs": n}) for n in (0, 1)] == [False, True]


def test_all_zero_weights_are_for_what_works_with_probabilities() -> None:
    assert {name for name, row in DECODERS.items() if row.uniform} == {"smc", "ffbs", "mbr"}


def test_the_table_is_read_without_numpy_or_a_decoder() -> None:
    program = "import decoders.table, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "decoders.table" in loaded
    assert not loaded & {"numpy", "decoders.problem", "decoders.viterbi"}


def test_a_seed_is_for_what_draws() -> None:
    draw = {name for name, row in DECODERS.items() if row.takes("seed")}
    assert draw == {*SAMPLERS, "survivors", "sweeps"}


def test_auto_is_viterbi_where_it_is_exact_and_affordable_and_beam_elsewhere() -> None:
    for problem in (UNARY, PAIRWISE, SECOND, Unary([])):
        assert choose(problem).name == "viterbi"
        assert choose(problem, n_best=2).name == "viterbi"
    for unfit in (TABLE, Expensive()):
        assert choose(unfit).name == choose(unfit, n_best=2).name == "beam"


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnsuitedDecoder, match=r"'vitrebi'; did you mean viterbi.*auto, greedy"):
        choose(UNARY, "vitrebi")
    with pytest.raises(UnsuitedDecoder, match=r"'xyz'; there are auto, greedy, viterbi"):
        named("xyz")
    assert named("beam") is DECODERS["beam"]


def test_a_decoder_that_does_not_serve_names_those_that_do() -> None:
    with pytest.raises(UnsuitedDecoder, match=r"all earlier .*fit: greedy, beam, surv.*exhaustive"):
        choose(TABLE, "viterbi")
    fit = r"lists of several paths.*fit: viterbi, beam, random-beam, smc, ffbs, exhaustive$"
    for name in ("greedy", "survivors", "mbr", "sweeps"):
        with pytest.raises(UnsuitedDecoder, match=fit):
            choose(UNARY, name, n_best=2)


def test_only_sweeps_serve_sentences_that_depend_on_later_ones() -> None:
    assert choose(RightToLeft()).name == choose(RightToLeft(), "sweeps").name == "sweeps"
    for name in NAMES:
        if name != "sweeps":
            with pytest.raises(UnsuitedDecoder, match=r"depend on later .*fit: sweeps$"):
                choose(RightToLeft(), name)
    with pytest.raises(UnsuitedDecoder, match=r"lists of several paths.*fit: none$"):
        choose(RightToLeft(), "sweeps", n_best=2)
