"""The line of an exact line search on a pool: the breaks of the envelopes of all lists.

The chosen candidates, and their statistics, change only where the envelope of some list breaks.
So a search visits every value that an objective has along a direction. Och (2003), section 5,
https://aclanthology.org/P03-1021.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.mert.envelope import Direction, Scratch, upper_envelopes
from rerank.tuning.mert.line import EVERYWHERE, SearchLine
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool


def line_of(
    pool: Pool,
    scores: NDArray[np.float64],
    choices: NDArray[np.int64],
    slopes: Direction,
    scratch: Scratch,
    *,
    weights: NDArray[np.float64],
    vector: NDArray[np.float64],
    span: tuple[float, float] = EVERYWHERE,
) -> SearchLine:
    """The breaks of all lists along a vector (F,); the result lies in `scratch`. O(n + m log m).

    scores, choices: those of `weights` (F,); slopes: of the pool along the vector; span: least and
    greatest step allowed
    """
    envelopes = upper_envelopes(pool, scores, choices, slopes, scratch)
    changes = scratch.changes(len(envelopes.rows))
    _changes(envelopes.offsets, envelopes.rows, pool.statistics, changes)
    return SearchLine(
        envelopes.breaks,
        envelopes.breaks.argsort(),
        changes,
        pool.documents_of(envelopes.offsets),
        weights,
        vector,
        span,
        1 / slopes.spread,
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
