"""Decoders against each other on documents small enough to enumerate.

Truth is `exhaustive`, itself checked against the definition in `test_exhaustive.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from decoders.beam import beam, full_width
from decoders.exhaustive import HistoryTable, exhaustive
from decoders.greedy import greedy
from decoders.lockstep import path_score
from decoders.problem import DocumentProblem, Pairwise, Path, Unary, WeightedSum
from decoders.viterbi import viterbi

Array: TypeAlias = NDArray[np.float64]
Build: TypeAlias = Callable[[list[int], int, Array | None], DocumentProblem]
LENGTHS = st.lists(st.integers(1, 4), max_size=5)
SEEDS = st.integers(0, 2**32 - 1)
EXACT_SUMS = {  # dyadic: no sum is rounded, so ties are ties in every order of work
    "few": np.array([-1.0, -0.5, 0.0]),
    "with -inf": np.array([-np.inf, -np.inf, -0.25, 0.0, 0.75]),
    "mostly -inf": np.array([-np.inf] * 5 + [0.5]),
    "equal": np.array([-2.0]),
}


def draw(shapes: list[tuple[int, ...]], seed: int, values: Array | None) -> list[Array]:
    """Arrays of the given values, or of any floats, that raise when written to."""
    rng = np.random.default_rng(seed)
    arrays = [rng.normal(size=s) if values is None else rng.choice(values, size=s) for s in shapes]
    for array in arrays:
        array.flags.writeable = False
    return arrays


def unary(lengths: list[int], seed: int, values: Array | None) -> Unary:
    return Unary(draw([(k,) for k in lengths], seed, values))


def pairwise(lengths: list[int], seed: int, values: Array | None) -> Pairwise:
    return Pairwise(draw(list(zip([1, *lengths], lengths, strict=False)), seed, values))


def history(lengths: list[int], seed: int, values: Array | None) -> HistoryTable:
    shapes = [tuple(lengths[: t + 1]) for t in range(len(lengths))]
    return HistoryTable(draw(shapes, seed, values))


def mixed(lengths: list[int], seed: int, values: Array | None) -> WeightedSum:
    parts: list[tuple[float, DocumentProblem]] = [
        (0.5, unary(lengths, seed, values)),
        (0.0, history(lengths, seed, values)),
        (2.0, pairwise(lengths, seed + 1, values)),
    ]
    return WeightedSum(parts)


def mixed_unbounded(lengths: list[int], seed: int, values: Array | None) -> WeightedSum:
    return WeightedSum([(0.25, mixed(lengths, seed, values)), (1, history(lengths, seed, values))])


FIRST_ORDER: list[Build] = [unary, pairwise, mixed]
ANY_ORDER: list[Build] = [*FIRST_ORDER, history, mixed_unbounded]


@pytest.mark.parametrize("build", FIRST_ORDER)
@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, values=st.sampled_from(list(EXACT_SUMS.values())))
def test_viterbi_equals_enumeration_ties_included(
    build: Build, lengths: list[int], seed: int, values: Array
) -> None:
    problem = build(lengths, seed, values)
    assert [viterbi(problem)] == exhaustive(problem)


@pytest.mark.parametrize("build", FIRST_ORDER)
@settings(max_examples=30, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS)
def test_viterbi_equals_enumeration_bit_for_bit_on_any_floats(
    build: Build, lengths: list[int], seed: int
) -> None:
    problem = build(lengths, seed, None)
    path = viterbi(problem)
    assert [path] == exhaustive(problem)
    assert path.score == path_score(problem, path.choices)


@pytest.mark.parametrize("build", ANY_ORDER)
@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, values=st.sampled_from([None, *EXACT_SUMS.values()]), n=SEEDS)
def test_a_full_beam_lists_what_enumeration_lists_in_the_same_order(
    build: Build, lengths: list[int], seed: int, values: Array | None, n: int
) -> None:
    problem = build(lengths, seed, values)
    paths = math.prod(lengths)
    n_best = n % paths + 1
    assert beam(problem, width=paths, n_best=n_best) == exhaustive(problem, n_best=n_best)
    assert beam(problem, width=full_width(lengths)) == exhaustive(problem)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, width=st.integers(1, 9))
def test_any_beam_lists_what_enumeration_lists_on_order_0(
    lengths: list[int], seed: int, width: int
) -> None:
    problem = unary(lengths, seed, EXACT_SUMS["few"])
    assert beam(problem, width=width, n_best=width) == exhaustive(problem, n_best=width)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, values=st.sampled_from(list(EXACT_SUMS.values())))
def test_greedy_equals_enumeration_on_order_0(lengths: list[int], seed: int, values: Array) -> None:
    problem = unary(lengths, seed, values)
    assert [greedy(problem)] == exhaustive(problem)


@settings(max_examples=60, deadline=None)
@given(
    lengths=LENGTHS,
    seed=SEEDS,
    values=st.sampled_from([None, *EXACT_SUMS.values()]),
    width=st.integers(1, 9),
)
def test_no_decoder_beats_viterbi(
    lengths: list[int], seed: int, values: Array | None, width: int
) -> None:
    problem = mixed(lengths, seed, values)
    best = viterbi(problem).score
    assert greedy(problem).score <= best
    assert beam(problem, width=width)[0].score <= best


def test_all_agree_on_a_thousand_sentences_of_order_0() -> None:
    rng = np.random.default_rng(2)
    scores = [rng.integers(-8, 8, size=k) / 4 for k in rng.integers(1, 5, size=1000)]
    matrices = [np.tile(s, (len(p), 1)) for p, s in zip([[0], *scores], scores, strict=False)]
    path = greedy(Unary(scores))
    assert path == viterbi(Unary(scores)) == viterbi(Pairwise(matrices))
    assert [path] == beam(Unary(scores), width=4) == beam(Pairwise(matrices), width=4)


def test_all_agree_where_there_is_nothing_to_choose() -> None:
    problem = pairwise([1] * 1000, 3, EXACT_SUMS["few"])
    path = viterbi(problem)
    assert path.choices == (0,) * 1000
    assert [path] == [greedy(problem)] == beam(problem, width=2) == exhaustive(problem)


def test_a_tie_is_broken_alike_by_all() -> None:
    problem = Pairwise([np.zeros((1, 2)), np.array([[0, 1.0], [1, 0]])])
    expected = Path((1, 0), 1.0)  # by hand
    assert viterbi(problem) == beam(problem, width=2)[0] == exhaustive(problem)[0] == expected
