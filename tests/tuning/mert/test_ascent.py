"""Ascent: never down, within bounds, to a point that no coordinate improves."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pools import random_pool

from rerank.metrics.bleu import WIDTH, corpus_bleu, length_ratio
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.ascent import Axes, Strategy, climb
from rerank.tuning.mert.coordinates import coordinates, in_turn
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import BLEU_GOAL, SearchGoal
from rerank.tuning.objectives.objective import (
    CorpusMetric,
    DocumentMean,
    MetricColumns,
    WorstDocuments,
)
from rerank.tuning.objectives.shrinkage import Shrinkage
from rerank.tuning.pools.pool import Pool


def bleu_of(pool: Pool, weights: NDArray[np.float64]) -> float:
    return Optimum.at(pool, weights).bleu


def climbed(
    axes: Axes,
    start: NDArray[np.float64],
    strategy: Strategy = coordinates,
    most_searches: float = np.inf,
) -> Optimum:
    """A climb for corpus BLEU."""
    return climb(axes, start, BLEU_GOAL, strategy, most_searches=most_searches)


def test_an_optimum_has_the_bleu_and_length_ratio_of_its_choices() -> None:
    pool = random_pool(0)
    weights = np.array([1.0, 0.5, -0.1])
    scores = (pool.features @ weights).reshape(12, 15)
    summed = pool.statistics.reshape(12, 15, 9)[np.arange(12), scores.argmax(axis=1)].sum(axis=0)
    optimum = Optimum.at(pool, weights)
    np.testing.assert_array_equal(optimum.statistics, summed)
    assert optimum.bleu == corpus_bleu(summed)
    assert optimum.ratio == length_ratio(summed)


def test_axes_are_the_features_that_vary_within_a_list() -> None:
    pool = random_pool(1)
    of_lists = np.repeat(np.arange(12.0), 15)[:, None]
    constant = np.full((180, 1), 0.1)
    features = np.hstack([constant, pool.features[:, :1], of_lists, pool.features[:, 1:]])
    axes = Axes.of(Pool(pool.offsets, features, pool.statistics, pool.fixed))
    np.testing.assert_array_equal(axes.features, [1, 3, 4])
    np.testing.assert_array_equal(axes.columns, pool.features.T)
    assert (axes.spreads > 0).all()


def test_axes_of_a_pool_are_kept_as_long_as_the_pool() -> None:
    pool = random_pool(1)
    axes = weakref.ref(Axes.of(pool).columns)
    assert Axes.of(pool).columns is axes()
    assert Axes.of(random_pool(1)).columns is not axes()
    del pool
    gc.collect()
    assert axes() is None


@pytest.mark.parametrize("most", [100, 40_000, 3_000_000_000])
def test_statistics_of_any_size_sum_up_exactly(most: int) -> None:
    pool = random_pool(2)
    statistics = pool.statistics * (most // 100)
    axes = Axes.of(Pool(pool.offsets, pool.features, statistics, pool.fixed))
    optimum = climbed(axes, np.ones(3))
    choices = pool.choices(pool.scores(optimum.weights))
    np.testing.assert_array_equal(optimum.statistics, statistics[choices].sum(axis=0))


@pytest.mark.parametrize("strategy", [coordinates, in_turn])
@pytest.mark.parametrize("seed", range(4))
def test_a_climb_never_falls_and_ends_where_no_coordinate_gains(
    seed: int, strategy: Strategy
) -> None:
    pool = random_pool(seed)
    axes = Axes.of(pool)
    start = np.random.default_rng(seed).standard_normal(3)
    start.flags.writeable = False
    end = climbed(axes, start, strategy)
    assert end.bleu >= bleu_of(pool, start)
    assert end.bleu == bleu_of(pool, end.weights)
    for feature in range(3):
        for step in np.linspace(-4, 4, 401):
            moved = end.weights.copy()
            moved[feature] += step
            assert bleu_of(pool, moved) <= end.bleu


def test_a_climb_stops_after_the_most_searches_and_goes_on_from_there() -> None:
    pool = random_pool(6)
    axes = Axes.of(pool)
    begun = climbed(axes, np.ones(3), in_turn, most_searches=2)
    assert begun.searches == 2
    assert begun.bleu == bleu_of(pool, begun.weights)
    assert climbed(axes, begun.weights, in_turn).bleu >= begun.bleu


def test_a_climb_from_zeros_leaves_them() -> None:
    pool = random_pool(3)
    end = climbed(Axes.of(pool), np.zeros(3))
    assert end.weights.any()
    assert end.bleu > bleu_of(pool, np.zeros(3))


def test_fixed_scores_take_part_in_the_choice() -> None:
    pool = random_pool(4)
    fixed = pool.features[:, 0].copy()
    rest = Pool(pool.offsets, pool.features[:, 1:].copy(), pool.statistics, fixed)
    end = climbed(Axes.of(rest), np.zeros(2))
    assert end.bleu == bleu_of(pool, np.array([1.0, *end.weights]))


def test_without_a_varying_feature_the_start_is_the_end() -> None:
    pool = random_pool(5)
    constant = Pool(pool.offsets, np.ones((180, 2)), pool.statistics, pool.fixed)
    end = climbed(Axes.of(constant), np.array([0.25, 0.75]))
    np.testing.assert_array_equal(end.weights, [0.25, 0.75])
    np.testing.assert_array_equal(end.statistics, pool.first)
    assert end.searches == 0


def test_differences_of_statistics_of_either_sign_do_not_overflow() -> None:
    pool = random_pool(7)
    signed = np.where(pool.features[:, :1] > 0, 30_000, -30_000)
    pool = replace(pool, statistics=np.hstack([pool.statistics, signed]))
    goal = SearchGoal(
        CorpusMetric(MetricColumns("sign", WIDTH, WIDTH + 1, lambda sums: sums[..., 0] * 1.0))
    )
    end = climb(Axes.of(pool), np.ones(3), goal, in_turn)
    assert end.value == 30_000 * 12  # each list has a candidate of positive first feature
    assert end.value == Optimum.at(pool, end.weights, goal).value


def test_documents_out_of_order_and_without_candidates_count_as_they_should() -> None:
    pool = random_pool(8)
    offsets = np.insert(pool.offsets, [0, 5, 12], [0, pool.offsets[5], pool.offsets[12]])
    documents = np.insert(np.arange(12) % 3, [0, 5, 12], [3, 0, 9])  # 3 and 9 are never scored
    gaps = replace(pool, offsets=offsets, documents=documents)
    sorted_lists = np.argsort(np.arange(12) % 3, kind="stable")
    rows = (sorted_lists[:, None] * 15 + np.arange(15)).ravel()
    tidy = Pool(
        pool.offsets,
        pool.features[rows],
        pool.statistics[rows],
        pool.fixed,
        np.repeat([0, 1, 2], 4),
    )
    for objective in (DocumentMean(), WorstDocuments(0.4)):
        ends = [
            climb(Axes.of(p), np.ones(3), SearchGoal(objective), coordinates) for p in (gaps, tidy)
        ]
        assert ends[0].value == pytest.approx(ends[1].value, abs=1e-9)
        np.testing.assert_array_equal(ends[0].statistics, ends[1].statistics)
        chosen = tidy.choices(tidy.scores(ends[0].weights))
        scores = corpus_bleu(tidy.statistics[chosen].reshape(3, 4, WIDTH).sum(axis=1))
        worst = np.sort(scores)[:2].mean()
        direct = scores.mean() if objective == DocumentMean() else worst
        assert ends[0].value == pytest.approx(direct, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_a_climb_keeps_within_bounds_and_uses_what_they_leave(seed: int) -> None:
    pool = random_pool(seed)
    low, high = np.array([0.5, -1.0, -np.inf]), np.array([2.0, 0.25, 0.0])
    bounds = Bounds(low, high)
    start = np.array([0.5, -1.0, -0.1])
    end = climb(Axes.of(pool), start, BLEU_GOAL, in_turn, bounds=bounds)
    assert bounds.hold(end.weights)
    assert end.bleu == bleu_of(pool, end.weights) >= bleu_of(pool, start)
    for feature in range(3):  # nothing on the axes within bounds is better
        for place in np.linspace(max(low[feature], -5), min(high[feature], 5), 201):
            moved = end.weights.copy()
            moved[feature] = place
            assert bleu_of(pool, moved) <= end.bleu


def test_a_weight_with_no_room_stays() -> None:
    pool = random_pool(9)
    bounds = Bounds(np.array([1.0, -np.inf, -np.inf]), np.array([1.0, np.inf, np.inf]))
    end = climb(Axes.of(pool), np.ones(3), BLEU_GOAL, coordinates, bounds=bounds)
    assert end.weights[0] == 1.0
    assert (end.weights[1:] != 1.0).any()


@pytest.mark.parametrize(
    "goal",
    [
        SearchGoal(CorpusMetric(), Shrinkage(np.ones(5), np.ones(5), 0.1)),
        SearchGoal(CorpusMetric(), Shrinkage(np.ones(5), np.ones(5), 10.0)),
    ],
    ids=lambda g: g.name,
)
def test_a_regularised_climb_ends_before_its_limit(goal: SearchGoal) -> None:
    for seed in range(3):
        axes = Axes.of(random_pool(seed, lists=40, features=5))
        end = climb(axes, -np.ones(5), goal, in_turn)
        assert end.searches <= 100  # 20 for each feature
