"""Coordinate ascent on a pool: a point that moves by exact line searches until none gains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.envelope import Direction, Scratch
from rerank.tuning.mert.line import Line, Step
from rerank.tuning.mert.line_search import SearchDirection, line_of
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
        """Axes of a pool. O(n F) time, 8 bytes per candidate and varying feature."""
        pool = replace(pool, statistics=_narrow(pool.statistics))
        starts = np.repeat(pool.offsets[:-1], np.diff(pool.offsets))
        varying = [f for f, c in enumerate(pool.features.T) if (c != c[starts]).any()]
        columns = np.ascontiguousarray(pool.features.T[varying])
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


def _narrow(statistics: Sums) -> Sums:
    """The statistics in the smallest integer type that holds their differences, to save memory."""
    if statistics.dtype.kind == "f":
        return statistics
    most = int(statistics.max(initial=0)) - int(statistics.min(initial=0))
    for kind in (np.int16, np.int32):
        if most <= np.iinfo(kind).max:
            return statistics.astype(kind)
    return statistics


class PoolPoint(Point[SearchDirection]):
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
        self._scores = axes.pool.fixed.copy()
        self._next_scores = np.empty_like(self._scores)
        _add_columns(axes.pool.offsets, axes.columns, weights[axes.features], self._scores)
        self._choices = axes.pool.choices(self._scores)
        self._next_choices = np.empty_like(self._choices)
        sums = axes.pool.sums(self._choices)
        super().__init__(weights.astype(np.float64), sums, goal, bounds, most_searches)

    @property
    def n_axes(self) -> int:
        """Number of the features that vary."""
        return len(self.axes.directions)

    def axis(self, axis: int) -> SearchDirection:
        """The direction of a varying feature."""
        vector = np.zeros(self.axes.pool.features.shape[1])
        vector[self.axes.features[axis]] = 1.0
        span = self.bounds.span(self.weights, vector)
        return SearchDirection(vector, self.axes.directions[axis], span)

    def vector(self, direction: SearchDirection) -> NDArray[np.float64]:
        """A direction as a vector (F,)."""
        return direction.vector

    def line(self, direction: SearchDirection) -> Line:
        """All breaks along a direction, in memory that the next search overwrites."""
        pool = self.axes.pool
        return line_of(pool, self.weights, self._scores, self._choices, direction, self._scratch)

    def best_step(self, direction: SearchDirection) -> Step:
        """The best step, into the middle of its interval. O(n + m log m) for m breaks."""
        if direction.slopes.spread == 0:
            return Step(0.0, self.value)
        return self.goal.best(self.line(direction), self.value)

    def sums_after(
        self, direction: SearchDirection, step: Step, weights: NDArray[np.float64]
    ) -> Sums:
        """Summed statistics (D, W) of the choices after a step."""
        pool, moved = self.axes.pool, (self._next_scores, self._next_choices)
        _advance(pool.offsets, self._scores, direction.slopes.slopes, step.size, *moved)
        return pool.sums(self._next_choices)

    def move(self) -> None:
        """Adopt the scores and choices after the step."""
        self._scores, self._next_scores = self._next_scores, self._scores
        self._choices, self._next_choices = self._next_choices, self._choices


Strategy: TypeAlias = Callable[[Point[SearchDirection]], None]
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
