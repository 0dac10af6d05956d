"""Dominated candidates: no best path of a document takes them, in any context.

In any context candidate k adds between lower(k) and upper(k) to the score: its own score, the
means of its pairs, and their least or greatest deviation (`Couplings`). If upper(k) < lower(k′)
for some k′ of the same sentence, a path through k gains by k′. Along a direction lower is
concave and upper convex in the step, so on an interval their chords are bounds: k is dominated if
its chord lies below the chord of a k′ everywhere, or below the higher one of two such chords.

This costs O(n) for each interval, while the pairs, a hundred times as many, are not touched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.exact.chain import DocumentChain


class CandidateSubset(NamedTuple):
    """Some rows (m,) of a document, ascending; sentence t has those of offsets[t]:offsets[t+1]."""

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @classmethod
    def all(cls, chain: DocumentChain) -> CandidateSubset:
        """Every row of a document."""
        return cls(np.arange(len(chain.fixed), dtype=np.int64), chain.offsets)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the pairs of each sentence begin, one after another, (T+1,)."""
        sizes = np.diff(self.offsets)
        return np.concatenate([[0], np.cumsum(sizes * np.concatenate([[1], sizes])[:-1])])


_MARGIN = (
    2.0**-40
)  # relative to the scores; nearer candidates stay, since the difference may be rounding


def undominated(
    chain: DocumentChain,
    candidates: CandidateSubset,
    unary: tuple[NDArray[np.float64], NDArray[np.float64]],
    pair: tuple[NDArray[np.float64], NDArray[np.float64]],
    box: tuple[float, float],
) -> CandidateSubset:
    """Those of the candidates that a best path may take for some step in the box.

    unary: scores (n,) of the candidates alone at step 0, and what a step of 1 adds; pair: weights
    (C,) of the contextual features at step 0, and what a step of 1 adds. Of every sentence with
    candidates one stays; of equal ones all do. O(m C) for m candidates.
    """
    rows, offsets = np.empty_like(candidates.rows), np.zeros_like(candidates.offsets)
    couplings = chain.couplings
    ranges = (couplings.centre, couplings.low, couplings.high)
    _undominated(candidates, unary, pair, ranges, box, (rows, offsets))
    return CandidateSubset(rows[: offsets[-1]], offsets)


@njit(cache=True, nogil=True)
def _undominated(
    candidates: CandidateSubset,
    unary: tuple[NDArray[np.float64], NDArray[np.float64]],
    pair: tuple[NDArray[np.float64], NDArray[np.float64]],
    ranges: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    box: tuple[float, float],
    kept: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Fill in `kept` = (rows, offsets)."""
    longest, offsets = 0, candidates.offsets
    for t in range(len(offsets) - 1):
        longest = max(longest, offsets[t + 1] - offsets[t])
    lower, upper, m = np.empty((2, longest)), np.empty((2, longest)), 0
    for t in range(len(offsets) - 1):
        rows = candidates.rows[offsets[t] : offsets[t + 1]]
        for side in range(2):
            for i in range(len(rows)):
                lower[side, i] = unary[0][rows[i]] + box[side] * unary[1][rows[i]]
                upper[side, i] = lower[side, i]
            for c in range(len(pair[0])):
                weight = pair[0][c] + box[side] * pair[1][c]
                least, most = ranges[1][c], ranges[2][c]
                if weight < 0:
                    least, most = most, least
                for i in range(len(rows)):
                    lower[side, i] += weight * (ranges[0][c, rows[i]] + least[rows[i]])
                    upper[side, i] += weight * (ranges[0][c, rows[i]] + most[rows[i]])
        if len(rows):
            m = _above(lower[:, : len(rows)], upper[:, : len(rows)], rows, kept[0], m)
        kept[1][t + 1] = m


@njit(cache=True, nogil=True)
def _above(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    rows: NDArray[np.int64],
    kept: NDArray[np.int64],
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
        kept[m] = rows[i]
        m += (
            upper[0, i] + margin >= lower[0, first]
            or upper[1, i] + margin >= lower[1, last]
            or middle + margin >= corner
        )
    return m
