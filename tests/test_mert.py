"""Minimum error rate training: grids, laws, and what is done where BLEU says nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.errors import InputError
from rerank.notices import Notices
from rerank.tuning.ascent import Optimum
from rerank.tuning.criterion import Criterion
from rerank.tuning.mert import Settings, Tuned, optimise
from rerank.tuning.pool import Pool

QUICK = Settings(Criterion(length="free"), random_starts=5, kicks=5)


def random_pool(seed: int, *, lists: int = 12, size: int = 15, features: int = 3) -> Pool:
    """Lists whose candidates match the reference the better, the larger features · (1, …, 1) is."""
    rng = np.random.default_rng(seed)
    n = lists * size
    values = rng.standard_normal((n, features))
    quality = 1 / (1 + np.exp(-values.sum(axis=1) - rng.standard_normal(n)))
    length = rng.integers(8, 14, size=n)
    totals = length[:, None] - np.arange(4)
    matches = (totals * quality[:, None] ** np.arange(1, 5)).astype(np.int64)
    reference = np.repeat(rng.integers(8, 14, size=lists), size)[:, None]
    offsets = np.arange(0, n + 1, size)
    return Pool(offsets, values, np.hstack([matches, totals, reference]), np.zeros(n))


def tuned(
    pool: Pool,
    start: NDArray[np.float64] | list[float],
    notices: Notices | None = None,
    settings: Settings = QUICK,
) -> Tuned:
    names = [f"F{f}" for f in range(pool.features.shape[1])]
    weights = np.array(start, dtype=np.float64)
    return optimise(
        pool,
        weights,
        Notices() if notices is None else notices,
        names=names,
        settings=settings,
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
    assert len(one.optima) == len(three.optima) == 1 + 4 + 2 * 5
    for a, b in zip(one.optima, three.optima, strict=True):
        np.testing.assert_array_equal(a.weights, b.weights)
    np.testing.assert_array_equal(one.best.weights, three.best.weights)


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
        "tuning on lists without a 4-gram match, where BLEU is 0 for all weights: "
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
    assert [n.kind for n in notices] == ["constant feature F1: its weight stays as given"]


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
    assert [n.kind for n in notices] == [
        f"feature F{f} equals F1: only the sum of their weights counts" for f in (3, 4)
    ]


def test_an_empty_pool_leaves_the_start() -> None:
    pool = Pool(np.array([0]), np.zeros((0, 2)), np.zeros((0, 9), dtype=np.int64), np.zeros(0))
    np.testing.assert_array_equal(tuned(pool, [1.0, 2.0]).best.weights, [1.0, 2.0])
