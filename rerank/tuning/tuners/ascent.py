"""Coordinate ascent: a point in the space of weights that moves by exact line searches.

Two best steps of all features come first, then every gain as it comes: on real pools this reaches
the BLEU of Moses' mert, which takes the best step of all features each time, in half the searches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.metrics.bleu import WIDTH
from rerank.tuning.goal import BLEU_GOAL, SearchGoal, SearchLine, Step
from rerank.tuning.objective import Objective, Sums, bleu_of
from rerank.tuning.pool import Pool, add_columns
from rerank.tuning.tuners.envelope import Envelopes, SearchDirection

CHOSEN = 2  # first steps, each the best of all features
NEAR = 0.1  # largest loss of a flat range, in points of the objective
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Least and greatest weight of each feature, (F,) each; infinite where there is none."""

    low: Floats
    high: Floats

    @classmethod
    def none(cls, n_features: int) -> Bounds:
        """Infinite ranges."""
        return cls(np.full(n_features, -math.inf), np.full(n_features, math.inf))

    @property
    def free_of_scale(self) -> bool:
        """Whether weights may be multiplied by any positive number: ends are 0 or infinite."""
        ends = np.concatenate([self.low, self.high])
        return bool((np.isinf(ends) | (ends == 0)).all())

    def settle_scale(self, pool: Pool) -> bool:
        """Whether the scale of the weights matters on a pool: for fixed scores, or for ranges."""
        return bool(pool.fixed.any()) or not self.free_of_scale

    def clipped(self, weights: Floats) -> Floats:
        """The nearest weights (F,) within the ranges."""
        return np.clip(weights, self.low, self.high)

    def shrunk(self, weights: Floats) -> Floats:
        """Weights (F,) times the largest factor up to 1 within ranges around 0; if 0, `clipped`."""
        ends = np.where(weights > 0, self.high, self.low)
        factors = ends[weights != 0] / weights[weights != 0]
        factor = float(factors.min(initial=1.0))
        return self.clipped(weights * factor if factor > 0 else weights)

    def span(self, weights: Floats, feature: int) -> tuple[float, float]:
        """Least and greatest step from weights (F,) within bounds along a feature's axis."""
        low, high = self.low[feature] - weights[feature], self.high[feature] - weights[feature]
        return min(float(low), 0.0), max(float(high), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Weights (F,), summed statistics (W,) of their choices, the goal's value, searches made."""

    weights: Floats
    statistics: Sums
    value: float
    searches: int = 0

    @classmethod
    def at(cls, pool: Pool, weights: Floats, goal: SearchGoal = BLEU_GOAL) -> Optimum:
        """The choices of any weights from a pool. O(n F)."""
        sums = pool.decode(weights)
        return cls(weights, sums.sum(axis=0), goal.value(sums, weights))

    @property
    def bleu(self) -> float:
        """Corpus BLEU, 0..100, whatever the goal."""
        return bleu_of(self.statistics)


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """A pool and the directions of its features that vary within some list.

    features: (G,) int64, the varying features
    columns: (G, n) float64, their values; directions: one for each of them
    """

    pool: Pool
    features: NDArray[np.int64]
    columns: Floats
    directions: tuple[SearchDirection, ...]

    @classmethod
    def of(cls, pool: Pool) -> Axes:
        """Axes of a pool, kept as long as the pool. O(n F) time.

        Memory: 8 n bytes per varying feature, unless all vary and the pool is stored by columns.
        """
        if pool in _KEPT:
            return _KEPT[pool]
        columns = pool.features.T  # shared with the pool, if it is stored by columns
        directions = [SearchDirection.of(pool, column) for column in columns]
        varying = [f for f, direction in enumerate(directions) if direction.spread > 0]
        if len(varying) < len(columns) or not columns.flags.c_contiguous:
            every, columns = columns, pool.store.large((len(varying), columns.shape[1]), np.float64)
            for column, feature in zip(columns, varying, strict=True):
                column[:] = every[feature]
        axes = cls(
            replace(pool, statistics=_narrowest(pool)),
            np.array(varying, dtype=np.int64),
            columns,
            tuple(
                replace(directions[f], slopes=column)
                for f, column in zip(varying, columns, strict=True)
            ),
        )
        return _KEPT.setdefault(pool, axes)

    @property
    def spreads(self) -> Floats:
        """Spread of each varying feature, (G,)."""
        return np.array([direction.spread for direction in self.directions])

    @property
    def scale(self) -> Floats:
        """Spread of each feature, (F,), 0 for those that do not vary."""
        scale = np.zeros(self.pool.features.shape[1])
        scale[self.features] = self.spreads
        return scale

    @property
    def why_flat(self) -> str:
        """Why the statistics do not depend on the weights, if so."""
        statistics = self.pool.statistics
        if not statistics[:, 3].any() and statistics.shape[1] == WIDTH:
            return "on lists without a 4-gram match, where BLEU is nothing but its smoothing"
        return "" if self.directions else "without a feature that varies within a list"

    def normalised(self, weights: Floats, start: Floats, bounds: Bounds) -> Floats:
        """Weights (F,) of L1 norm 1, unless fixed scores or bounds settle their scale.

        Features that vary in no list keep the share of the norm that they had at the start.
        """
        norm = float(np.linalg.norm(weights[self.features], 1))
        if norm == 0 or bounds.settle_scale(self.pool):
            return weights
        before = float(np.linalg.norm(start, 1))
        share = 1.0 if before == 0 else float(np.linalg.norm(start[self.features], 1)) / before
        unit = start / before if before > 0 else start.copy()
        unit[self.features] = weights[self.features] * (share or 1.0) / norm
        return np.asarray(unit / np.linalg.norm(unit, 1))


_KEPT: WeakKeyDictionary[Pool, Axes] = WeakKeyDictionary()


def _narrowest(pool: Pool) -> Sums:
    """The statistics in the smallest integer type that holds their differences, to save memory."""
    statistics = pool.statistics
    if statistics.dtype.kind == "f":
        return statistics
    most = int(statistics.max(initial=0)) - int(statistics.min(initial=0))
    kind = next((kind for kind in (np.int16, np.int32) if most <= np.iinfo(kind).max), np.int64)
    if statistics.dtype == kind:
        return statistics
    narrow = pool.store.large(statistics.shape, kind)
    narrow[...] = statistics
    return narrow


class PoolPoint:
    """Weights (F,) on the move over a pool: the scores and choices under them, the goal's value.

    features: (G,) those that may move; axis g is the direction of features[g]
    sums: (D, W) summed statistics of the choices
    searches: line searches made so far; the point is exhausted after `most_searches`
    """

    def __init__(
        self,
        axes: Axes,
        weights: Floats,
        goal: SearchGoal,
        *,
        bounds: Bounds | None = None,
        most_searches: float = math.inf,
    ) -> None:
        pool, self.axes, self.features, self.goal = axes.pool, axes, axes.features, goal
        self.bounds = bounds or Bounds.none(len(weights))
        self.most_searches, self.searches = most_searches, 0
        self._envelopes = Envelopes(pool)
        self._scores, self._next_scores = (
            pool.store.working(pool.fixed.shape, np.float64) for _ in range(2)
        )
        self._scores[:] = pool.fixed
        add_columns(pool.offsets, axes.columns, weights[axes.features], self._scores)
        self._choices = pool.choices(self._scores)
        self._next_choices = np.empty_like(self._choices)
        self.weights, self.sums = weights.astype(np.float64), pool.sums(self._choices)
        self.value = goal.value(self.sums, self.weights)

    def line(self, axis: int) -> SearchLine:
        """All breaks along an axis, in memory that the next search overwrites. O(n + m log m)."""
        direction = self.axes.directions[axis]
        breaks, changes = self._envelopes.search(self._scores, self._choices, direction)
        return SearchLine(
            breaks,
            breaks.argsort(),
            changes,
            self.weights,
            self._unit_vector(axis),
            self.bounds.span(self.weights, self.features[axis]),
            1 / direction.spread,
        )

    def search(self, axis: int) -> Step:
        """The best step along an axis, into the middle of its interval."""
        self.searches += 1
        return self.goal.best(self.line(axis), self.value)

    def take(self, axis: int, step: Step) -> bool:
        """Take a step if it does raise the value; whether it did. O(n)."""
        weights = self.bounds.clipped(self.weights + step.size * self._unit_vector(axis))
        if step.size == 0 or np.array_equal(weights, self.weights):
            return False
        pool, slopes = self.axes.pool, self.axes.directions[axis].slopes
        scores, choices = self._next_scores, self._next_choices
        _advance(pool.offsets, self._scores, slopes, step.size, scores, choices)
        sums = pool.sums(choices)
        value = self.goal.value(sums, weights)
        if value <= self.value:
            return False
        self.weights, self.sums, self.value = weights, sums, value
        self._scores, self._next_scores = scores, self._scores
        self._choices, self._next_choices = choices, self._choices
        return True

    def _unit_vector(self, axis: int) -> Floats:
        vector = np.zeros(len(self.weights))
        vector[self.features[axis]] = 1.0
        return vector


Strategy: TypeAlias = Callable[[PoolPoint], Optimum]
"""Moves a point to an optimum, where nothing gains, or until it is exhausted."""


def coordinates(point: PoolPoint) -> Optimum:
    """The local optimum after two best steps of all features, then every gain, feature by feature.

    The first steps decide in which basin the search ends, so they are chosen with care.
    """
    axes = range(len(point.features))
    for _ in range(CHOSEN):
        steps = [point.search(axis) for axis in axes]
        best = max(axes, key=lambda axis: steps[axis].value, default=None)
        if best is None or not point.take(best, steps[best]):
            break
    return in_turn(point)


def in_turn(point: PoolPoint) -> Optimum:
    """The local optimum after every gain, feature by feature; or where the point is exhausted."""
    axis = idle = 0
    while idle < len(point.features) and point.searches < point.most_searches:
        idle = 0 if point.take(axis, point.search(axis)) else idle + 1
        axis = (axis + 1) % len(point.features)
    return Optimum(point.weights, point.sums.sum(axis=0), point.value, point.searches)


@njit(cache=True, nogil=True)
def _advance(
    offsets: NDArray[np.int64],
    scores: Floats,
    slopes: Floats,
    step: float,
    moved: Floats,
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


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """An objective along one feature, all other weights fixed.

    Weights whose neighbours are nearly as good generalise to other documents; those on a narrow
    peak do not. left: (m,) weights where intervals begin, −inf first; values: (m,) on each
    """

    name: str
    spread: float
    weight: float
    left: Floats
    values: Floats

    def flat(self) -> tuple[float, float]:
        """The widest range, maybe infinite, where the objective loses at most `NEAR`."""
        here = int(np.searchsorted(self.left, self.weight, side="right")) - 1
        low = np.flatnonzero(self.values < self.values[here] - NEAR)
        before, after = low[low < here], low[low > here]
        start = self.left[before[-1] + 1] if len(before) else -np.inf
        end = self.left[after[0]] if len(after) else np.inf
        return float(start), float(end)


def sections(
    pool: Pool, weights: Floats, objective: Objective, names: Sequence[str]
) -> list[Section]:
    """A section of each feature that varies, through weights (F,). O(n) for each."""
    axes, through = Axes.of(pool), list[Section]()
    point = PoolPoint(axes, weights, SearchGoal(objective))
    for axis, feature in enumerate(axes.features.tolist()):
        line = point.line(axis)
        values = objective.along(line.changes[line.order])
        places, left, _ = line.intervals()
        here, spread = float(weights[feature]), axes.directions[axis].spread
        through.append(Section(names[feature], spread, here, here + left, values[places]))
    return through
