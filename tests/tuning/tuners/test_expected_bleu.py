"""Expected BLEU: by definition, by finite differences, at its maxima, and from any start."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pools import random_pool

from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.expected_bleu import (
    PENALTIES,
    _maxima,
    expected_bleu,
    log_expected_bleu,
)
from rerank.tuning.tuners.sentence_bleu import log_bleu
from rerank.tuning.tuners.standardised import LEAST, StandardisedPool


def space_of(pool: Pool) -> StandardisedPool:
    return StandardisedPool.of(pool, np.zeros(3))


@given(st.integers(0, 2**32 - 1), st.floats(0, 30))
def test_value_and_probabilities_are_those_of_the_definition(seed: int, norm: float) -> None:
    pool = random_pool(seed)
    space = space_of(pool)
    point = norm * np.random.default_rng(seed).standard_normal(3)
    probabilities = np.empty(len(pool.features))
    value, _ = log_expected_bleu(space, point, probabilities)
    expected = np.full(9, 1e-6)
    scores = space.rows @ point
    for a, b in pairwise(pool.offsets):
        p = np.exp(scores[a:b] - np.logaddexp.reduce(scores[a:b]))
        np.testing.assert_allclose(probabilities[a:b], p, rtol=1e-9, atol=1e-300)
        expected += p @ pool.statistics[a:b]
    assert value == pytest.approx(log_bleu(expected, np.empty(9)), rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(0, 5), st.sampled_from([0.0, 1.0]))
def test_the_gradient_is_that_of_finite_differences(seed: int, norm: float, fixed: float) -> None:
    pool = random_pool(seed, fixed=fixed)
    space = space_of(pool)
    point = norm * np.random.default_rng(seed).standard_normal(len(space.spreads))
    memory = np.empty(len(pool.features))
    _, gradient = log_expected_bleu(space, point, memory)
    for h in range(len(point)):
        step = np.zeros_like(point)
        step[h] = 1e-6
        up, down = (log_expected_bleu(space, point + s, memory)[0] for s in (step, -step))
        assert gradient[h] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("fixed", [0.0, 1.0])
def test_every_maximum_is_one_of_its_penalised_objective(fixed: float) -> None:
    """The gradient vanishes but for what L-BFGS leaves; against a bound it may point outwards."""
    pool = random_pool(3, lists=100, fixed=fixed)
    space = space_of(pool)
    memory = np.empty(len(pool.features))
    for l2, point in zip(PENALTIES, _maxima(space, space.point), strict=True):
        _, gradient = log_expected_bleu(space, point, memory)
        left = gradient - l2 * point
        if fixed and point[-1] == LEAST:
            left[-1] = max(left[-1], 0.0)
        assert np.abs(left).max() < 1e-3


def test_the_first_maximum_is_the_same_from_any_start_and_the_scale_grows() -> None:
    space = space_of(random_pool(4, lists=100))
    rng = np.random.default_rng(4)
    runs = [list(_maxima(space, start)) for start in rng.standard_normal((4, 3))]
    for maxima in runs:
        np.testing.assert_allclose(maxima[0], runs[0][0], rtol=0.02, atol=0.02)
        norms = [np.linalg.norm(point) for point in maxima]
        assert norms == sorted(norms)
        assert np.isfinite(norms).all()


def test_the_last_maximum_has_nearly_the_bleu_of_its_choices() -> None:
    pool = random_pool(5, lists=100)
    space = space_of(pool)
    *_, last = _maxima(space, space.point)
    value, _ = log_expected_bleu(space, last, np.empty(len(pool.features)))
    assert np.exp(value) * 100 == pytest.approx(
        Optimum.at(pool, space.weights(last)).bleu, rel=0.03
    )


def test_nothing_is_random() -> None:
    pool = random_pool(6)
    one, two = (expected_bleu(pool, np.ones(3), rng=np.random.default_rng(s)) for s in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_a_single_match_of_four_words_is_enough() -> None:
    """Expected matches may come near zero; logarithms stay finite."""
    pool = random_pool(7)
    rows = pool.statistics.copy()
    rows[:, 3] = 0
    rows[11, :4] = [5, 4, 3, 2]
    lone = Pool(pool.offsets, pool.features, rows, pool.fixed)
    found = expected_bleu(lone, np.array([0.1, 0.1, 0.1]), rng=np.random.default_rng(1))
    assert np.isfinite(found).all()
