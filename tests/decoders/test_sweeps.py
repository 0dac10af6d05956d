"""Sweeps: never worse than the start, fixed where they end, and Gibbs' target kept."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from decoders.beam import beam
from decoders.chains import Unary
from decoders.exhaustive import exhaustive
from decoders.lockstep import alone, path_score
from decoders.problem import DocumentProblem, Floats, Indices, Path, ScoreError
from decoders.sweeps import MAX_MOVES, _swept, sweeps
from decoders.tables import HistoryTable
from decoders.weighted import WeightedSum

RNG = np.random.default_rng(0)  # where nothing is drawn
LENGTHS = st.lists(st.integers(1, 3), max_size=5)
ORDERS = st.sampled_from([0, 1, 2, None])
SEEDS = st.integers(0, 2**32 - 1)


def table(lengths: list[int], order: int | None, seed: int) -> HistoryTable:
    """Dyadic scores, some −inf."""
    rng = np.random.default_rng(seed)
    tables = []
    for t in range(len(lengths)):
        first = 0 if order is None else max(0, t - order)
        values = [-np.inf, -1.0, -0.25, 0.0, 0.5, 2.0]
        tables.append(rng.choice(values, size=tuple(lengths[first : t + 1])))
        tables[-1].flags.writeable = False
    return HistoryTable(tables, order)


@settings(max_examples=100, deadline=None)
@given(
    lengths=LENGTHS,
    order=ORDERS,
    seed=SEEDS,
    block=st.integers(1, 3),
    gibbs=st.sampled_from([0, 0, 2]),
)
def test_no_change_of_a_block_improves_what_is_found(
    lengths: list[int], order: int | None, seed: int, block: int, gibbs: int
) -> None:
    problem, rng = table(lengths, order, seed), np.random.default_rng(seed)
    start = rng.integers(lengths).tolist()
    reach = len(lengths) if order is None else order
    found = sweeps(
        problem, rng=rng, start=start, block=block, horizon=reach, gibbs=gibbs, alpha=1.0
    )
    assert found.score == path_score(problem, found.choices) >= path_score(problem, start)
    for t in range(len(lengths)):
        for move in product(*map(range, lengths[t : t + block])):
            changed = (*found.choices[:t], *move, *found.choices[t + block :])
            assert path_score(problem, changed) <= found.score


@settings(max_examples=60, deadline=None)
@given(
    lengths=LENGTHS, order=ORDERS, seed=SEEDS, horizon=st.integers(0, 2), gibbs=st.integers(0, 2)
)
def test_whatever_the_horizon_the_start_is_not_lost(
    lengths: list[int], order: int | None, seed: int, horizon: int, gibbs: int
) -> None:
    problem, rng = table(lengths, order, seed), np.random.default_rng(seed)
    (start,) = beam(problem, width=2)
    found = sweeps(problem, rng=rng, width=2, horizon=horizon, gibbs=gibbs, alpha=0.5)
    assert found.score == path_score(problem, found.choices) >= start.score


@settings(max_examples=40, deadline=None)
@given(lengths=LENGTHS, order=ORDERS, seed=SEEDS)
def test_a_block_as_long_as_the_document_finds_the_best_path(
    lengths: list[int], order: int | None, seed: int
) -> None:
    problem = table(lengths, order, seed)
    found = sweeps(problem, rng=RNG, start=[0] * len(lengths), block=max(1, len(lengths)))
    assert found.score == exhaustive(problem)[0].score


def test_equal_moves_leave_a_path_where_it_is() -> None:
    problem = Unary([np.array([1.0, 1, 0]), np.zeros(2)])
    assert sweeps(problem, rng=RNG, start=[1, 1]) == Path((1, 1), 1.0)


def test_scores_have_the_bits_of_the_path() -> None:
    rng = np.random.default_rng(3)
    parts = [HistoryTable([rng.normal(size=(3,) * (t + 1)) for t in range(4)]) for _ in range(3)]
    problem = WeightedSum([(rng.normal(), part) for part in parts])
    for gibbs in (0, 3):
        found = sweeps(problem, rng=rng, width=1, gibbs=gibbs, alpha=1.0)
        assert found.score == path_score(problem, found.choices)


@pytest.mark.parametrize("order", [1, None])
def test_a_gibbs_sweep_keeps_the_target(order: int | None) -> None:
    # 4,000 paths from the target, each swept once: independent, so that χ² applies
    rng, alpha, runs = np.random.default_rng(4), 0.7, 4000
    lengths = [2, 3, 2]
    tables = [rng.normal(size=lengths[max(0, t - (order or t)) : t + 1]) for t in range(3)]
    problem = HistoryTable(tables, order)
    paths = exhaustive(problem, n_best=12)
    weights = np.exp([alpha * path.score for path in paths])
    weights /= weights.sum()
    counts: Counter[tuple[int, ...]] = Counter()
    for start in rng.choice(12, p=weights, size=runs).tolist():
        path = np.array(paths[start].choices)
        step = _swept(problem, path, block=1, reach=2, alpha=alpha, rng=rng)
        counts[tuple(alone(problem, step).tolist())] += 1
    observed = np.array([counts[path.choices] for path in paths])
    chi2 = float(((observed - runs * weights) ** 2 / (runs * weights)).sum())
    assert chi2 < 31.26  # quantile of 0.999, 11 degrees of freedom


def test_gibbs_sweeps_find_what_single_changes_do_not() -> None:
    # both sentences must change at once; a draw passes through what is worse
    problem = HistoryTable([np.zeros(2), np.array([[1.0, 0], [0, 3]])], order=1)
    assert sweeps(problem, rng=RNG, start=[0, 0]) == Path((0, 0), 1.0)
    found = sweeps(problem, rng=np.random.default_rng(5), start=[0, 0], gibbs=20, alpha=0.5)
    assert found == Path((1, 1), 3.0)
    assert sweeps(problem, rng=RNG, start=[0, 0], block=2) == Path((1, 1), 3.0)


def test_what_gibbs_sweeps_wander_away_from_is_settled_too() -> None:
    # from (0, 0) one change leads to (0, 1); (2, 2) lies apart and is worse
    pairs = np.array([[8.0, 9, -9], [-9, -9, -9], [-9, -9, 3]])
    problem = HistoryTable([np.zeros(3), pairs], order=1)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        found = sweeps(problem, rng=rng, start=[0, 0], gibbs=1, alpha=1e-3)
        assert found == Path((0, 1), 9.0)


class RightToLeft(Unary):
    """`scores[t]`, and 2 more where the next sentence takes the same candidate."""

    order = None  # type: ignore[assignment]
    causal = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", tuple(map(len, self.scores)))

    def extend(self, states: Indices, t: int) -> tuple[Floats, None]:
        raise AssertionError("sentence t depends on sentence t + 1")

    def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
        first, end = max(0, t - 1), min(t + horizon + 1, len(self.lengths))
        total = np.zeros(len(paths))
        for s in range(first, end):
            total += self.scores[s][paths[:, s]]
            if s + 1 < len(self.lengths):
                total += 2.0 * (paths[:, s] == paths[:, s + 1])
        return total


def test_sentences_that_depend_on_later_ones_are_searched() -> None:
    scores = [np.array([0.0, 1]), np.array([0.5, 0]), np.array([0.0, 4])]
    problem = RightToLeft(scores)
    assert sweeps(problem, rng=RNG) == Path((0, 0, 1), 6.5)  # from the first candidates
    assert sweeps(problem, rng=RNG, block=2) == Path((1, 1, 1), 9.0)
    assert max(product(range(2), repeat=3), key=lambda p: path_score(problem, p)) == (1, 1, 1)


def test_an_empty_document_has_the_empty_path() -> None:
    assert sweeps(Unary([]), rng=RNG) == Path((), 0.0)
    assert sweeps(Unary([]), rng=RNG, start=[], block=3, gibbs=2, alpha=1.0) == Path((), 0.0)


def test_a_thousand_sentences_are_swept() -> None:
    rng = np.random.default_rng(6)
    problem = HistoryTable([rng.normal(size=(3,) * min(t + 1, 3)) for t in range(1000)], order=2)
    found = sweeps(problem, rng=rng, start=[0] * 1000)
    assert found.score > path_score(problem, [0] * 1000)


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["NaN", "+inf"])
def test_sums_that_are_none_are_refused_by_sentence(value: float) -> None:
    class Poisoned(Unary):
        def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
            return np.where(paths[:, 1] == 1, value, 0.0)

    with pytest.raises(ScoreError, match=r"^sentence \d .*from here on is"):
        sweeps(Poisoned([np.zeros(2), np.zeros(2)]), rng=RNG)
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN"):
        sweeps(Unary([np.zeros(2), np.array([0, np.nan])]), rng=RNG)


def test_options_and_starts_that_are_none_are_refused() -> None:
    problem: DocumentProblem = Unary([np.zeros(2)] * 20)
    for options in ({"block": 0}, {"gibbs": -1}, {"horizon": -1}):
        with pytest.raises(ValueError, match="expected a block of at least 1"):
            sweeps(problem, rng=RNG, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Gibbs sweeps need a scale alpha"):
        sweeps(problem, rng=RNG, gibbs=1)
    with pytest.raises(ValueError, match="scale alpha above 0"):
        sweeps(problem, rng=RNG, gibbs=1, alpha=0.0)
    with pytest.raises(ValueError, match="expected 20 choices, found 1"):
        sweeps(problem, rng=RNG, start=[0])
    with pytest.raises(ValueError, match=rf"2\^17|131,072 combinations .* {MAX_MOVES:,}"):
        sweeps(problem, rng=RNG, block=17)
