"""PRO: the pairs it draws, its loss by finite differences and at its optimum, planted weights."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.pro import L2, _logistic, _pairs, pro
from rerank.tuning.tuners.sentence_bleu import bleu_plus_one
from rerank.tuning.tuners.standardised import StandardisedPool


def separable_pool(seed: int, truth: NDArray[np.float64]) -> Pool:
    """Matches grow with features · truth, without noise; all lengths are equal."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((60 * 20, len(truth)))
    quality = 0.1 + 0.8 * expit(features @ truth)
    totals = np.broadcast_to(1000 - np.arange(4), (1200, 4))
    matches = (totals * quality[:, None]).astype(np.int64)
    rows = np.hstack([matches, totals, np.full((1200, 1), 1000)])
    return Pool(np.arange(0, 1201, 20), features, rows, np.zeros(1200))


@pytest.mark.parametrize("seed", range(3))
def test_on_separable_lists_the_direction_is_recovered(seed: int) -> None:
    truth = np.random.default_rng(seed).standard_normal(4)
    pool = separable_pool(seed, truth)
    found = pro(pool, np.zeros(4), rng=np.random.default_rng(seed))
    assert found @ truth > 0.999 * np.linalg.norm(found) * np.linalg.norm(truth)


def test_pairs_are_of_one_list_better_first_and_those_that_differ_most() -> None:
    quality = np.array([0.1, 0.2, 0.7, 0.5, 0.52, 0.9])
    offsets = np.array([0, 3, 3, 5, 6])
    better, worse = _pairs(offsets, quality, np.random.default_rng(0))
    found = set(zip(better.tolist(), worse.tolist(), strict=True))
    assert found == {(2, 0)}  # over 5,000 draws it comes more than fifty times
    assert len(better) == 50


def test_pairs_that_hardly_differ_are_left_out_and_all_others_may_come() -> None:
    quality = np.array([0.10, 0.14, 0.20, 0.20])
    better, worse = _pairs(np.array([0, 4]), quality, np.random.default_rng(0))
    assert set(zip(better.tolist(), worse.tolist(), strict=True)) <= {(2, 0), (3, 0)}
    close = np.array([0.5, 0.51, 0.54])
    assert [len(rows) for rows in _pairs(np.array([0, 3]), close, np.random.default_rng(0))] == [
        0,
        0,
    ]


def test_another_seed_draws_other_pairs() -> None:
    quality = np.random.default_rng(0).uniform(size=100)
    one, two = (_pairs(np.array([0, 100]), quality, np.random.default_rng(s)) for s in (1, 2))
    assert (one[0] != two[0]).any()


@pytest.mark.parametrize("size", [0.0, 1.0, 1000.0])
def test_the_loss_and_its_gradient_are_those_of_the_definition(size: float) -> None:
    rng = np.random.default_rng(1)
    differences, point = rng.standard_normal((50, 3)), size * rng.standard_normal(3)
    gradient = np.ones(3)
    loss = _logistic(differences, point, gradient)
    margins = differences @ point
    assert loss == pytest.approx(np.logaddexp(0, -margins).mean(), rel=1e-12)
    truth = 1 - expit(-margins) @ differences / 50
    np.testing.assert_allclose(gradient, truth, rtol=1e-12)


def test_the_optimum_is_one() -> None:
    """The gradient of the whole objective, written anew, vanishes there."""
    pool = separable_pool(5, np.array([1.0, -0.5]))
    found = pro(pool, np.zeros(2), rng=np.random.default_rng(7))
    space = StandardisedPool.of(pool, found)
    better, worse = _pairs(pool.offsets, bleu_plus_one(pool.statistics), np.random.default_rng(7))
    differences = space.rows[better] - space.rows[worse]
    point = found * space.spreads
    gradient = L2 * point - expit(-(differences @ point)) @ differences / len(differences)
    assert np.abs(gradient).max() < 1e-4


def test_the_start_has_the_share_that_gives_the_best_bleu() -> None:
    """Ten mixtures, made here from what is found from zeros."""
    planted = np.array([1.0, 0.5, -0.5])
    pool = separable_pool(8, planted)
    noise = np.random.default_rng(8).integers(-200, 200, size=(1200, 1))
    rows = pool.statistics + np.where(np.arange(9) < 4, noise, 0).clip(-50)
    pool = Pool(pool.offsets, pool.features, rows, pool.fixed)
    alone = pro(pool, np.zeros(3), rng=np.random.default_rng(9))
    space = StandardisedPool.of(pool, planted)
    size = np.linalg.norm(alone * space.spreads)
    mixtures = [(1 - s) * alone + s * size * space.weights(space.point) for s in np.arange(10) / 10]
    found = pro(pool, planted, rng=np.random.default_rng(9))
    best = max(Optimum.at(pool, w).bleu for w in (planted, *mixtures))
    assert Optimum.at(pool, found).bleu == best


def test_without_a_pair_the_start_comes_back() -> None:
    pool = separable_pool(6, np.array([1.0, -0.5]))
    rows = pool.statistics.copy()
    rows[:, :8] = [500, 400, 300, 200, 1000, 999, 998, 997]
    rows[::2, 3] += 1
    close = Pool(pool.offsets, pool.features, rows, pool.fixed)
    found = pro(close, np.array([2.0, 1.0]), rng=np.random.default_rng(0))
    assert found.tolist() == [2, 1]
