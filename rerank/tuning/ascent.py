"""Ascent: line searches in one direction after another, until none gains.

Which directions are searched, and in which order, is a strategy (`rerank.tuning.strategies`); what
is maximised is a goal (`rerank.tuning.goals`). Here are the pool seen from its features, and the
point that moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, corpus_bleu, length_ratio
from rerank.tuning.bounds import Bounds
from rerank.tuning.envelope import Direction, Scratch
from rerank.tuning.goals import CORPUS_BLEU, GAIN, SearchGoal
from rerank.tuning.line import Line, Step
from rerank.tuning.line_search import Way, line_of, line_search
from rerank.tuning.objectives import Sums
from rerank.tuning.pool import Pool

_MOST = 200  # searches for each feature: smoothed values could lead round for ever


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Weights (F,), summed statistics (W,) of their choices, the goal's value, searches it took."""

    weights: NDArray[np.float64]
    statistics: Sums
    value: float
    searches: int = 0

    @classmethod
    def at(
        cls, pool: Pool, weights: NDArray[np.float64], goal: SearchGoal = CORPUS_BLEU
    ) -> Optimum:
        """What given weights choose from a pool. O(n F)."""
        sums = pool.sums(pool.choices(pool.scores(weights)))
        return cls(weights, sums.sum(axis=0), goal.value(sums, weights))

    @property
    def bleu(self) -> float:
        """Corpus BLEU, 0..100, whatever the goal."""
        return float(corpus_bleu(self.statistics[:WIDTH].astype(np.int64)))

    @property
    def ratio(self) -> float:
        """Length of the choices ÷ length of the references."""
        return float(length_ratio(self.statistics[:WIDTH]))


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
        """Axes of a pool. O(n F) time, 8 bytes a candidate and varying feature."""
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

    def vector(self, axis: int) -> NDArray[np.float64]:
        """Unit vector (F,) of a varying feature."""
        vector = np.zeros(self.pool.features.shape[1])
        vector[self.features[axis]] = 1.0
        return vector

    def seen(self, vector: NDArray[np.float64]) -> Direction:
        """A vector (F,) as the pool sees it. O(n G)."""
        return Direction.of(self.pool, vector[self.features] @ self.columns)


def _narrow(statistics: Sums) -> Sums:
    """The same numbers in the smallest type that holds their differences: memory is the limit."""
    if statistics.dtype.kind == "f":
        return statistics
    most = int(statistics.max(initial=0)) - int(statistics.min(initial=0))
    for kind in (np.int16, np.int32):
        if most <= np.iinfo(kind).max:
            return statistics.astype(kind)
    return statistics


class Point:
    """Weights on the move, with the scores and choices of a pool under them.

    searches: line searches made; it is `exhausted` when they are `most`, or more
    """

    def __init__(
        self,
        axes: Axes,
        weights: NDArray[np.float64],
        goal: SearchGoal,
        *,
        bounds: Bounds | None = None,
        most: float = math.inf,
    ) -> None:
        self.axes, self.goal, self.most = axes, goal, most
        self.bounds = bounds or Bounds.none(len(weights))
        self.weights = weights.astype(np.float64)
        self.searches = 0
        self._scratch = Scratch(axes.pool)
        self._scores = axes.pool.fixed.copy()
        self._spare = np.empty_like(self._scores)
        _add_columns(axes.pool.offsets, axes.columns, weights[axes.features], self._scores)
        self._choices = axes.pool.choices(self._scores)
        self.sums = axes.pool.sums(self._choices)
        self.value = goal.value(self.sums, self.weights)
        self._reached = -math.inf

    @property
    def exhausted(self) -> bool:
        """Whether a strategy should end, when it has finished what it is at."""
        return self.searches >= self.most

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores (n,) of the candidates; not to be written to, valid until the next step."""
        return self._scores

    def axis(self, axis: int) -> Way:
        """The way along a varying feature."""
        return self._way(self.axes.vector(axis), self.axes.directions[axis])

    def along(self, vector: NDArray[np.float64]) -> Way:
        """The way along a vector (F,); what does not vary is left out. O(n G)."""
        varying = np.zeros_like(vector)
        varying[self.axes.features] = vector[self.axes.features]
        return self._way(varying, self.axes.seen(varying))

    def _way(self, vector: NDArray[np.float64], seen: Direction) -> Way:
        return Way(vector, seen, self.bounds.span(self.weights, vector))

    def search(self, way: Way) -> Step:
        """The best step along a way from here."""
        self.searches += 1
        return line_search(
            self.axes.pool,
            self.weights,
            self._scores,
            self._choices,
            way,
            goal=self.goal,
            here=self.value,
            scratch=self._scratch,
        )

    def line(self, way: Way) -> Line:
        """All breaks along a way from here, in memory that the next search uses again."""
        pool = self.axes.pool
        return line_of(pool, self.weights, self._scores, self._choices, way, self._scratch)

    def take(self, way: Way, step: Step) -> bool:
        """Whether a step does gain, or smoothed is what it promised; it is taken only then.

        Smoothed values at one point differ from line to line. They have to rise from step to step,
        as in Moses' mert, or gains on one line after another would lead round and round.
        """
        weights = self.bounds.clipped(self.weights + step.size * way.vector)
        if step.size == 0 or np.array_equal(weights, self.weights):
            return False
        if self.goal.smoothed and step.value <= self._reached + GAIN:
            return False
        pool = self.axes.pool
        choices = np.empty_like(self._choices)
        _advance(pool.offsets, self._scores, way.seen.slopes, step.size, self._spare, choices)
        sums = pool.sums(choices)
        value = self.goal.value(sums, weights)
        if value <= min(self.value, step.promised - GAIN):
            return False
        self.weights = weights
        self._scores, self._spare = self._spare, self._scores
        self._choices, self.sums, self.value = choices, sums, value
        self._reached = step.value
        return True

    def try_along(self, way: Way) -> bool:
        """Whether a search along a way did gain."""
        return self.take(way, self.search(way))

    def optimum(self) -> Optimum:
        """Where it stands."""
        return Optimum(self.weights, self.sums.sum(axis=0), self.value, self.searches)


Strategy: TypeAlias = Callable[[Point, np.random.Generator], None]
"""Moves a point until nothing gains, or it is exhausted."""


def climb(
    axes: Axes,
    start: NDArray[np.float64],
    goal: SearchGoal,
    strategy: Strategy,
    rng: np.random.Generator,
    *,
    bounds: Bounds | None = None,
    most_searches: float = math.inf,
) -> Optimum:
    """The local optimum that a strategy reaches from weights `start` (F,). O(n) a search.

    Where the goal smooths, the value of the optimum is the mean, over the features, of the smoothed
    value there: one more search each.
    """
    most = min(most_searches, _MOST * max(len(axes.directions), 1))
    point = Point(axes, start, goal, bounds=bounds, most=most)
    strategy(point, rng)
    if goal.smoothed and axes.directions:
        around = [point.search(point.axis(axis)).here for axis in range(len(axes.directions))]
        return replace(point.optimum(), value=float(np.mean(around)))
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
    """Fill in scores and choices one step on, in one pass."""
    for s in range(len(offsets) - 1):
        best, most = -1, -np.inf
        for row in range(offsets[s], offsets[s + 1]):
            this = scores[row] + step * slopes[row]
            moved[row] = this
            if this > most:
                best, most = row, this
        choices[s] = best
