"""Line search, against rescoring the pool in every interval between two meetings of its lines."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.metrics.bleu import ORDER, WIDTH, corpus_bleu
from rerank.tuning.mert.envelope import Direction, Scratch
from rerank.tuning.mert.line import Step
from rerank.tuning.mert.line_search import line_of
from rerank.tuning.objectives.goal import BLEU_GOAL, SearchGoal
from rerank.tuning.objectives.objective import CorpusMetric, ObjectiveSum
from rerank.tuning.pools.pool import Pool

TWICE = ObjectiveSum(((0.5, CorpusMetric()), (0.5, CorpusMetric())))  # has no compiled pass


def statistics_of(rng: np.random.Generator, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Plausible statistics: a reference length per list, matches that become rarer with order."""
    rows = np.zeros((offsets[-1], WIDTH), dtype=np.int64)
    for start, end in pairwise(offsets):
        reference = rng.integers(1, 12)
        for row in range(start, end):
            length = rng.integers(0, 12)
            totals = np.maximum(length - np.arange(ORDER), 0)
            matches = np.minimum.accumulate(rng.integers(0, totals + 1))
            rows[row] = [*matches, *totals, reference]
    return rows


@st.composite
def pools(draw: st.DrawFn, *, features: int = 1) -> Pool:
    """Pools of whole features and fixed scores: equal lines, parallel lines, shared breaks."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    offsets = np.cumsum([0, *rng.integers(0, 7, size=draw(st.integers(1, 5)))])
    spread = draw(st.sampled_from([1, 3, 50]))
    values = rng.integers(-spread, spread + 1, size=(offsets[-1], features)).astype(np.float64)
    fixed = rng.integers(-spread, spread + 1, size=offsets[-1]).astype(np.float64)
    return Pool(offsets, values, statistics_of(rng, offsets), fixed)


def bleu_at(pool: Pool, step: float) -> float:
    """BLEU of the candidates chosen at a step along the first feature, scored directly."""
    scores = pool.fixed + step * pool.features[:, 0]
    chosen = [a + int(scores[a:b].argmax()) for a, b in pairwise(pool.offsets) if a < b]
    return float(corpus_bleu(pool.statistics[chosen].sum(axis=0)))


def every_interval(pool: Pool) -> list[float]:
    """A step in every interval between meetings of lines of one list, and beyond the last."""
    meetings = {0.0}
    for start, end in pairwise(pool.offsets):
        for a in range(start, end):
            for b in range(a + 1, end):
                run = pool.features[b, 0] - pool.features[a, 0]
                if run != 0:
                    meetings.add(float((pool.fixed[a] - pool.fixed[b]) / run))
    places = sorted(meetings)
    return [places[0] - 1, *((a + b) / 2 for a, b in pairwise(places)), places[-1] + 1]


def line_search(
    pool: Pool,
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    vector: NDArray[np.float64],
    slopes: Direction,
    *,
    goal: SearchGoal = BLEU_GOAL,
    here: float,
) -> Step:
    """The best step of a goal along the line that the pool has."""
    choices = pool.choices(scores)
    line = line_of(pool, scores, choices, slopes, Scratch(pool), weights=weights, vector=vector)
    return goal.best(line, here)


def search(pool: Pool, floor: float, *, scale: float = 1.0) -> tuple[float, float]:
    """Line search from the fixed scores along the first feature times `scale`."""
    direction = Direction.of(pool, pool.features[:, 0] * scale)
    for array in (pool.features, pool.fixed, pool.statistics, direction.slopes):
        array.flags.writeable = False
    step = line_search(pool, np.zeros(1), pool.fixed, np.ones(1), direction, here=floor)
    return step.size, step.value


@settings(max_examples=50)
@given(pools())
def test_the_best_step_is_the_best_of_all_intervals_and_scores_as_predicted(pool: Pool) -> None:
    assume(Direction.of(pool, pool.features[:, 0]).spread > 0)
    step, bleu = search(pool, 0.0)
    best = max(bleu_at(pool, place) for place in every_interval(pool))
    assert bleu == best  # the same statistics, the same function: the same bits
    if best > 0:
        assert bleu_at(pool, step) == bleu


@pytest.mark.parametrize("goal", [BLEU_GOAL, SearchGoal(TWICE)], ids=["compiled", "any"])
@pytest.mark.parametrize("seed", range(100))
def test_the_predicted_value_is_right_where_breaks_differ_by_rounding_alone(
    seed: int, goal: SearchGoal
) -> None:
    """Features are counts: lists share breaks, but for rounding."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(0, 161, 8)
    counts = rng.integers(0, 4, size=(160, 3)).astype(np.float64)
    pool = Pool(offsets, counts, statistics_of(rng, offsets), np.zeros(160))
    scores = counts @ rng.standard_normal(3)
    step = line_search(
        pool,
        np.zeros(3),
        scores,
        np.eye(3)[0],
        Direction.of(pool, counts[:, 0]),
        goal=goal,
        here=-1.0,
    )
    there = pool.choices(scores + step.size * counts[:, 0])
    assert corpus_bleu(pool.statistics[there].sum(axis=0)) == pytest.approx(step.value, abs=1e-12)


