"""Rounds on pools of the tuning set's own k-best lists: every candidate with its features.

Features of order 0 need one pool. The value of a contextual feature exists only given the choices
around a candidate: each round scores all candidates under the path decoded last. Rows of earlier
pools are not kept, since no neighbour chooses their context any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool
from rerank.tuning.rounds import DecodedWeights, Rounds, TunePool

P = TypeVar("P")
"""A path, with the choices for all documents."""

STILL = 1e-5


def one_pool(
    start: NDArray[np.float64],
    pool: Pool,
    decode: Callable[[NDArray[np.float64]], Sums],
    tune: TunePool,
    reason: str,
) -> Rounds:
    """The start weights (F,), and one round.

    decode: summed statistics (D, W) of what weights (F,) choose; reason: why one round is enough
    """
    yield DecodedWeights(start, decode(start))
    found = tune(pool, start)
    yield DecodedWeights(found.weights, decode(found.weights), found)
    return reason


def conditional_pools(
    start: NDArray[np.float64],
    first: P,
    pool_under: Callable[[P], Pool],
    decode: Callable[[NDArray[np.float64]], tuple[P, Sums]],
    tune: TunePool,
) -> Rounds:
    """The start weights (F,), and rounds until no weight moves by 1e-5, with a pool for each.

    The first pool is scored under `first`, the path of the first candidates, each later one under
    the path that the newest weights decode. pool_under: the pool of all candidates, each scored in
    the context that a path gives it; decode: the path that weights (F,) choose, and its summed
    statistics (D, W)
    """
    yield DecodedWeights(start, decode(start)[1])
    path, weights, moved = first, start, np.inf
    while moved >= STILL:
        found = tune(pool_under(path), weights)
        path, statistics = decode(found.weights)
        moved = float(np.abs(found.weights - weights).max(initial=0.0))
        weights = found.weights
        yield DecodedWeights(weights, statistics, found)
    return "no weight moves"
