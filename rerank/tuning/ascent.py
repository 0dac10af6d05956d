"""Coordinate ascent: line searches along the features, one after another, until none gains.

The first moves decide into which basin a search falls, so they are chosen: all features are
searched and the best step is taken, as Moses' mert does throughout. Once they are made, every gain
is taken as it comes, in the order of the features, which reaches the same BLEU in half the
searches. Powell's new directions (1964) gained nothing on real pools and are not here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.bleu import corpus_bleu, length_ratio
from rerank.tuning.envelope import Direction, Scratch
from rerank.tuning.line_search import line_search
from rerank.tuning.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Weights (F,), summed statistics (9,) of the candidates they choose, searches it took."""

    weights: NDArray[np.float64]
    statistics: NDArray[np.int64]
    searches: int = 0

    @classmethod
    def at(cls, pool: Pool, weights: NDArray[np.float64], searches: int = 0) -> Optimum:
        """What given weights choose from a pool. O(n F)."""
        return cls(weights, pool.total(pool.choices(pool.scores(weights))), searches)

    @property
    def bleu(self) -> float:
        """BLEU, 0..100."""
        return float(corpus_bleu(self.statistics))

    @property
    def ratio(self) -> float:
        """Length of the choices ÷ length of the references."""
        return float(length_ratio(self.statistics))


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


def _narrow(statistics: NDArray[np.integer]) -> NDArray[np.integer]:
    """The same numbers in the smallest type that holds their differences: memory is the limit."""
    most = int(statistics.max(initial=0))
    for kind in (np.int16, np.int32):
        if most <= np.iinfo(kind).max:
            return statistics.astype(kind)
    return statistics


def climb(
    axes: Axes,
    start: NDArray[np.float64],
    *,
    chosen_moves: int = 2,
    most_searches: float = math.inf,
) -> Optimum:
    """The local optimum reached from weights `start` (F,); no step is taken without a gain.

    After `chosen_moves` best steps the features are searched in turn until none gains, or until
    there were `most_searches`. O(n) for each of a hundred searches or so.
    """
    point = _Point(axes, start)
    for _ in range(chosen_moves if axes.directions else 0):
        steps = [point.search(axis) for axis in range(len(axes.directions))]
        best = max(range(len(steps)), key=lambda axis: steps[axis][1])
        if not point.take(best, steps[best][0]):
            break
    axis = idle = 0
    while idle < len(axes.directions) and point.searches < most_searches:
        step, _ = point.search(axis)
        idle = 0 if point.take(axis, step) else idle + 1
        axis = (axis + 1) % len(axes.directions)
    return Optimum(point.weights, point.statistics, point.searches)


class _Point:
    """Weights on the move, with the scores and choices of a pool under them."""

    def __init__(self, axes: Axes, weights: NDArray[np.float64]) -> None:
        self.axes = axes
        self.weights = weights.astype(np.float64)
        self.searches = 0
        self._scratch = Scratch(axes.pool)
        self._scores = axes.pool.fixed.copy()
        self._spare = np.empty_like(self._scores)
        self._choices = np.empty(len(axes.pool.offsets) - 1, dtype=np.int64)
        _add_columns(axes.pool.offsets, axes.columns, weights[axes.features], self._scores)
        self._choices = axes.pool.choices(self._scores)
        self.statistics = axes.pool.total(self._choices)
        self._bleu = float(corpus_bleu(self.statistics))

    def search(self, axis: int) -> tuple[float, float]:
        """Best step along an axis, and BLEU there."""
        self.searches += 1
        return line_search(
            self.axes.pool,
            self._scores,
            self._choices,
            self.axes.directions[axis],
            self._scratch,
            floor=self._bleu,
        )

    def take(self, axis: int, step: float) -> bool:
        """Whether a step did gain; it is taken only then."""
        feature = self.axes.features[axis]
        weight = self.weights[feature] + step
        if weight == self.weights[feature]:
            return False
        pool = self.axes.pool
        choices = np.empty_like(self._choices)
        slopes = self.axes.directions[axis].slopes
        _advance(pool.offsets, self._scores, slopes, step, self._spare, choices)
        statistics = pool.total(choices)
        bleu = float(corpus_bleu(statistics))
        if bleu <= self._bleu:
            return False
        self.weights[feature] = weight
        self._scores, self._spare = self._spare, self._scores
        self._choices, self.statistics, self._bleu = choices, statistics, bleu
        return True


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
