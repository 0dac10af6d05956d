"""Batch MIRA: for each list the smallest step that makes hope lead fear by their gain.

Cherry and Foster (2012), https://aclanthology.org/N12-1047, with the choices of Moses' kbmira. Hope
is the candidate of a list with the largest score + gain, fear the one with the largest score −
gain, and the weights take the smallest step after which hope leads by as much score as gain, but
not too large a one:

    w ← w + min(C, (Δgain − w · Δx) / |Δx|²) Δx,    Δ = hope − fear,    if Δgain > w · Δx.

Gain is BLEU within a background that decays and grows by the hopes (`bleu_within`). After each pass
through the lists, in a new order, the weights averaged since the beginning are a candidate result;
the one with the best BLEU is taken.

C is 0.1 here, 0.01 in Moses: there steps are for features as they come, whose squared spreads are
about 10, here for spread 1. With 0.01 the length of the output does not settle in 60 passes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.sentence_bleu import bleu_within
from rerank.tuning.tuners.standardised import SUMS, StandardisedPool

PASSES = 60
LARGEST = 0.1  # C
_DECAY = 0.999
_BACKGROUND = (4.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0, 4.0)  # at first: four words, all right


def mira(
    pool: Pool, start: NDArray[np.float64], *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Weights (F,) by batch MIRA; `start` (F,) where none found have a better BLEU on the pool.

    Features count in units of their spread, in which `start` is taken at length 1. `rng` draws the
    order of the lists in each of 60 passes. O(n F) for each pass.
    """
    space = StandardisedPool.of(pool, start)
    if space.silent:
        return space.best()
    return space.best(_averages(space, space.point, rng))


def _averages(
    space: StandardisedPool, start: NDArray[np.float64], rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """The average (H,) of all points until the end of each pass."""
    pool, bounds = space.pool, space.bounds
    point, sums, background = start.copy(), np.zeros_like(start), np.array(_BACKGROUND)
    lists = np.flatnonzero(np.diff(pool.offsets) > 1)
    for done in range(1, PASSES + 1):
        order = rng.permutation(lists)
        state = (point, sums, background)
        _pass(pool.offsets, space.rows, pool.statistics, order, bounds, state)
        yield sums / (done * len(lists))


@njit(cache=True, nogil=True, error_model="numpy", fastmath=SUMS)
def _pass(
    offsets: NDArray[np.int64],
    rows: NDArray[np.float64],
    statistics: NDArray[np.integer],
    order: NDArray[np.int64],
    bounds: NDArray[np.float64],
    state: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
) -> None:
    """Visit the lists in an order; `state` = (point, sum of points, background) moves on."""
    point, sums, background = state
    scores = np.empty((offsets[1:] - offsets[:-1]).max())
    for s in order:
        start, end = offsets[s], offsets[s + 1]
        for row in range(start, end):
            scores[row - start] = 0.0
            for h in range(len(point)):
                scores[row - start] += point[h] * rows[row, h]
        hope = fear = start
        highest = lowest = -np.inf
        hope_gain = fear_gain = 0.0
        for row in range(start, end):
            score, gain = scores[row - start], bleu_within(statistics[row], background)
            if score + gain > highest:
                hope, highest, hope_gain = row, score + gain, gain
            if score - gain > lowest:
                fear, lowest, fear_gain = row, score - gain, gain
        if hope != fear:
            lead = scores[hope - start] - scores[fear - start]
            _step(point, rows[hope] - rows[fear], hope_gain - fear_gain - lead, bounds)
            for k in range(len(background)):
                background[k] = _DECAY * background[k] + statistics[hope, k]
        for h in range(len(point)):
            sums[h] += point[h]


@njit(cache=True, nogil=True, error_model="numpy")
def _step(
    point: NDArray[np.float64],
    difference: NDArray[np.float64],
    loss: float,
    bounds: NDArray[np.float64],
) -> None:
    """Move a point (H,) along hope − fear until no `loss` is left, or as far as it may."""
    if loss > 0:
        size = min(LARGEST, loss / (difference**2).sum())
        for h in range(len(point)):
            point[h] = max(point[h] + size * difference[h], bounds[h])
