"""Coordinate ascent on a pool: a point that moves by exact line searches until none gains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.envelope import Direction, Scratch
from rerank.tuning.mert.line import SearchLine
from rerank.tuning.mert.line_search import line_of
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.mert.point import Point
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """A pool and the directions of its features that vary within some list.

    features: (G,) int64, the varying features
    columns: (G, n) float64, their values; directions: one for each of them
    """

    pool: Pool
    features: NDArray[np.int64]
    columns: NDArray[np.float64]
    directions: tuple[Direction, ...]

    @classmethod
    def of(cls, pool: Pool) -> Axes:
        """Axes of a pool, kept as long as the pool. O(n F) time.

        Memory: 8 n bytes per varying feature, unless all vary and the pool is stored by columns.
        """
        if pool not in _KEPT:
            _KEPT[pool] = cls._of(pool)
        return _KEPT[pool]

    @classmethod
    def _of(cls, pool: Pool) -> Axes:
        pool = replace(pool, statistics=_narrow(pool))
        columns = pool.features.T  # shared with the pool, if it is stored by columns
        varying = [f for f, column in enumerate(columns) if _varies(pool.offsets, column)]
        if len(varying) < len(columns) or not columns.flags.c_contiguous:
            every, columns = columns, pool.store.large((len(varying), columns.shape[1]), np.float64)
            for column, feature in zip(columns, varying, strict=True):
                column[:] = every[feature]
        directions = tuple(Direction.of(pool, column) for column in columns)
        return cls(pool, np.array(varying, dtype=np.int64), columns, directions)

    @property
    def spreads(self) -> NDArray[np.float64]:
        """Spread of each varying feature, (G,)."""
        return np.array([direction.spread for direction in self.directions])

    @property
    def scale(self) -> NDArray[np.float64]:
        """Spread of each feature, (F,), 0 for those that do not vary."""
        scale = np.zeros(self.pool.features.shape[1])
        scale[self.features] = self.spreads
        return scale


_KEPT: WeakKeyDictionary[Pool, Axes] = WeakKeyDictionary()


def _narrow(pool: Pool) -> Sums:
    """The statistics in the smallest integer type that holds their differences, to save memory."""
    statistics = pool.statistics
    if statistics.dtype.kind == "f":
        return statistics
    most = int(statistics.max(initial=0)) - int(statistics.min(initial=0))
    for kind in (np.int16, np.int32):
        if most <= np.iinfo(kind).max:
            if statistics.dtype == kind:
                return statistics
            found = pool.store.large(statistics.shape, kind)
            found[...] = statistics
            return found
    return statistics


@njit(cache=True, nogil=True)
def _varies(offsets: NDArray[np.int64], column: NDArray[np.float64]) -> bool:
    """Whether a column (n,) has two values in some list."""
    for s in range(len(offsets) - 1):
        for row in range(offsets[s] + 1, offsets[s + 1]):
            if column[row] != column[offsets[s]]:
                return True
    return False


class PoolPoint(Point):
    """A point with the scores and choices of a pool under its weights."""

    def __init__(
        self,
        axes: Axes,
        weights: NDArray[np.float64],
        goal: SearchGoal,
        *,
        bounds: Bounds | None = None,
        most_searches: float = math.inf,
    ) -> None:
        self.axes = axes
        self._scratch = Scratch(axes.pool)
        n, store = axes.pool.fixed.shape, axes.pool.store
        self._scores, self._next_scores = (store.working(n, np.float64) for _ in range(2))
        self._scores[:] = axes.pool.fixed
        _add_columns(axes.pool.offsets, axes.columns, weights[axes.features], self._scores)
        self._choices = axes.pool.choices(self._scores)
        self._next_choices = np.empty_like(self._choices)
        super().__init__(
            weights.astype(np.float64),
            axes.pool.sums(self._choices),
            goal,
            axes.features,
            bounds=bounds,
            most_searches=most_searches,
        )

    def line(self, axis: int) -> SearchLine:
        """All breaks along an axis, in memory that the next search overwrites. O(n + m log m)."""
        vector = self.vector(axis)
        return line_of(
            self.axes.pool,
            self._scores,
            self._choices,
            self.axes.directions[axis],
            self._scratch,
            weights=self.weights,
            vector=vector,
            span=self.bounds.span(self.weights, vector),
        )

    def sums_after(self, axis: int, step: float, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of the choices after a step."""
        pool, slopes = self.axes.pool, self.axes.directions[axis].slopes
        _advance(pool.offsets, self._scores, slopes, step, self._next_scores, self._next_choices)
        return pool.sums(self._next_choices)

    def move(self) -> None:
        """Adopt the scores and choices after the step."""
        self._scores, self._next_scores = self._next_scores, self._scores
        self._choices, self._next_choices = self._next_choices, self._choices


Strategy: TypeAlias = Callable[[Point], None]
"""Moves a point until nothing gains, or it is exhausted."""


def climb(
    axes: Axes,
    start: NDArray[np.float64],
    goal: SearchGoal,
    strategy: Strategy,
    *,
    bounds: Bounds | None = None,
    most_searches: float = math.inf,
) -> Optimum:
    """The local optimum that a strategy reaches from weights `start` (F,). O(n) for each search."""
    point = PoolPoint(axes, start, goal, bounds=bounds, most_searches=most_searches)
    strategy(point)
    return point.optimum()


@njit(cache=True, nogil=True)
def _add_columns(
    offsets: NDArray[np.int64],
    columns: NDArray[np.float64],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """Add weights (G,) · columns (G, n) to scores (n,), list by list: one pass through memory."""
    for s in range(len(offsets) - 1):
        for g in range(len(weights)):
            if weights[g] != 0:
                for row in range(offsets[s], offsets[s + 1]):
                    scores[row] += weights[g] * columns[g, row]


@njit(cache=True, nogil=True)
def _advance(
    offsets: NDArray[np.int64],
    scores: NDArray[np.float64],
    slopes: NDArray[np.float64],
    step: float,
    moved: NDArray[np.float64],
    choices: NDArray[np.int64],
) -> None:
    """Fill in the scores `moved` and the choices after a step, in one pass."""
    for s in range(len(offsets) - 1):
        best, most = -1, -np.inf
        for row in range(offsets[s], offsets[s + 1]):
            this = scores[row] + step * slopes[row]
            moved[row] = this
            if this > most:
                best, most = row, this
        choices[s] = best
