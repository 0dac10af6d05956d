"""The table of decoders: the choice of one, and which options each uses."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.problems import BothSides, ExactMatch, pairs, second, unary, unbounded

from decoders.arrays import Unary
from decoders.laws import SCALED
from decoders.problem import Chain, DocumentProblem, UnsuitedDecoder
from decoders.search import decode
from decoders.table import DECODERS, Options, choose

UNARY, PAIRS, SECOND = (build((5, 3, 4), 11) for build in (unary, pairs, second))
TABLE = unbounded((3, 3, 3), 11)
BOTH = BothSides([np.zeros(2)] * 2, 1.0)

VALUES: dict[str, Any] = {  # of every option that decoders take
    "width": 4, "threshold": 2.0, "merge": "max", "particles": 3, "resampling": "residual",
    "ess_threshold": 0.5, "temper": 0.5, "samples": 4, "lag": 1, "block": 1, "horizon": 1,
    "gibbs": 0, "alpha": 1.0, "seed": 3, "utility": "bleu", "word_reward": 0.5, "spread": 2.0,
}  # fmt: skip


class Expensive(Chain):
    """Of order 2, with lists too long for exact search."""

    lengths = (1000,) * 5
    order = 2


# The choice of a decoder
@pytest.mark.parametrize(
    ("problem", "n_best", "chosen"),
    [
        *((problem, n, "viterbi") for problem in (UNARY, PAIRS, SECOND, Unary([])) for n in (1, 2)),
        *((problem, n, "beam") for problem in (TABLE, Expensive()) for n in (1, 2)),
        (BOTH, 1, "sweeps"),
        (Unary([np.zeros(100)] * 4), 10**6, "beam"),  # so many paths are too expensive for Viterbi
    ],
)
def test_auto_is_exact_where_affordable(problem: DocumentProblem, n_best: int, chosen: str) -> None:
    assert choose(problem, n_best=n_best).name == chosen
    assert choose(problem, chosen).name == chosen


# Options
@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("option", VALUES)
def test_an_option_is_used_or_refused_except_those_that_all_accept(name: str, option: str) -> None:
    options = dataclasses.replace(SCALED, **{option: VALUES[option]})
    assert options.given() == {option: VALUES[option]}
    if DECODERS[name].takes(option) or option in ("alpha", "seed"):
        assert decode(SECOND, name, options, utility=ExactMatch()).paths
        return
    with pytest.raises(UnsuitedDecoder, match=f"^{name} does not use {option}; it is for ") as told:
        decode(SECOND, name, options, utility=ExactMatch())
    takers = str(told.value).partition("for ")[2].split(", ")
    assert takers == [other for other, row in DECODERS.items() if row.takes(option)]


def test_auto_lets_a_width_pass_and_nothing_else() -> None:
    assert decode(PAIRS, "auto", Options(width=3, seed=3, alpha=1.0)).decoder == "viterbi"
    with pytest.raises(UnsuitedDecoder, match="viterbi does not use lag"):
        decode(PAIRS, "auto", Options(lag=3))
