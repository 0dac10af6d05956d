"""Pools of the tuning set's own k-best lists: every candidate with its features.

Features of order 0 need one pool. The value of a contextual feature exists only given the choices
around a candidate: each round scores all candidates under the path decoded last. Rows of earlier
pools are not kept, since no neighbour chooses their context any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool
from rerank.tuning.rounds import DecodedWeights, Rounds, TunePool

P = TypeVar("P")

STILL = 1e-5


def choose(pool: Pool, weights: NDArray[np.float64]) -> Sums:
    """Summed statistics (D, W) of what weights (F,) choose from a pool. O(n F)."""
    return pool.sums(pool.choices(pool.scores(weights)))


@dataclass(frozen=True, slots=True, eq=False)
class SinglePool:
    """One pool, tuned once.

    decode: summed statistics (D, W) of what weights (F,) choose; reason: why one round is enough
    """

    pool: Pool
    decode: Callable[[NDArray[np.float64]], Sums]
    tune: TunePool
    reason: str
    patience: int = 1

    def rounds(self, start: NDArray[np.float64]) -> Rounds:
        """The start and one round."""
        yield DecodedWeights(start, self.decode(start))
        found = self.tune(self.pool, start)
        yield DecodedWeights(found.weights, self.decode(found.weights), found)
        return self.reason


@dataclass(frozen=True, slots=True, eq=False)
class ConditionalPools(Generic[P]):
    """A pool for each round; a path of type P holds the choices for all documents.

    first: the path of the first candidates
    pool_under: the pool of all candidates, each scored in the context that the path gives it
    decode: the path that weights (F,) choose, and its summed statistics (D, W)
    """

    first: P
    pool_under: Callable[[P], Pool]
    decode: Callable[[NDArray[np.float64]], tuple[P, Sums]]
    tune: TunePool
    patience: int = 2

    def rounds(self, start: NDArray[np.float64]) -> Rounds:
        """Rounds until no weight moves by 1e-5.

        The first pool is scored under the first candidates, each later one under the path that the
        newest weights decode.
        """
        yield DecodedWeights(start, self.decode(start)[1])
        path, weights, moved = self.first, start, np.inf
        while moved >= STILL:
            found = self.tune(self.pool_under(path), weights)
            path, statistics = self.decode(found.weights)
            moved = float(np.abs(found.weights - weights).max(initial=0.0))
            weights = found.weights
            yield DecodedWeights(weights, statistics, found)
        return "no weight moves"
