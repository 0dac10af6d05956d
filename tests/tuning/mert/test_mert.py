"""Minimum error rate training: grids, laws, and what is done where BLEU says nothing."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pools import empty_pool, random_pool

from rerank.errors import InputError
from rerank.metrics.bleu import corpus_bleu, length_ratio
from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert import mert
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.mert import MertSettings, PoolResult, optimise, unit_norm
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import (
    CorpusMetric,
    DocumentMean,
    MetricColumns,
    Objective,
    ObjectiveSum,
    WorstDocuments,
)
from rerank.tuning.objectives.options import ObjectiveOptions
from rerank.tuning.pools.pool import Pool

BLEU = CorpusMetric()
QUICK = MertSettings(random_starts=5, kicks=5)


def tuned(
    pool: Pool,
    start: NDArray[np.float64] | list[float],
    notices: Notices | None = None,
    settings: MertSettings = QUICK,
    objective: Objective = BLEU,
    **options: Any,
) -> PoolResult:
    """Weights tuned for an objective, with the given prices of length and direction."""
    weights = np.array(start, dtype=np.float64)
    asked = ObjectiveOptions(**{"shrinkage": 0.0, **options})
    goal = asked.goal(
        objective, pool.first, weights, settled=False, scale=lambda: Axes.of(pool).scale
    )
    return optimise(
        pool,
        weights,
        Notices() if notices is None else notices,
        names=[f"F{f}" for f in range(pool.features.shape[1])],
        settings=settings,
        goal=goal,
    )


@pytest.mark.parametrize("seed", range(5))
def test_on_two_features_nothing_on_a_dense_circle_is_better(seed: int) -> None:
    pool = random_pool(seed, features=2)
    angles = np.linspace(0, 2 * np.pi, 20_001)
    grid = max(Optimum.at(pool, np.array([np.cos(a), np.sin(a)])).bleu for a in angles)
    found = max(optimum.bleu for optimum in tuned(pool, [1.0, 1.0]).optima)
    assert found >= grid


@pytest.mark.parametrize("seed", range(10))
def test_bleu_never_falls_and_weights_give_what_is_reported(seed: int) -> None:
    pool = random_pool(seed, lists=3, size=5)
    start = np.random.default_rng(seed).standard_normal(3)
    result = tuned(pool, start)
    assert result.start.bleu == Optimum.at(pool, start).bleu
    assert result.best.bleu >= result.start.bleu
    assert result.best.bleu == Optimum.at(pool, result.best.weights).bleu
    assert np.abs(result.best.weights).sum() == pytest.approx(1, abs=1e-12)


def test_the_result_is_the_same_for_any_number_of_threads() -> None:
    pool = random_pool(0)
    one, three = (tuned(pool, np.ones(3), settings=replace(QUICK, threads=t)) for t in (1, 3))
    assert len(one.optima) == len(three.optima) == 1 + 5 + 2 * 5  # a leader by expected BLEU
    for a, b in zip(one.optima, three.optima, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(one.best.weights, three.best.weights)


def test_a_large_pool_gets_fewer_kicks(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, start = random_pool(3), [1.0, 1.0, 1.0]
    every = tuned(pool, start).optima
    monkeypatch.setattr(mert, "_KICKED", 2 * len(pool.features))
    fewer = tuned(pool, start).optima
    assert len(every) - len(fewer) == 2 * (5 - 2)
    np.testing.assert_array_equal(fewer[2].weights, every[2].weights)
    monkeypatch.setattr(mert, "_KICKED", 1)  # a kick of each chain at the least
    assert len(tuned(pool, start).optima) == len(every) - 2 * (5 - 1)


def test_another_seed_searches_elsewhere() -> None:
    pool = random_pool(0)
    one, two = (tuned(pool, np.ones(3), settings=replace(QUICK, seed=seed)) for seed in (1, 2))
    assert any((a.weights != b.weights).any() for a, b in zip(one.optima, two.optima, strict=True))


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**100, 1e-30, 1e30])
def test_scaling_a_feature_scales_its_weight_and_changes_no_choice(scale: float) -> None:
    pool = random_pool(1)
    factors = np.array([1.0, scale, 1.0])
    scaled = replace(pool, features=pool.features * factors)
    plain, other = tuned(pool, np.ones(3)).best, tuned(scaled, np.ones(3) / factors).best
    np.testing.assert_array_equal(other.statistics, plain.statistics)
    weights = other.weights * factors
    np.testing.assert_allclose(weights / np.abs(weights).sum(), plain.weights, rtol=1e-9)


def test_with_fixed_scores_the_scale_of_weights_is_kept() -> None:
    pool = random_pool(2)
    fixed = 1000 * pool.features[:, 0]
    rest = replace(pool, features=pool.features[:, 1:].copy(), fixed=fixed)
    best = tuned(rest, np.zeros(2)).best
    assert np.abs(best.weights).sum() > 10
    assert best.bleu == Optimum.at(pool, np.array([1000, *best.weights])).bleu


def test_without_a_four_gram_match_the_start_comes_back_with_a_notice() -> None:
    pool = random_pool(3)
    statistics = pool.statistics.copy()
    statistics[:, 3] = 0
    notices = Notices()
    result = tuned(replace(pool, statistics=statistics), [3.0, 2.0, 1.0], notices)
    np.testing.assert_array_equal(result.best.weights, [3.0, 2.0, 1.0])
    assert [n.kind for n in notices] == [
        "tuning on lists without a 4-gram match, where BLEU is nothing but its smoothing: "
        "the weights stay as given"
    ]
    with pytest.raises(InputError, match="4-gram"):
        tuned(replace(pool, statistics=statistics), np.ones(3), Notices(strict=True))


def test_constant_features_keep_their_share_of_the_weights_with_a_notice() -> None:
    pool = random_pool(4)
    features = np.insert(pool.features, 1, 0.1, axis=1)
    notices = Notices()
    best = tuned(replace(pool, features=features), [1.0, 2.0, 4.0, 1.0], notices).best
    assert best.weights[1] == pytest.approx(0.25)
    assert np.abs(best.weights).sum() == pytest.approx(1)
    assert notices.lines() == ["1 x constant feature, whose weight stays as given: F1"]


@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
def test_a_constant_feature_never_takes_all_of_the_weight(start: list[float]) -> None:
    pool = random_pool(5, features=2)
    best = tuned(replace(pool, features=np.insert(pool.features, 1, 7.0, axis=1)), start).best
    assert np.abs(best.weights[[0, 2]]).sum() >= 0.5
    assert np.abs(best.weights).sum() == pytest.approx(1)


def test_only_constant_features_leave_the_start() -> None:
    pool = random_pool(6)
    notices = Notices()
    constant = replace(pool, features=np.ones((180, 3)))
    result = tuned(constant, [0.0, 5.0, 0.0], notices)
    np.testing.assert_array_equal(result.best.weights, [0.0, 5.0, 0.0])
    assert [n.kind for n in notices][-1].startswith("tuning without a feature that varies")


def test_duplicated_features_are_reported() -> None:
    pool = random_pool(7)
    features = np.hstack([pool.features, pool.features[:, 1:2], pool.features[:, 1:2]])
    notices = Notices()
    tuned(replace(pool, features=features), np.ones(5), notices)
    assert notices.lines() == [
        "2 x feature that equals another, so that only the sum of their weights counts: "
        "F3 = F1, F4 = F1"
    ]


def test_an_empty_pool_leaves_the_start() -> None:
    np.testing.assert_array_equal(tuned(empty_pool(2), [1.0, 2.0]).best.weights, [1.0, 2.0])


def test_a_pool_without_lists_leaves_the_start_whatever_the_objective() -> None:
    pool = replace(empty_pool(2), documents=np.zeros(0, dtype=np.int64))
    result = tuned(pool, [1.0, 2.0], objective=DocumentMean())
    np.testing.assert_array_equal(result.best.weights, [1.0, 2.0])


@pytest.mark.parametrize(
    "options",
    [
        {"objective": DocumentMean(), "shrinkage": 1.0},
        {"objective": WorstDocuments(0.5), "length": 1.0},
    ],
    ids=["shrinkage", "length"],
)
def test_every_objective_gives_the_same_for_any_number_of_threads(options: dict[str, Any]) -> None:
    pool = replace(random_pool(8), documents=np.arange(12) % 3)
    one, two, three = (
        tuned(pool, np.ones(3), settings=MertSettings(3, 2, threads=t), **options)
        for t in (1, 2, 3)
    )
    for other in (two, three):
        np.testing.assert_array_equal(other.best.weights, one.best.weights)
        for a, b in zip(one.optima, other.optima, strict=True):
            np.testing.assert_array_equal(a.weights, b.weights)
            assert a.value == b.value


@pytest.mark.parametrize("seed", range(3))
def test_the_value_of_an_objective_with_prices_is_that_of_its_choices(seed: int) -> None:
    pool = replace(random_pool(seed, lists=6), documents=np.array([2, 0, 1, 1, 0, 2]))
    start = np.random.default_rng(seed).standard_normal(3)
    result = tuned(
        pool,
        start,
        settings=MertSettings(2, 2),
        objective=WorstDocuments(0.34),
        length="keep",
        shrinkage=2.0,
    )
    assert result.best.value >= result.start.value - 1e-9
    chosen = pool.choices(pool.scores(result.best.weights)).reshape(6)
    documents = [pool.statistics[chosen[[1, 4]]], pool.statistics[chosen[[2, 3]]]]
    documents.append(pool.statistics[chosen[[0, 5]]])
    scores = sorted(float(corpus_bleu(rows.sum(axis=0))) for rows in documents)
    spread = Axes.of(pool).scale
    a, b = start * spread, result.best.weights * spread
    cosine = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    off = abs(length_ratio(pool.statistics[chosen].sum(axis=0)) - length_ratio(pool.first))
    direct = (scores[0] + scores[1]) / 2 - 5 * float(off) - 2 * (1 - cosine)
    assert result.best.value == pytest.approx(direct, abs=1e-9)


def test_candidates_of_equal_statistics_return_the_start_with_norm_1() -> None:
    pool = random_pool(9)
    alike = np.tile(np.array([9, 8, 7, 6, 10, 9, 8, 7, 10]), (len(pool.features), 1))
    result = tuned(replace(pool, statistics=alike), [4.0, -2.0, 2.0])
    np.testing.assert_allclose(result.best.weights, [0.5, -0.25, 0.25], rtol=1e-12)


def test_a_start_that_nothing_betters_has_norm_1_whatever_its_price_rounds_to() -> None:
    pool = random_pool(9)
    alike = np.tile(np.array([9, 8, 7, 6, 10, 9, 8, 7, 10]), (len(pool.features), 1))
    settings = replace(QUICK, random_starts=0, kicks=0)
    for seed in range(20):
        start = np.random.default_rng(seed).standard_normal(3)
        result = tuned(replace(pool, statistics=alike), start, settings=settings, shrinkage=1e4)
        np.testing.assert_allclose(result.best.weights, start / np.abs(start).sum(), rtol=1e-9)


def test_the_scale_of_a_feature_is_that_of_its_weight() -> None:
    pool = random_pool(10)
    factors = np.array([1e-20, 1.0, 1e20])
    scaled = replace(pool, features=pool.features * factors)
    plain = tuned(pool, np.ones(3)).best
    other = tuned(scaled, np.ones(3) / factors).best
    np.testing.assert_array_equal(other.statistics, plain.statistics)
    weights = other.weights * factors
    np.testing.assert_allclose(weights / np.abs(weights).sum(), plain.weights, rtol=1e-6)


def bounded(
    pool: Pool, start: list[float], bounds: Bounds, settings: MertSettings = QUICK
) -> PoolResult:
    names = [f"F{f}" for f in range(pool.features.shape[1])]
    weights = np.array(start)
    return optimise(pool, weights, Notices(), names=names, settings=settings, bounds=bounds)


POSITIVE = Bounds(np.zeros(3), np.full(3, np.inf))
RANGES = Bounds(np.array([-1.0, 0.25, -np.inf]), np.array([1.0, 0.25, 0.5]))


@pytest.mark.parametrize("bounds", [POSITIVE, RANGES], ids=["positive", "ranges"])
@pytest.mark.parametrize("seed", range(2))
def test_weights_stay_within_bounds_and_do_not_fall(bounds: Bounds, seed: int) -> None:
    pool = random_pool(seed)
    pool = replace(pool, features=pool.features * np.array([1.0, -1.0, 1.0]))
    result = bounded(pool, [0.5, 0.25, 0.25], bounds)
    assert result.best.value >= result.start.value
    assert result.best.bleu == Optimum.at(pool, result.best.weights).bleu
    for optimum in (result.best, *result.optima):
        assert bounds.hold(optimum.weights)
    if bounds is POSITIVE:
        assert result.best.weights.sum() == pytest.approx(1)
    else:
        assert result.best.weights[1] == 0.25  # ranges settle the scale


def test_on_two_features_nothing_on_a_dense_quarter_circle_is_better() -> None:
    pool = random_pool(12, features=2)
    pool = replace(pool, features=pool.features * np.array([1.0, -1.0]))
    angles = np.linspace(0, np.pi / 2, 5001)
    grid = max(Optimum.at(pool, np.array([np.cos(a), np.sin(a)])).bleu for a in angles)
    bounds = Bounds(np.zeros(2), np.full(2, np.inf))
    assert bounded(pool, [1.0, 1.0], bounds).best.bleu >= grid


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ([0.5, 0.2, 0.0], r"start weight 0.2 of F1 is not between 0.25 and 0.25"),
        ([0.5, 0.25, 0.75], r"start weight 0.75 of F2 is not between -inf and 0.5"),
        ([np.nan, 0.25, 0.0], r"start weight nan of F0 is not between -1 and 1"),
    ],
)
def test_a_start_outside_the_bounds_is_refused(start: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bounded(random_pool(1), start, RANGES)


def test_earlier_weights_are_starts_and_clipped_to_bounds() -> None:
    pool = random_pool(13)
    names = ["F0", "F1", "F2"]
    good = tuned(pool, np.ones(3)).best
    idle = replace(QUICK, random_starts=0, kicks=0)
    without = tuned(pool, -np.ones(3), settings=idle)
    told: list[Optimum] = []
    with_it = optimise(
        pool,
        -np.ones(3),
        Notices(),
        names=names,
        settings=idle,
        history=[good.weights],
        report=told.append,
    )
    assert with_it.best.bleu >= max(good.bleu, without.best.bleu)
    assert len(with_it.optima) == len(without.optima) + 1
    assert len(told) == len(with_it.optima) + 2  # zeros and history are reported after the heat too
    within = optimise(
        pool,
        np.array([0.5, 0.25, 0.5]),
        Notices(),
        names=names,
        settings=idle,
        bounds=RANGES,
        history=[np.array([7.0, 7.0, 7.0])],
    )
    assert all(RANGES.hold(optimum.weights) for optimum in within.optima)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param([1.0, 3.0, 0.0], [0.125, 0.75, 0.125], id="share of 3/4"),
        pytest.param([0.0, 0.0, 0.0], [0.5, 0.0, 0.5], id="from zeros"),
        pytest.param([0.0, 1.0, 0.0], [0.25, 0.5, 0.25], id="constant weight only"),
    ],
)
def test_a_constant_weight_keeps_its_share_of_the_norm(
    start: list[float], expected: list[float]
) -> None:
    weights = unit_norm(
        np.array([8.0, start[1], 8.0]), start=np.array(start), varying=np.array([0, 2])
    )
    np.testing.assert_allclose(weights, expected, rtol=1e-12)


def test_a_high_price_keeps_to_the_direction_of_the_start() -> None:
    pool = random_pool(15)
    start, scale = np.array([1.0, -1.0, 0.2]), Axes.of(pool).scale
    cosines = []
    for shrinkage in (0.0, 20.0, 1e6):
        best = tuned(pool, start, shrinkage=shrinkage).best
        a, b = start * scale, best.weights * scale
        cosines.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert cosines == sorted(cosines)
    assert cosines[0] < 0.9
    assert cosines[-1] > 1 - 1e-3


def test_a_price_on_length_keeps_the_length_of_the_first_candidates() -> None:
    pool = random_pool(16)
    off = []
    for price in (0.0, 1e4):
        best = tuned(pool, np.ones(3), length="keep", price=price).best
        off.append(abs(best.ratio - float(length_ratio(pool.first))))
    assert off[1] <= off[0]
    assert off[1] < 0.01


def test_metrics_that_are_no_counts_are_tuned_for_beside_bleu() -> None:
    pool = random_pool(17)
    gain = pool.features @ np.array([1.0, -2.0, 0.5])
    wide = replace(pool, statistics=np.hstack([pool.statistics, gain[:, None]]))
    metric = MetricColumns("gain", 9, 10, lambda sums: np.asarray(sums[..., 0], dtype=np.float64))
    best = tuned(wide, np.ones(3), objective=CorpusMetric(metric)).best
    greatest = gain.reshape(12, 15).max(axis=1).sum()
    assert best.value == pytest.approx(greatest)  # the weights of the gain itself are optimal
    both = ObjectiveSum(((1.0, CorpusMetric()), (0.0, CorpusMetric(metric))))
    mixed, plain = tuned(wide, np.ones(3), objective=both).best, tuned(pool, np.ones(3)).best
    np.testing.assert_allclose(mixed.weights, plain.weights)
    assert mixed.bleu == plain.bleu


@pytest.mark.parametrize("threads", [1, 2])
def test_after_a_signal_no_further_ascent_begins(threads: int) -> None:
    """Schedulers kill half a minute after their signal."""
    pool, climbed = random_pool(3, lists=8), list[Optimum]()

    def report(found: Optimum) -> None:
        climbed.append(found)
        if len(climbed) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)  # longer than a wait of the main thread

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            optimise(
                pool,
                np.ones(3),
                Notices(),
                names=["a", "b", "c"],
                settings=MertSettings(kicks=15, threads=threads),
                report=report,
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(climbed) <= threads
