"""Pools of sentences: the lists of the tuning set as they are, every candidate with its features.

Features that no context changes need one pool. Those of a candidate in context are known only
given the choices around it: each round scores all candidates under the path decoded last. No row of
an earlier pool is kept: its context is one that no neighbour chooses any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objectives import Sums
from rerank.tuning.pool import Pool
from rerank.tuning.rounds import Find, Step, Steps

P = TypeVar("P")

STILL = 1e-5


@dataclass(frozen=True, slots=True, eq=False)
class CompletePool:
    """One pool that holds all that decoding could choose: what it predicts is what is decoded."""

    pool: Pool
    find: Find
    patience: int = 1

    def steps(self, start: NDArray[np.float64]) -> Steps:
        """The start and one round."""
        yield Step(start, self._chosen(start))
        found = self.find(self.pool, start)
        yield Step(found.weights, self._chosen(found.weights), found)
        return "the pool is complete"

    def _chosen(self, weights: NDArray[np.float64]) -> Sums:
        return self.pool.sums(self.pool.choices(self.pool.scores(weights)))


@dataclass(frozen=True, slots=True, eq=False)
class FirstPool:
    """One pool, in the context of the first candidates: what tuners of sentences do.

    decode: summed statistics (D, W) of what weights (F,) choose
    """

    pool: Pool
    decode: Callable[[NDArray[np.float64]], Sums]
    find: Find
    patience: int = 1

    def steps(self, start: NDArray[np.float64]) -> Steps:
        """The start and one round."""
        yield Step(start, self.decode(start))
        found = self.find(self.pool, start)
        yield Step(found.weights, self.decode(found.weights), found)
        return "the pool is not made again"


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
    find: Find
    patience: int = 2

    def steps(self, start: NDArray[np.float64]) -> Steps:
        """Rounds until no weight moves by 1e-5.

        The first pool is scored under the first candidates, the next ones under the path that the
        newest weights decode.
        """
        yield Step(start, self.decode(start)[1])
        path, weights, moved = self.first, start, np.inf
        while moved >= STILL:
            found = self.find(self.pool_under(path), weights)
            path, statistics = self.decode(found.weights)
            moved = float(np.abs(found.weights - weights).max(initial=0.0))
            weights = found.weights
            yield Step(weights, statistics, found)
        return "no weight moves"
