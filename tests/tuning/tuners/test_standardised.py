"""A standardised pool: the same choices as of the pool itself, in units that do not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners import standardised
from rerank.tuning.tuners.standardised import LEAST, StandardisedPool


def random_pool(seed: int, *, fixed: float = 0.0) -> Pool:
    """Six lists of up to five candidates, dyadic features of which the second varies in none."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 6, size=6)
    sizes[0] = 5
    n = int(sizes.sum())
    features = rng.integers(-8, 9, size=(n, 3)) / 4
    features[:, 1] = np.repeat(rng.integers(0, 9, size=6) / 4, sizes)
    features[:2, [0, 2]] = [[0, 0], [1, -1]]
    statistics = rng.integers(1, 9, size=(n, 9))
    fixed_scores = fixed * rng.integers(-8, 9, size=n).astype(np.float64)
    return Pool(np.concatenate([[0], np.cumsum(sizes)]), features, statistics, fixed_scores)


def choices(pool: Pool, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    return pool.choices(pool.scores(weights))


def test_features_have_spread_one_and_begin_with_zero() -> None:
    pool = random_pool(0, fixed=3.0)
    space = StandardisedPool.of(pool, np.ones(3))
    np.testing.assert_array_equal(space.features, [0, 2])
    np.testing.assert_array_equal(space.spreads[:2], Axes.of(pool).spreads)
    of_lists = [space.rows[a:b].T for a, b in zip(pool.offsets, pool.offsets[1:], strict=False)]
    squares = [((c - c.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for c in of_lists if c.size]
    np.testing.assert_allclose(np.sum(squares, axis=0), len(pool.features), rtol=1e-12)
    for column in of_lists:
        assert not column[:, :1].any()


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.25, 4.0]))
def test_the_way_to_a_point_and_back_changes_no_weight_but_for_a_factor(
    seed: int, fixed: float
) -> None:
    """With fixed scores there is no factor: their weight is 1."""
    pool = random_pool(seed, fixed=fixed)
    start = np.random.default_rng(seed).standard_normal(3)
    space = StandardisedPool.of(pool, start)
    back = space.weights(space.point)
    assert back[1] == start[1]
    assert np.linalg.norm(space.point) == pytest.approx(1)
    if space.anchored:
        np.testing.assert_allclose(back, start, rtol=1e-12)
    else:
        np.testing.assert_allclose(back[[0, 2]] * start[0], start[[0, 2]] * back[0], rtol=1e-12)
        assert back[0] * start[0] > 0


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.25, 4.0]))
def test_a_point_chooses_what_its_weights_choose(seed: int, fixed: float) -> None:
    pool = random_pool(seed, fixed=fixed)
    space = StandardisedPool.of(pool, np.zeros(3))
    point = np.random.default_rng(seed).standard_normal(len(space.spreads))
    point = np.maximum(point, space.bounds)
    np.testing.assert_array_equal(
        pool.choices(space.rows @ point), choices(pool, space.weights(point))
    )


def test_only_fixed_scores_are_bounded() -> None:
    free = StandardisedPool.of(random_pool(1), np.zeros(3))
    bound = StandardisedPool.of(random_pool(1, fixed=1.0), np.zeros(3))
    assert not free.anchored
    assert bound.anchored
    assert free.bounds.tolist() == [-np.inf, -np.inf]
    assert bound.bounds.tolist() == [-np.inf, -np.inf, LEAST]
    assert free.point.tolist() == [0, 0]
    assert bound.point.tolist() == [0, 0, 1]


def test_start_weights_far_above_fixed_scores_are_drawn_towards_them() -> None:
    space = StandardisedPool.of(random_pool(1, fixed=1.0), np.full(3, 1e9))
    assert space.point[-1] == LEAST


@pytest.mark.parametrize("exponent", [-900, 900])
def test_features_of_any_size_have_the_same_rows(exponent: int) -> None:
    pool = random_pool(2)
    plain = StandardisedPool.of(pool, np.ones(3))
    scaled = replace(pool, features=np.ldexp(pool.features, exponent))
    other = StandardisedPool.of(scaled, np.ldexp(np.ones(3), -exponent))
    np.testing.assert_array_equal(other.rows, plain.rows)
    np.testing.assert_array_equal(other.point, plain.point)
    weights = np.ldexp(other.weights(other.point), exponent)
    np.testing.assert_array_equal(weights[[0, 2]], plain.weights(plain.point)[[0, 2]])


def test_silence_is_no_match_of_four_words_or_nothing_that_varies() -> None:
    pool = random_pool(3, fixed=1.0)
    unmatched = pool.statistics.copy()
    unmatched[:, 3] = 0
    start = np.ones(3)
    assert not StandardisedPool.of(pool, start).silent
    assert StandardisedPool.of(replace(pool, statistics=unmatched), start).silent
    assert StandardisedPool.of(replace(pool, features=0 * pool.features), start).silent


def test_the_best_is_the_best_of_start_and_points() -> None:
    pool = random_pool(4)
    space = StandardisedPool.of(pool, np.array([0.5, 1.0, 0.5]))
    points = np.random.default_rng(4).standard_normal((20, 2))
    of_points = [Optimum.at(pool, space.weights(point)).bleu for point in points]
    begun = Optimum.at(pool, space.start).bleu
    assert len({*of_points, begun}) > 2
    found = Optimum.at(pool, space.best(points)).bleu
    assert found == max(*of_points, begun)
    worst = points[np.argmin(of_points)]
    assert min(of_points) < begun
    np.testing.assert_array_equal(space.best([worst]), space.start)
    np.testing.assert_array_equal(space.best(), space.start)


def test_zeros_yield_to_any_weights_unless_something_is_fixed() -> None:
    pool = random_pool(5)
    zeros = np.zeros(3)
    points = np.random.default_rng(5).standard_normal((20, 2))
    free = StandardisedPool.of(pool, zeros)
    worse = min(points, key=lambda point: Optimum.at(pool, free.weights(point)).bleu)
    assert Optimum.at(pool, free.weights(worse)).bleu < Optimum.at(pool, zeros).bleu
    np.testing.assert_array_equal(free.best([0 * worse, worse]), free.weights(worse))
    flat = StandardisedPool.of(replace(pool, fixed=pool.features[:, 0]), zeros)
    begun = Optimum.at(flat.pool, zeros).bleu
    assert Optimum.at(flat.pool, flat.best([np.append(p, 1.0) for p in points])).bleu >= begun


def test_weights_beyond_floats_are_none() -> None:
    pool = random_pool(6)
    small = replace(pool, features=np.ldexp(pool.features, -1000))
    space = StandardisedPool.of(small, np.ones(3))
    np.testing.assert_array_equal(space.best([np.full(2, 1e300)]), space.start)


def test_a_start_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"start weights that are not finite: \[nan, 0.0, 1.0\]"):
        StandardisedPool.of(random_pool(0), np.array([np.nan, 0.0, 1.0]))


@pytest.mark.parametrize("most", [1, 2, 7, 10**6])
def test_rows_do_not_depend_on_how_many_are_filled_at_once(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = random_pool(3, fixed=1.0)
    firsts = np.repeat(pool.offsets[:-1], np.diff(pool.offsets))
    columns = np.column_stack([pool.features[:, [0, 2]], pool.fixed])
    monkeypatch.setattr(standardised, "_BLOCK", most)
    space = StandardisedPool.of(pool, np.ones(3))
    np.testing.assert_array_equal(space.rows, (columns - columns[firsts]) / space.spreads)