@given(pools())
def test_without_an_interval_above_the_floor_there_is_no_step(pool: Pool) -> None:
    assume(Direction.of(pool, pool.features[:, 0]).spread > 0)
    best = max(bleu_at(pool, place) for place in every_interval(pool))
    assert search(pool, best) == (0.0, best)


@given(pools(), st.integers(-100, 100))
def test_a_power_of_two_times_the_direction_divides_the_step(pool: Pool, exponent: int) -> None:
    assume(Direction.of(pool, pool.features[:, 0]).spread > 0)
    step, bleu = search(pool, 0.0)
    scaled, same = search(pool, 0.0, scale=2.0**exponent)
    assert (scaled * 2.0**exponent, same) == (step, bleu)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("seed", range(5))
def test_huge_and_tiny_directions_give_the_same_bleu(scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    offsets = np.arange(0, 101, 20)
    features, fixed = rng.standard_normal((100, 1)), rng.standard_normal(100)
    pool = Pool(offsets, features, statistics_of(rng, offsets), fixed)
    step, bleu = search(pool, 0.0)
    scaled, same = search(pool, 0.0, scale=scale)
    assert same == bleu
    assert scaled * scale == pytest.approx(step, rel=1e-12)


def two_lists(best_at: int) -> Pool:
    """Breaks at −1 and 1 in both lists; the candidates with slope `best_at` are perfect."""
    slopes = np.array([-1.0, 0.0, 1.0] * 2)
    good, bad = [4, 3, 2, 1, 4, 3, 2, 1, 4], [1, 0, 0, 0, 4, 3, 2, 1, 4]
    statistics = np.array([good if slope == best_at else bad for slope in slopes])
    return Pool(np.array([0, 3, 6]), slopes[:, None], statistics, np.array([-1.0, 0, -1.0] * 2))


@pytest.mark.parametrize(("best_at", "low", "high"), [(-1, -9, -1), (0, -1, 1), (1, 1, 9)])
def test_open_ends_and_breaks_shared_by_lists_are_entered(
    best_at: int, low: float, high: float
) -> None:
    step, bleu = search(two_lists(best_at), 0.0)
    assert bleu == pytest.approx(100)
    assert low < step < high


def test_the_middle_of_an_interval_is_taken() -> None:
    assert search(two_lists(0), 0.0)[0] == 0.0


def test_identical_candidates_stand_for_the_first_of_them() -> None:
    good, bad = [4, 3, 2, 1, 4, 3, 2, 1, 4], [1, 0, 0, 0, 4, 3, 2, 1, 4]
    features = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    pool = Pool(np.array([0, 4]), features, np.array([bad, good, bad, good]), np.zeros(4))
    step, bleu = search(pool, 0.0)
    assert bleu == bleu_at(pool, step) == float(corpus_bleu(np.array(bad)))
