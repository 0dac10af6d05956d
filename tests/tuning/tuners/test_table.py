"""The table of tuners, and the laws that all of them keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.pools import empty_pool, planted_pool

from rerank.errors import UsageError
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.table import ALGORITHMS, Tuner, load

PLANTED = (1.0, 2.0, -1.0)
TUNERS = [pytest.param(load(name), id=name) for name in ALGORITHMS]
every_tuner = pytest.mark.parametrize("tune", TUNERS)


def pool_of(seed: int) -> Pool:
    """Forty lists of which the planted weights have nearly the best BLEU."""
    return planted_pool(seed, PLANTED, lists=40, noise=0.3)


def tuned(
    tune: Tuner, pool: Pool, start: NDArray[np.float64] | list[float], seed: int = 1
) -> NDArray[np.float64]:
    """What a tuner finds from arrays that cannot be written to; finite, and never worse."""
    weights = np.array(start, dtype=np.float64)
    for array in (weights, pool.offsets, pool.features, pool.statistics, pool.fixed):
        array.flags.writeable = False
    found = tune(pool, weights, rng=np.random.default_rng(seed))
    assert found.shape == weights.shape
    assert np.isfinite(found).all()
    if weights.any():
        assert found.any()
        assert Optimum.at(pool, found).bleu >= Optimum.at(pool, weights).bleu
    return found


def test_the_names_are_those_of_the_command_line() -> None:
    assert list(ALGORITHMS) == ["pro", "expected-bleu"]


def test_an_unknown_name_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError) as told:
        load("prow")
    assert str(told.value) == (
        "no tuning algorithm is called 'prow'; did you mean pro? there are mert, pro, expected-bleu"
    )


@every_tuner
@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [-1.0, -1.0, 1.0], [0.3, 0.1, 5.0]])
def test_the_planted_optimum_is_nearly_reached(tune: Tuner, start: list[float]) -> None:
    """The planted weights have the best BLEU that can be had, but for noise."""
    pool = pool_of(0)
    planted = np.array(PLANTED)
    found = tuned(tune, pool, start)
    begun = Optimum.at(pool, np.array(start)).bleu
    best = Optimum.at(pool, planted).bleu
    assert Optimum.at(pool, found).bleu > begun + 0.8 * (best - begun)
    assert found @ planted > 0.8 * np.linalg.norm(found) * np.linalg.norm(planted)


def scattered_pool(seed: int) -> Pool:
    """Five lists of up to four candidates; features and fixed scores that tie, or are all zero."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 5, size=5)
    n = int(sizes.sum())
    totals = np.maximum(rng.integers(0, 9, size=(n, 1)) - np.arange(4), 0)
    matches = rng.integers(0, totals + 1)
    return Pool(
        np.concatenate([[0], np.cumsum(sizes)]),
        rng.integers(-1, 2, size=(n, 3)) * rng.integers(0, 2, size=3) * 10.0 ** rng.integers(-9, 9),
        np.hstack([matches, totals, rng.integers(1, 9, size=(n, 1))]),
        rng.integers(-1, 2, size=n).astype(np.float64) * float(rng.integers(0, 2)),
    )


@every_tuner
@given(seed=st.integers(0, 2**32 - 1))
def test_on_any_pool_weights_are_finite_and_never_worse(tune: Tuner, seed: int) -> None:
    pool = scattered_pool(seed)
    tuned(tune, pool, np.random.default_rng(seed).integers(-2, 3, size=3).astype(np.float64))


@every_tuner
def test_the_same_seed_finds_the_same_weights(tune: Tuner) -> None:
    pool = pool_of(1)
    one, two = (tuned(tune, pool, [0.1, 0.0, 0.0]) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@every_tuner
@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60, 2.0**-300])
def test_a_feature_in_other_units_has_the_weight_in_other_units(tune: Tuner, scale: float) -> None:
    """Powers of two, which round nothing."""
    pool = pool_of(2)
    factors = np.array([1.0, scale, 1.0])
    plain = tuned(tune, pool, [0.1, 0.2, 0.3])
    other = tuned(tune, replace(pool, features=pool.features * factors), [0.1, 0.2, 0.3] / factors)
    np.testing.assert_allclose(other * factors, plain, rtol=1e-9)


