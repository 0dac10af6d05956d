"""A pool in units of its features' spread, for tuners whose steps have a size.

A line search does not depend on the units of features; a step size, a norm or a random direction
does. Here every feature has spread 1 (root mean square distance from the mean of its list), so that
multiplying a feature by a number divides its weight by it and changes nothing else.

BLEU does not change if all scores double, so weights have no scale unless there are fixed scores.
These are one more feature here, the last, with a positive weight; results are scaled so that this
weight is 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import runs_of_lists
from rerank.files.compilation import njit
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.ascent import Optimum
from rerank.tuning.tuners.envelope import SearchDirection

_BLOCK = 1 << 16  # candidates whose rows are filled at once
LEAST = 1e-3  # weight of fixed scores, in spreads; points have a length of about 1


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedPool:
    """Features of a pool that vary within some list, in units of their spread; and a start.

    pool: the pool itself; start: (F,) weights, finite
    features: (G,) int64, the varying ones among its F features
    rows: (n, H) float64, distance from the first candidate of the list ÷ spread; H is G, or G + 1
    with fixed scores as the last column
    spreads: (H,)

    A point (H,) holds weights · spreads, up to a positive factor.
    """

    pool: Pool
    start: NDArray[np.float64]
    features: NDArray[np.int64]
    rows: NDArray[np.float64]
    spreads: NDArray[np.float64]

    @classmethod
    def of(cls, pool: Pool, start: NDArray[np.float64]) -> StandardisedPool:
        """Features of a pool, standardised. O(n F) time, 8 bytes a candidate and feature."""
        columns = (*pool.features.T, pool.fixed)
        distances = pool.store.working(pool.fixed.shape, np.float64)
        spreads = np.array([_spread(pool, column, distances) for column in columns])
        varying = np.flatnonzero(spreads)
        rows = pool.store.large((len(distances), len(varying)), np.float64)
        for begin, end in runs_of_lists(pool.offsets, _BLOCK):
            own = pool.offsets[begin : end + 1]
            block = slice(int(own[0]), int(own[-1]))
            firsts = np.repeat(own[:-1], np.diff(own))
            for place, feature in enumerate(varying):
                column = columns[feature]
                distance = column[block] - column[firsts]
                np.divide(distance, spreads[feature], out=rows[block, place])
        features = varying[varying < pool.features.shape[1]]
        return cls(pool, start.astype(np.float64), features, rows, spreads[varying])

    @property
    def anchored(self) -> bool:
        """Whether the last coordinate is that of fixed scores."""
        return len(self.spreads) > len(self.features)

    @property
    def silent(self) -> bool:
        """Whether BLEU does not depend on the weights: no 4-gram match, or no varying feature."""
        return len(self.features) == 0 or not self.pool.statistics[:, 3].any()

    @property
    def bounds(self) -> NDArray[np.float64]:
        """Lower bounds (H,) of a point's coordinates: −∞, but `LEAST` for fixed scores."""
        bounds = np.full(len(self.spreads), -np.inf)
        if self.anchored:
            bounds[-1] = LEAST
        return bounds

    @property
    def point(self) -> NDArray[np.float64]:
        """The point (H,) of the start, of length 1 but for bounds; zeros where no score differs."""
        point = self.spreads.copy()
        point[: len(self.features)] *= self.start[self.features]
        largest = np.abs(point).max(initial=0.0)  # first, for squares may be beyond float64
        if largest == 0:
            return point
        point /= largest
        return np.maximum(point / np.linalg.norm(point), self.bounds)

    def weights(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights (F,) of a point (H,); features that vary in no list keep their start weight."""
        weights = self.start.copy()
        varying = point[: len(self.features)]
        with np.errstate(over="ignore", invalid="ignore"):
            if self.anchored:
                varying = varying / point[-1] * self.spreads[-1]
            weights[self.features] = varying / self.spreads[: len(self.features)]
        return weights

    def best(self, points: Iterable[NDArray[np.float64]] = ()) -> NDArray[np.float64]:
        """The weights (F,) with the best corpus BLEU on the pool, of the start and of all points.

        Of equal ones the first. An all-zero start without fixed scores is replaced by any other
        weights; weights beyond float64 are ignored. O(n F) for each point.
        """
        best, bleu = self.start, -1.0
        if self.anchored or self.start.any():
            bleu = Optimum.at(self.pool, self.start).bleu
        for weights in map(self.weights, points):
            if np.isfinite(weights).all() and (self.anchored or weights[self.features].any()):
                found = Optimum.at(self.pool, weights).bleu
                if found > bleu:
                    best, bleu = weights, found
        return best.copy()


def _spread(pool: Pool, column: NDArray[np.float64], distances: NDArray[np.float64]) -> float:
    """Spread of a feature (n,) within lists; `distances` (n,) is memory. O(n)."""
    _subtract_first(pool.offsets, column, distances)
    return SearchDirection.of(pool, distances).spread if distances.any() else 0.0


@njit(cache=True, nogil=True)
def _subtract_first(
    offsets: NDArray[np.int64], column: NDArray[np.float64], distances: NDArray[np.float64]
) -> None:
    """Fill in the distances (n,) of a column from the first candidate of each list."""
    for s in range(len(offsets) - 1):
        for row in range(offsets[s], offsets[s + 1]):
            distances[row] = column[row] - column[offsets[s]]
