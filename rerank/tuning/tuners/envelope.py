"""Upper envelopes of all lists along a direction: which candidate is best at which step.

Along a direction each candidate is a line, score + step · slope; the best candidate of a list is
the topmost line (Och 2003, section 5, https://aclanthology.org/P03-1021). The choices, and their
statistics, change only where the envelope of some list breaks: a search visits every value that an
objective has along a direction.

A line of the envelope lies, as a point (slope, score), above the chords from the topmost line at
step 0 to the lines with the least and the greatest slope; only such points, a twentieth to a fifth
of a 100-best list, are sorted and linked (Macherey et al. 2008, algorithm 1,
https://aclanthology.org/D08-1076).

Exactness: float64; slopes of one list closer than 2⁻⁴⁰ of the spread of all are parallel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.tuning.objective import Sums
from rerank.tuning.pool import Pool

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
_PARALLEL = 2.0**-40
_LOWER = 1 + 2.0**-48  # chords lie below the topmost line; rounding must not lift them
_STEEP = 1e300
_TINY = 5e-324  # the least float64: a spread is 0 only if no slope differs
_THIN = 8  # with fewer points a second pass costs more than it saves


@dataclass(frozen=True, slots=True, eq=False)
class SearchDirection:
    """A direction in the space of weights, seen from a pool.

    slopes: (n,) float64, features · direction
    lowest, highest: (S,) int64, first row with the least, the greatest slope of each list; −1
    spread: root mean square distance of slopes from their list's mean; 0 iff no slope matters
    """

    slopes: Floats
    lowest: Integers
    highest: Integers
    spread: float

    @classmethod
    def of(cls, pool: Pool, slopes: Floats) -> SearchDirection:
        """The direction that gives these slopes (n,). O(n)."""
        lowest = np.full(len(pool.offsets) - 1, -1, dtype=np.int64)
        highest = lowest.copy()
        spread = _extent(pool.offsets, slopes, lowest, highest)
        return cls(slopes, lowest, highest, spread)


class Envelopes:
    """Upper envelopes of S lists, from step −∞ to ∞; of one search at a time.

    The memory is kept: large fresh arrays would cost as much as the search.
    offsets: (S+1,) int64, envelope of list s is offsets[s]:offsets[s+1]
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.offsets = np.zeros_like(pool.offsets)
        self._rows = pool.store.working((len(pool.features),), np.int64)
        self._breaks = pool.store.working((len(pool.features),), np.float64)
        self._changes = np.empty((0, pool.statistics.shape[1]), dtype=pool.statistics.dtype)

    def search(
        self, scores: Floats, choices: Integers, direction: SearchDirection
    ) -> tuple[Floats, Sums]:
        """Envelopes of lines scores (n,) + step · slopes (n,); `choices` (S,) are those at step 0.

        Steps (m,) where a row becomes the topmost of its list, −∞ for the first, and what each
        adds to the summed statistics (m, W). Slopes strictly increase along an envelope, and so do
        breaks; of identical lines the first row stands for all. O(n + Σ h²), h: a list's points
        above the chords.
        """
        pool, ends = self.pool, (choices, direction.lowest, direction.highest)
        parallel = _PARALLEL * direction.spread
        envelopes = (self.offsets, self._rows, self._breaks)
        _all_envelopes(pool.offsets, scores, direction.slopes, ends, parallel, envelopes)
        m = int(self.offsets[-1])
        if len(self._changes) < m:
            self._changes = np.empty((m + m // 2, self._changes.shape[1]), self._changes.dtype)
        _fill_changes(self.offsets, self._rows[:m], pool.statistics, self._changes[:m])
        return self._breaks[:m], self._changes[:m]


@njit(cache=True, nogil=True)
def _extent(offsets: Integers, slopes: Floats, lowest: Integers, highest: Integers) -> float:
    """Fill in the rows with extreme slopes; return the spread."""
    largest = 0.0
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        if start < end:
            low = high = start
            for row in range(start + 1, end):
                low = row if slopes[row] < slopes[low] else low
                high = row if slopes[row] > slopes[high] else high
            lowest[s], highest[s] = low, high
            largest = max(largest, slopes[high] - slopes[low])
    squares = 0.0
    for s in range(len(offsets) - 1 if largest > 0 else 0):
        start, end = offsets[s], offsets[s + 1]
        mean = 0.0
        for row in range(start, end):
            mean += (slopes[row] - slopes[start]) / largest / (end - start)
        for row in range(start, end):
            squares += ((slopes[row] - slopes[start]) / largest - mean) ** 2
    spread = largest * math.sqrt(squares / max(len(slopes), 1))
    return max(spread, _TINY) if largest > 0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _chord(run: float, rise: float, parallel: float, steep: float) -> float:
    """Slope of a chord, `steep` where it is upright."""
    return rise / run if run > parallel else steep


@njit(cache=True, nogil=True, error_model="numpy")
def _all_envelopes(
    offsets: Integers,
    scores: Floats,
    slopes: Floats,
    ends: tuple[Integers, Integers, Integers],
    parallel: float,
    envelopes: tuple[Integers, Integers, Floats],
) -> None:
    """Fill in `envelopes` = (offsets, rows, breaks); `ends` = rows (top, lowest, highest)."""
    longest = 0
    for s in range(len(offsets) - 1):
        longest = max(longest, offsets[s + 1] - offsets[s])
    marks, rows = np.empty(longest, dtype=np.uint8), np.empty((2, longest + 1), dtype=np.int64)
    xs, ys, breaks = np.empty((2, longest)), np.empty((2, longest)), np.empty(longest)
    m = 0
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        if start < end and slopes[ends[1][s]] == slopes[ends[2][s]]:  # no line crosses another
            envelopes[1][m], envelopes[2][m] = ends[0][s], -math.inf
            m += 1
        elif start < end:
            x, y = slopes[start:end], scores[start:end]
            top, low, high = ends[0][s] - start, ends[1][s] - start, ends[2][s] - start
            size = _above_chords(x, y, (top, low, high), parallel, marks, rows[0])
            for i in range(size):  # as seen from the topmost line
                xs[0, i], ys[0, i] = x[rows[0, i]] - x[top], y[rows[0, i]] - y[top]
            if size > _THIN:
                corners = x[low] - x[top], y[low] - y[top], x[high] - x[top], y[high] - y[top]
                size = _thinned(rows[0], xs[0], ys[0], size, corners, parallel)
            _sort(rows, xs, ys, size)
            size = _linked(rows[1], xs[1], ys[1], size, parallel, breaks)
            for i in range(size):
                envelopes[1][m + i], envelopes[2][m + i] = start + rows[1, i], breaks[i]
            m += size
        envelopes[0][s + 1] = m


@njit(cache=True, nogil=True, error_model="numpy")
def _above_chords(
    x: Floats,
    y: Floats,
    corners: tuple[int, int, int],
    parallel: float,
    marks: NDArray[np.uint8],
    rows: Integers,
) -> int:
    """Fill in the points (slope, score) above the chords low – top – high, and these; how many."""
    top, low, high = corners
    x_top, y_top = x[top], y[top]
    rise = _chord(x_top - x[low], y_top - y[low], parallel, _STEEP)
    fall = _chord(x[high] - x_top, y[high] - y_top, parallel, -_STEEP)
    for i in range(len(x)):  # no branches: vectorised
        run = x[i] - x_top
        marks[i] = y[i] - y_top > min(rise * run, fall * run) * _LOWER
    marks[top] = marks[low] = marks[high] = 1
    size = 0
    for i in range(len(x)):
        rows[size] = i
        size += marks[i]
    return size


@njit(cache=True, nogil=True, error_model="numpy")
def _thinned(
    rows: Integers,
    xs: Floats,
    ys: Floats,
    size: int,
    corners: tuple[float, float, float, float],
    parallel: float,
) -> int:
    """Keep the points on or above the chords low – p – top – q – high, in place; their number.

    p, q: the points farthest above the first chords. A step of quickhull.
    """
    low_x, low_y, high_x, high_y = corners
    rise = _chord(-low_x, -low_y, parallel, _STEEP)
    fall = _chord(high_x, high_y, parallel, -_STEEP)
    (px, py), (qx, qy), p_above, q_above = (low_x, low_y), (high_x, high_y), 0.0, 0.0
    for i in range(size):
        x, y = xs[i], ys[i]
        if x < 0 and y - rise * x > p_above:
            px, py, p_above = x, y, y - rise * x
        if x > 0 and y - fall * x > q_above:
            qx, qy, q_above = x, y, y - fall * x
    outer_rise = _chord(px - low_x, py - low_y, parallel, _STEEP)
    outer_fall = _chord(high_x - qx, high_y - qy, parallel, -_STEEP)
    rise, fall = _chord(-px, -py, parallel, _STEEP), _chord(qx, qy, parallel, -_STEEP)
    kept = 0
    for i in range(size):
        x, y = xs[i], ys[i]
        inner = min(rise * x, fall * x)
        outer = min(py + outer_rise * (x - px), qy + outer_fall * (x - qx))
        rows[kept], xs[kept], ys[kept] = rows[i], x, y
        kept += y >= min(inner, outer) * _LOWER
    return kept


@njit(cache=True, nogil=True, error_model="numpy")
def _sort(rows: Integers, xs: Floats, ys: Floats, size: int) -> None:
    """Points of row 0 of each array (2, ≥ size) in row 1, sorted by slope, stable, by counting."""
    for i in range(size):
        x, place = xs[0, i], 0
        for j in range(i):
            place += xs[0, j] <= x
        for j in range(i + 1, size):
            place += xs[0, j] < x
        rows[1, place], xs[1, place], ys[1, place] = rows[0, i], x, ys[0, i]


@njit(cache=True, nogil=True, error_model="numpy")
def _linked(
    rows: Integers, xs: Floats, ys: Floats, size: int, parallel: float, breaks: Floats
) -> int:
    """Keep the envelope of lines sorted by slope, in place; fill in its breaks; its length."""
    last = -1
    for i in range(size):
        row, x, y = rows[i], xs[i], ys[i]
        begins, hidden = -math.inf, False
        while last >= 0:
            if x - xs[last] <= parallel:
                hidden = y <= ys[last]  # of equal lines the first row stays
                if hidden:
                    break
            else:
                begins = (ys[last] - y) / (x - xs[last])
                if begins > breaks[last]:
                    break
            begins = -math.inf
            last -= 1
        if not hidden:
            last += 1
            rows[last], xs[last], ys[last], breaks[last] = row, x, y, begins
    return last + 1


@njit(cache=True, nogil=True)
def _fill_changes(offsets: Integers, rows: Integers, statistics: Sums, changes: Sums) -> None:
    """Fill in what each row of an envelope adds to the statistics of the row before it."""
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            for k in range(statistics.shape[1]):
                changes[i, k] = statistics[rows[i], k]
                if i > offsets[s]:
                    changes[i, k] -= statistics[rows[i - 1], k]
