"""Candidates that no best path of a document takes: dominated whatever the sentences around say.

In any surroundings candidate k adds between lower(k) and upper(k) to the score: its own score, the
means of its pairs, and their least or greatest deviation (`Couplings`). If upper(k) < lower(k′)
for some k′ of the same sentence, a path through k gains by k′. Along a direction lower is
concave and upper convex in the step, so on an interval their chords may stand for them: k is out if
its chord lies below the chord of a k′ everywhere, or below the higher one of two such chords.

This costs O(n) for each interval, while the pairs, a hundred times as many, are not touched.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.document_chain import DocumentChain

_MARGIN = 2.0**-40  # relative to the scores; what is nearer may be rounding, and stays


def undominated(
    chain: DocumentChain,
    lines: tuple[NDArray[np.float64], NDArray[np.float64]],
    pair_lines: tuple[NDArray[np.float64], NDArray[np.float64]],
    box: tuple[float, float],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows (m,) that a best path may take for some step in the box, and their offsets (T+1,).

    lines: scores (n,) of the candidates alone at step 0, and what a step of 1 adds; pair_lines:
    (C,) weights of the contextual features at step 0, and what a step of 1 adds. In every sentence
    a row stays; of equal ones all do. O(n C).
    """
    rows = np.empty(len(lines[0]), dtype=np.int64)
    offsets = np.zeros_like(chain.offsets)
    couplings = chain.couplings
    ranges = (couplings.centre, couplings.low, couplings.high)
    _undominated(chain.offsets, lines, pair_lines, ranges, box, (rows, offsets))
    return rows[: offsets[-1]], offsets


@njit(cache=True, nogil=True)
def _undominated(
    offsets: NDArray[np.int64],
    lines: tuple[NDArray[np.float64], NDArray[np.float64]],
    pair_lines: tuple[NDArray[np.float64], NDArray[np.float64]],
    ranges: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    box: tuple[float, float],
    kept: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Fill in `kept` = (rows, offsets)."""
    longest = 0
    for t in range(len(offsets) - 1):
        longest = max(longest, offsets[t + 1] - offsets[t])
    lower, upper = np.empty((2, longest)), np.empty((2, longest))
    m = 0
    for t in range(len(offsets) - 1):
        start, end = offsets[t], offsets[t + 1]
        for side in range(2):
            for i in range(end - start):
                row = start + i
                value = lines[0][row] + box[side] * lines[1][row]
                lower[side, i] = upper[side, i] = value
            for c in range(len(pair_lines[0])):
                weight = pair_lines[0][c] + box[side] * pair_lines[1][c]
                least, most = (ranges[1][c], ranges[2][c])
                if weight < 0:
                    least, most = most, least
                for i in range(end - start):
                    row = start + i
                    lower[side, i] += weight * (ranges[0][c, row] + least[row])
                    upper[side, i] += weight * (ranges[0][c, row] + most[row])
        m = _above(lower[:, : end - start], upper[:, : end - start], start, kept[0], m)
        kept[1][t + 1] = m


@njit(cache=True, nogil=True)
def _above(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    start: int,
    rows: NDArray[np.int64],
    m: int,
) -> int:
    """Append rows whose upper chord reaches the two best lower chords; the number of rows then.

    The higher of the two chords less a third is convex with a corner where they cross, so its
    least value is there or at an end.
    """
    first, last = lower[0].argmax(), lower[1].argmax()
    falls = lower[0, first] - lower[0, last]
    rises = lower[1, last] - lower[1, first]
    share = falls / (falls + rises) if falls + rises > 0 else 0.0
    corner = (1 - share) * lower[0, first] + share * lower[1, first]
    for i in range(lower.shape[1]):
        middle = (1 - share) * upper[0, i] + share * upper[1, i]
        margin = _MARGIN * (abs(upper[0, i]) + abs(upper[1, i]) + abs(corner))
        rows[m] = start + i
        m += (
            upper[0, i] + margin >= lower[0, first]
            or upper[1, i] + margin >= lower[1, last]
            or middle + margin >= corner
        )
    return m
