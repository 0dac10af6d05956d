"""The line of an exact line search on a pool: the breaks of the envelopes of all lists.

The chosen candidates, and their statistics, change only where the envelope of some list breaks.
So a search visits every value that an objective has along a direction. Och (2003), section 5,
https://aclanthology.org/P03-1021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.mert.envelope import Direction, Scratch, upper_envelopes
from rerank.tuning.mert.line import EVERYWHERE, Line
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class SearchDirection:
    """A direction `vector` (F,), the slopes of a pool along it, and the steps allowed."""

    vector: NDArray[np.float64]
    slopes: Direction
    span: tuple[float, float] = EVERYWHERE


def line_of(
    pool: Pool,
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    choices: NDArray[np.int64],
    direction: SearchDirection,
    scratch: Scratch,
) -> Line:
    """The breaks of all lists along a direction; the result lies in `scratch`. O(n + m log m)."""
    envelopes = upper_envelopes(pool, scores, choices, direction.slopes, scratch)
    changes = scratch.changes(len(envelopes.rows))
    _changes(envelopes.offsets, envelopes.rows, pool.statistics, changes)
    return Line(
        envelopes.breaks,
        np.argsort(envelopes.breaks),
        changes,
        pool.documents_of(envelopes.offsets),
        weights,
        direction.vector,
        direction.span,
        1 / direction.slopes.spread,
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