@every_tuner
def test_a_feature_in_units_that_round_has_about_the_weight(tune: Tuner) -> None:
    pool = pool_of(2)
    factors = np.array([1.0, 1e5 / 3, 1.0])
    plain = tuned(tune, pool, [0.1, 0.2, 0.3])
    other = tuned(tune, replace(pool, features=pool.features * factors), [0.1, 0.2, 0.3] / factors)
    np.testing.assert_allclose(other * factors, plain, rtol=1e-3)


@every_tuner
def test_features_that_vary_in_no_list_keep_their_weight(tune: Tuner) -> None:
    pool = pool_of(3)
    of_lists = np.repeat(np.arange(40.0), 15)[:, None]
    features = np.hstack([np.full((600, 1), 0.1), pool.features, of_lists])
    found = tuned(tune, replace(pool, features=features), [7.0, 0.1, 0.1, 0.1, -3.0])
    assert (found[0], found[-1]) == (7, -3)
    np.testing.assert_array_equal(found[1:-1], tuned(tune, pool, [0.1, 0.1, 0.1]))


@every_tuner
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_fixed_scores_settle_the_scale_of_the_weights(tune: Tuner, size: float) -> None:
    """Two thirds of what is planted are fixed: the others must come to fit, in their scale."""
    pool = pool_of(4)
    fixed = size * (pool.features @ [1.0, 2.0, 0.0])
    rest = replace(pool, features=pool.features[:, 2:].copy(), fixed=fixed)
    found = tuned(tune, rest, [0.0])
    assert -3 * size < found[0] < -size / 3


@every_tuner
def test_fixed_scores_that_mislead_stay_as_they_are(tune: Tuner) -> None:
    pool = pool_of(5)
    misled = replace(pool, fixed=-10.0 * pool.features[:, 0])
    start = np.zeros(3)
    found = tune(misled, start, rng=np.random.default_rng(1))
    assert np.isfinite(found).all()
    assert Optimum.at(misled, found).bleu > Optimum.at(misled, start).bleu + 1


@every_tuner
def test_without_a_four_gram_match_the_start_comes_back(tune: Tuner) -> None:
    pool = pool_of(6)
    statistics = pool.statistics.copy()
    statistics[:, 3] = 0
    found = tuned(tune, replace(pool, statistics=statistics), [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(found, [3, 2, 1])


@every_tuner
@pytest.mark.parametrize("start", [[0.0, 0.0], [0.25, 0.75]])
def test_without_a_feature_that_varies_the_start_comes_back(
    tune: Tuner, start: list[float]
) -> None:
    pool = pool_of(7)
    constant = replace(pool, features=np.ones((600, 2)), fixed=pool.features[:, 0])
    np.testing.assert_array_equal(tuned(tune, constant, start), start)


@every_tuner
def test_where_nothing_is_better_the_start_comes_back(tune: Tuner) -> None:
    """Every candidate of a list has the same statistics."""
    pool = pool_of(8)
    first = np.repeat(pool.offsets[:-1], 15)
    alike = replace(pool, statistics=pool.statistics[first])
    np.testing.assert_array_equal(tuned(tune, alike, [1.0, -2.0, 0.5]), [1, -2, 0.5])


@every_tuner
def test_an_empty_pool_leaves_the_start(tune: Tuner) -> None:
    np.testing.assert_array_equal(tuned(tune, empty_pool(2), [1.0, 2.0]), [1, 2])


@every_tuner
def test_empty_lists_lists_of_one_and_gaps_do_no_harm(tune: Tuner) -> None:
    """The last list is that of sentences without candidates: a reference and no words."""
    pool = pool_of(9)
    gap = np.array([[0, 0, 0, 0, 0, 0, 0, 0, 50]])
    offsets = np.concatenate([[0, 0, 1], pool.offsets[1:], [600, 601]])
    more = Pool(
        offsets,
        np.vstack([pool.features, np.zeros((1, 3))]),
        np.vstack([pool.statistics, gap]),
        np.zeros(601),
    )
    found = tuned(tune, more, [0.0, -1.0, 0.0])
    assert found @ PLANTED > 0.8 * np.linalg.norm(found) * np.sqrt(6)


@every_tuner
def test_weights_that_are_not_finite_are_an_error(tune: Tuner) -> None:
    with pytest.raises(ValueError, match="not finite"):
        tune(pool_of(0), np.array([np.nan, 1.0, 1.0]), rng=np.random.default_rng(1))
