"""Line search, exact: the goal on every interval between the breaks of the envelopes.

The candidates chosen, and with them their statistics, only change where the envelope of some list
breaks: all values that an objective takes along a direction are visited. Och (2003), section 5,
https://aclanthology.org/P03-1021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.envelope import Direction, Scratch, upper_envelopes
from rerank.tuning.goals import SearchGoal
from rerank.tuning.line import EVERYWHERE, Line, Step
from rerank.tuning.objectives import Sums
from rerank.tuning.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """A direction (F,) in the space of weights, how a pool sees it, and the steps allowed."""

    vector: NDArray[np.float64]
    seen: Direction
    span: tuple[float, float] = EVERYWHERE


def line_search(
    pool: Pool,
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    choices: NDArray[np.int64],
    way: Way,
    *,
    goal: SearchGoal,
    here: float,
    scratch: Scratch,
) -> Step:
    """The best step from weights (F,), under which the pool has these scores (n,), choices (S,).

    `here` is the goal's value there. The step leads into the middle of the best interval; of
    intervals as good the one with the least steps is taken. O(n + m log m) for m breaks.
    """
    if way.seen.spread == 0:
        return Step(0.0, here, here, here)
    return goal.best(line_of(pool, weights, scores, choices, way, scratch), here)


def line_of(
    pool: Pool,
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    choices: NDArray[np.int64],
    way: Way,
    scratch: Scratch,
) -> Line:
    """The breaks of all lists along a way; it lies in `scratch`. O(n + m log m)."""
    envelopes = upper_envelopes(pool, scores, choices, way.seen, scratch)
    changes = scratch.changes(len(envelopes.rows))
    _changes(envelopes.offsets, envelopes.rows, pool.statistics, changes)
    return Line(
        envelopes.breaks,
        np.argsort(envelopes.breaks),
        changes,
        pool.documents_of(envelopes.offsets),
        weights,
        way.vector,
        way.span,
        1 / way.seen.spread,
    )


@njit(cache=True, nogil=True)
def _changes(
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    statistics: Sums,
    changes: Sums,
) -> None:
    """Fill in what each row of an envelope adds to the statistics of the row before it."""
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            for k in range(statistics.shape[1]):
                changes[i, k] = statistics[rows[i], k]
                if i > offsets[s]:
                    changes[i, k] -= statistics[rows[i - 1], k]
