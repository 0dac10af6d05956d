"""Sweeps: never worse than the start, fixed where they end, and Gibbs' target kept."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import (
    CHI2_999,
    ORDERS,
    SEEDS,
    BothSides,
    chi2,
    probabilities,
    random_problem,
    rng,
)

from decoders.arrays import HistoryTable, Unary
from decoders.batching import path_score
from decoders.beam import beam
from decoders.problem import Array, Indices, Path, ScoreError
from decoders.sweeps import sweep, sweeps
from decoders.viterbi import exhaustive

RNG = rng(0)  # where nothing is drawn
LENGTHS = st.lists(st.integers(1, 3), max_size=5)
VALUES = (-np.inf, -1.0, -0.25, 0.0, 0.5, 2.0)  # dyadic


@given(
    lengths=LENGTHS, order=ORDERS, seed=SEEDS, block=st.integers(1, 3),
    gibbs=st.sampled_from([0, 0, 2]),
)  # fmt: skip
def test_no_change_of_a_block_improves_what_is_found(
    lengths: list[int], order: int | None, seed: int, block: int, gibbs: int
) -> None:
    problem, draws = random_problem(order, lengths, rng(seed), VALUES), rng(seed)
    start = draws.integers(lengths).tolist()
    reach = len(lengths) if order is None else order
    result = sweeps(
        problem, rng=draws, start=start, block=block, horizon=reach, gibbs=gibbs, alpha=1.0
    )
    assert result.score == path_score(problem, result.choices) >= path_score(problem, start)
    for t in range(len(lengths)):
        for move in product(*map(range, lengths[t : t + block])):
            changed = (*result.choices[:t], *move, *result.choices[t + block :])
            assert path_score(problem, changed) <= result.score


@given(
    lengths=LENGTHS, order=ORDERS, seed=SEEDS, horizon=st.integers(0, 2), gibbs=st.integers(0, 2)
)
def test_the_start_is_not_lost_and_a_block_as_long_as_the_document_finds_the_optimum(
    lengths: list[int], order: int | None, seed: int, horizon: int, gibbs: int
) -> None:
    problem = random_problem(order, lengths, rng(seed), VALUES)
    (start,) = beam(problem, width=2)
    result = sweeps(problem, rng=rng(seed), width=2, horizon=horizon, gibbs=gibbs, alpha=0.5)
    assert result.score == path_score(problem, result.choices) >= start.score
    whole = sweeps(problem, rng=RNG, start=[0] * len(lengths), block=max(1, len(lengths)))
    assert whole.score == exhaustive(problem)[0].score


@pytest.mark.parametrize("order", [1, None])
def test_a_gibbs_sweep_keeps_the_target(order: int | None) -> None:
    # paths from the target, each swept once: independent, so that χ² applies
    draws, alpha = rng(4), 0.7
    problem = random_problem(order, (2, 3, 2), rng(4))
    target = probabilities(problem, alpha)
    paths = np.array(list(target))
    swept = [
        sweep(problem, paths[start], block=1, reach=2, alpha=alpha, rng=draws).tolist()
        for start in draws.choice(12, p=list(target.values()), size=1500).tolist()
    ]
    assert chi2(swept, target) < CHI2_999[11]


# By hand
def test_equal_moves_leave_a_path_where_it_is() -> None:
    problem = Unary([np.array([1.0, 1, 0]), np.zeros(2)])
    assert sweeps(problem, rng=RNG, start=[1, 1]) == Path((1, 1), 1.0)


def test_gibbs_sweeps_and_blocks_find_what_single_changes_do_not() -> None:
    # both sentences must change at once; a draw passes through what is worse
    problem = HistoryTable([np.zeros(2), np.array([[1.0, 0], [0, 3]])], order=1)
    assert sweeps(problem, rng=RNG, start=[0, 0]) == Path((0, 0), 1.0)
    result = sweeps(problem, rng=rng(5), start=[0, 0], gibbs=20, alpha=0.5)
    assert result == sweeps(problem, rng=RNG, start=[0, 0], block=2) == Path((1, 1), 3.0)


def test_after_gibbs_sweeps_the_best_path_so_far_is_improved_too() -> None:
    # from (0, 0) one change leads to (0, 1); (2, 2) lies apart and is worse
    pairs = np.array([[8.0, 9, -9], [-9, -9, -9], [-9, -9, 3]])
    problem = HistoryTable([np.zeros(3), pairs], order=1)
    for seed in range(30):
        result = sweeps(problem, rng=rng(seed), start=[0, 0], gibbs=1, alpha=1e-3)
        assert result == Path((0, 1), 9.0)


def test_the_default_horizon_is_two_sentences_where_the_order_is_unbounded() -> None:
    # candidate 1 of sentence 0 pays two sentences later, that of sentence 1 three later
    tables = [np.zeros((2,) * (t + 1)) for t in range(5)]
    tables[0][1] = tables[1][:, 1] = -1
    tables[2][1] = tables[4][:, 1] = 9
    problem = HistoryTable(tables)
    assert sweeps(problem, rng=RNG, start=[0] * 5).choices == (1, 0, 0, 0, 0)
    assert sweeps(problem, rng=RNG, start=[0] * 5, horizon=3).choices == (1, 1, 0, 0, 0)
    assert sweeps(problem, rng=RNG, start=[0] * 5, horizon=1).choices == (0,) * 5


def test_sentences_that_depend_on_later_ones_are_swept_from_the_first_candidates() -> None:
    problem = BothSides([np.array([0.0, 1]), np.array([0.5, 0]), np.array([0.0, 4])], 2.0)
    assert sweeps(problem, rng=RNG) == Path((0, 0, 1), 6.5)
    assert sweeps(problem, rng=RNG, block=2) == Path((1, 1, 1), 9.0)


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["NaN", "+inf"])
def test_invalid_sums_are_refused_by_sentence(value: float) -> None:
    class Poisoned(Unary):
        def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
            return np.where(paths[:, 1] == 1, value, 0.0)

    with pytest.raises(ScoreError, match=r"^sentence \d .*from here on is"):
        sweeps(Poisoned([np.zeros(2), np.zeros(2)]), rng=RNG)
