"""Random search: choices by definition, even directions, and a near optimum on few features."""

from __future__ import annotations

import numpy as np
import pytest

from rerank.metrics.bleu import corpus_bleu
from rerank.tuning.ascent import Optimum
from rerank.tuning.pool import Pool
from rerank.tuning.random_search import _best, _directions, random_search
from rerank.tuning.standardised import LEAST, Standardised


def random_pool(seed: int, *, features: int = 3, fixed: float = 0.0) -> Pool:
    """Twelve lists of 15: the larger features · (1, …, 1) is, the better candidates match."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((180, features))
    quality = 1 / (1 + np.exp(-values.sum(axis=1) - rng.standard_normal(180)))
    length = rng.integers(8, 14, size=180)
    totals = length[:, None] - np.arange(4)
    matches = (totals * quality[:, None] ** np.arange(1, 5)).astype(np.int64)
    reference = np.repeat(rng.integers(8, 14, size=12), 15)[:, None]
    rows = np.hstack([matches, totals, reference])
    return Pool(np.arange(0, 181, 15), values, rows, fixed * rng.standard_normal(180))


@pytest.mark.parametrize("fixed", [0.0, 1.0])
def test_the_best_point_is_the_one_that_chooses_best(fixed: float) -> None:
    pool = random_pool(0, fixed=fixed)
    space = Standardised.of(pool, np.zeros(3))
    points = np.random.default_rng(0).standard_normal((50, len(space.spreads)))
    best, bleu = _best(space, points)
    inside = np.maximum(points, space.bounds)
    truth = [corpus_bleu(pool.total(pool.choices(space.rows @ p))) for p in inside]
    assert bleu == max(truth)
    np.testing.assert_array_equal(best, inside[np.argmax(truth)])
    assert not fixed or best[-1] >= LEAST


def test_directions_have_length_one_and_no_preference() -> None:
    """The mean of 20,000 has standard error 1 ÷ √60,000 in each of three coordinates."""
    space = Standardised.of(random_pool(1), np.zeros(3))
    drawn = _directions(space, 20_000, np.random.default_rng(1))
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1, rtol=1e-12)
    assert np.abs(drawn.mean(axis=0)).max() < 4 / np.sqrt(60_000)
    np.testing.assert_allclose(drawn.T @ drawn / 20_000, np.eye(3) / 3, atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_on_two_features_it_comes_near_the_best_of_a_dense_circle(seed: int) -> None:
    pool = random_pool(seed, features=2)
    angles = np.linspace(0, 2 * np.pi, 5001)
    grid = [Optimum.at(pool, np.array([np.cos(a), np.sin(a)])).bleu for a in angles]
    found = random_search(pool, np.array([-1.0, 0.5]), rng=np.random.default_rng(seed))
    assert Optimum.at(pool, found).bleu >= np.quantile(grid, 0.999)


def test_another_seed_searches_elsewhere() -> None:
    pool = random_pool(4)
    one, two = (random_search(pool, np.ones(3), rng=np.random.default_rng(s)) for s in (1, 2))
    assert (one != two).any()
