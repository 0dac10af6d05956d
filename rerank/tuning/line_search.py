"""Line search on corpus BLEU, exact: BLEU of every interval between the breaks of the envelopes.

The candidates chosen, and with them BLEU, only change where the envelope of some list breaks: all
values that BLEU takes along a direction are visited. Och (2003), section 5,
https://aclanthology.org/P03-1021.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.bleu import WIDTH, score
from rerank.tuning.envelope import Direction, Scratch, upper_envelopes
from rerank.tuning.pool import Pool


def line_search(
    pool: Pool,
    scores: NDArray[np.float64],
    choices: NDArray[np.int64],
    direction: Direction,
    scratch: Scratch,
    *,
    floor: float,
) -> tuple[float, float]:
    """Step into the middle of the best interval, and BLEU (0..100) there; (0, floor) if none is.

    `floor` is the BLEU to beat, as a rule that of step 0. Of intervals as good the one with the
    least steps is taken. An open end is entered by its break's own size, at least by 1 / spread.
    O(n + m log m) for m breaks.
    """
    envelopes = upper_envelopes(pool, scores, choices, direction, scratch)
    changes = scratch.changes(len(envelopes.rows))
    _changes(envelopes.offsets, envelopes.rows, pool.statistics, changes)
    order = np.argsort(envelopes.breaks)
    best, bleu = _best_interval(envelopes.breaks, order, changes, floor)
    if best < 0 or direction.spread == 0:
        return 0.0, floor
    left = float(envelopes.breaks[order[best]])
    right = float(envelopes.breaks[order[best + 1]]) if best + 1 < len(order) else math.inf
    step = _inside(left, right, 1 / direction.spread)
    return (step, bleu) if math.isfinite(step) else (0.0, floor)


def _inside(left: float, right: float, unit: float) -> float:
    """A step inside an interval of which one end may be infinite."""
    if math.isinf(left):
        return right - max(abs(right), unit)
    if math.isinf(right):
        return left + max(abs(left), unit)
    return left + (right - left) / 2


@njit(cache=True, nogil=True)
def _changes(
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    statistics: NDArray[np.integer],
    changes: NDArray[np.integer],
) -> None:
    """Fill in what each row of an envelope adds to the statistics of the row before it."""
    for s in range(len(offsets) - 1):
        for i in range(offsets[s], offsets[s + 1]):
            for k in range(WIDTH):
                changes[i, k] = statistics[rows[i], k]
                if i > offsets[s]:
                    changes[i, k] -= statistics[rows[i - 1], k]


@njit(cache=True, nogil=True, error_model="numpy")
def _best_interval(
    breaks: NDArray[np.float64],
    order: NDArray[np.int64],
    changes: NDArray[np.integer],
    floor: float,
) -> tuple[int, float]:
    """Place in `order` of the break that opens the best interval, and its BLEU; −1 if none."""
    total = np.zeros(WIDTH, dtype=np.int64)
    best, bleu = -1, floor
    worth = (bleu / 100) ** 4 * (1 - 1e-9)
    for i in range(len(order)):
        for k in range(WIDTH):
            total[k] += changes[order[i], k]
        if i + 1 < len(order) and breaks[order[i + 1]] == breaks[order[i]]:
            continue  # an interval without width
        if _ceiling(total) >= worth:
            this = score(total, False)
            if this > bleu:
                best, bleu = i, this
                worth = (bleu / 100) ** 4 * (1 - 1e-9)
    return best, bleu


@njit(cache=True, nogil=True, error_model="numpy")
def _ceiling(total: NDArray[np.int64]) -> float:
    """Upper bound of (BLEU / 100)⁴, close and without a logarithm: most intervals end here."""
    matches, grams = 1.0, 1.0
    for n in range(4):
        matches *= max(total[n], 1)
        grams *= total[4 + n]
    if grams == 0:
        return 0.0
    short = max(4 * (total[8] / total[4] - 1), 0.0)
    brevity = 1 / (1 + short * (1 + short / 2))  # ≥ exp(−short)
    return float(matches / grams * brevity)
