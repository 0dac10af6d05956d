"""Batch MIRA: its step in closed form on lists of two, its averages, and what it ignores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.mira import _BACKGROUND, _DECAY, LARGEST, _averages, mira
from rerank.tuning.tuners.sentence_bleu import bleu_within
from rerank.tuning.tuners.standardised import StandardisedPool

GOOD = [8, 6, 4, 2, 8, 7, 6, 5, 8]
BAD = [6, 3, 1, 0, 8, 7, 6, 5, 8]


def lists_of_two(count: int, seed: int = 0) -> Pool:
    """The first candidate is good, the second bad; two features."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((2 * count, 2))
    return Pool(
        np.arange(0, 2 * count + 1, 2), features, np.array([GOOD, BAD] * count), np.zeros(2 * count)
    )


def by_definition(
    space: StandardisedPool, rng: np.random.Generator, passes: int
) -> list[NDArray[np.float64]]:
    """Averages after each pass: the closed form of the step on lists of (good, bad)."""
    w, background = space.point.copy(), np.array(_BACKGROUND)
    seen, averages = [], []
    for _ in range(passes):
        for s in rng.permutation(len(space.pool.offsets) - 1):
            dx = space.rows[2 * s] - space.rows[2 * s + 1]
            gain = bleu_within(np.array(GOOD), background) - bleu_within(np.array(BAD), background)
            if gain > abs(w @ dx):  # hope is the good one and fear the bad one
                w = w + min(LARGEST, float((gain - w @ dx) / (dx @ dx))) * dx
                background = _DECAY * background + GOOD
            seen.append(w)
        averages.append(np.mean(seen, axis=0))
    return averages


@pytest.mark.parametrize("seed", range(5))
def test_on_lists_of_two_steps_and_averages_are_those_of_the_closed_form(seed: int) -> None:
    pool = lists_of_two(6, seed)
    space = StandardisedPool.of(pool, np.array([0.3, -0.2]))
    found = list(_averages(space, space.point, np.random.default_rng(seed)))
    truth = by_definition(space, np.random.default_rng(seed), len(found))
    np.testing.assert_allclose(found, truth, rtol=1e-9)


@pytest.mark.parametrize(("size", "bound"), [(0.1, True), (1.0, True), (100.0, False)])
def test_a_step_leaves_no_loss_or_is_the_largest(size: float, bound: bool) -> None:
    """One list, one pass from zeros: afterwards w · Δx = Δgain, unless C binds."""
    whole = StandardisedPool.of(lists_of_two(1), np.zeros(2))
    space = replace(whole, rows=size * whole.rows)
    dx = space.rows[0] - space.rows[1]
    background = np.array(_BACKGROUND)
    gain = bleu_within(np.array(GOOD), background) - bleu_within(np.array(BAD), background)
    after = next(iter(_averages(space, space.point, np.random.default_rng(0))))
    if bound:
        np.testing.assert_allclose(after, LARGEST * dx, rtol=1e-12)
        assert after @ dx < gain
    else:
        assert after @ dx == pytest.approx(gain, rel=1e-12)
        assert np.linalg.norm(after) < LARGEST * np.linalg.norm(dx)


def test_another_seed_visits_the_lists_in_another_order() -> None:
    pool = lists_of_two(30)
    space = StandardisedPool.of(pool, np.zeros(2))
    one, two = (next(iter(_averages(space, space.point, np.random.default_rng(s)))) for s in (1, 2))
    assert (one != two).any()


def test_separable_lists_are_separated() -> None:
    rng = np.random.default_rng(3)
    pool = lists_of_two(40)
    truth = np.array([1.0, -2.0])
    features = rng.standard_normal((40, 2, 2))
    order = np.argsort(-(features @ truth), axis=1)
    features = np.take_along_axis(features, order[:, :, None], axis=1).reshape(80, 2)
    found = mira(Pool(pool.offsets, features, pool.statistics, pool.fixed), -truth, rng=rng)
    scores = (features @ found).reshape(40, 2)
    assert (scores[:, 0] > scores[:, 1]).mean() >= 0.9
