"""Upper envelope over all paths of a document: which path is best at which step of a direction.

Candidates that are dominated in any surroundings go first (`dominance`), then the pairs of those
that stay are gathered, and `parametric_viterbi` searches them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.tuning.document_chain import DocumentChain, Floats
from rerank.tuning.dominance import undominated
from rerank.tuning.parametric_viterbi import Breaks, Trellis, parametric_viterbi

MOST_BREAKS = 10**6  # of a document; real ones have a few for each sentence


@dataclass(frozen=True, slots=True, eq=False)
class DocumentEnvelope:
    """The best paths of a document from one end of a range of steps to the other.

    first: (T,) rows of the best path at the lower end
    breaks: (m,) steps inside the range, strictly increasing, where another path becomes best
    starts: (m+1,); what break i changes is starts[i]:starts[i+1] of
    sentences: (x,) ascending, rows: (x,) what they choose from there on
    complete: whether these are all; if not, there are more than were asked for
    """

    first: NDArray[np.int64]
    breaks: NDArray[np.float64]
    starts: NDArray[np.int64]
    sentences: NDArray[np.int64]
    rows: NDArray[np.int64]
    complete: bool

    def path(self, segment: int) -> NDArray[np.int64]:
        """Rows (T,) of the best path between breaks segment − 1 and segment, 0 <= segment <= m."""
        path = self.first.copy()
        end = self.starts[segment]
        path[self.sentences[:end]] = self.rows[:end]  # numpy: of equal places the last one counts
        return path

    def changes(self, statistics: NDArray[np.integer]) -> NDArray[np.int64]:
        """What each break adds to the summed statistics of the path, (m, W); O(x W)."""
        found = np.zeros((len(self.breaks), statistics.shape[1]), dtype=np.int64)
        _changes((self.first, self.starts, self.sentences, self.rows), statistics, found)
        return found


def document_envelope(
    chain: DocumentChain,
    unary: tuple[NDArray[np.float64], NDArray[np.float64]],
    pair: tuple[NDArray[np.float64], NDArray[np.float64]],
    *,
    lo: float,
    hi: float,
    most: int = MOST_BREAKS,
) -> DocumentEnvelope:
    """The envelope of a document's paths for steps from lo to hi; with lo = hi Viterbi search.

    unary: scores (n,) of candidates alone at step 0, and what a step of 1 adds; pair: weights (C,)
    of the contextual features at step 0, and what a step of 1 adds. Paths nearer than 2⁻⁴² of their
    score count as equal, and of equal paths the one is taken that decoders take, as far as sums
    are exact. O(n C), the pairs of what is not dominated, and `parametric_viterbi` on these.
    """
    rows, offsets = undominated(chain, unary, pair, (lo, hi))
    trellis = gathered(chain, unary, pair, rows, offsets)
    found = parametric_viterbi(trellis, lo, hi, most)
    return _assembled(found, rows, offsets, lo, hi)


def gathered(
    chain: DocumentChain,
    unary: tuple[NDArray[np.float64], NDArray[np.float64]],
    pair: tuple[NDArray[np.float64], NDArray[np.float64]],
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> Trellis:
    """Lines of all pairs of some rows, in float64. O(C Σ m_{t−1} m_t), m of them in a sentence."""
    sizes = np.diff(offsets)
    starts = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum(sizes * np.concatenate([[1], sizes])[:-1], out=starts[1:])
    trellis = Trellis(offsets, starts, np.empty(starts[-1]), np.empty(starts[-1]))
    _gather_unary(trellis, rows, unary)
    for c, flat in enumerate(chain.pairs):
        _gather_pairs(trellis, rows, chain.offsets, flat, (pair[0][c], pair[1][c]))
    return trellis


@njit(cache=True, nogil=True)
def _gather_unary(
    trellis: Trellis,
    rows: NDArray[np.int64],
    unary: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    """Set each pair to the line of its later candidate alone."""
    place = 0
    for t in range(len(trellis.offsets) - 1):
        start, end = trellis.offsets[t], trellis.offsets[t + 1]
        for _ in range((trellis.starts[t + 1] - trellis.starts[t]) // (end - start)):
            for i in range(start, end):
                trellis.base[place], trellis.slope[place] = unary[0][rows[i]], unary[1][rows[i]]
                place += 1


@njit(cache=True, nogil=True)
def _gather_pairs(
    trellis: Trellis,
    rows: NDArray[np.int64],
    offsets: NDArray[np.int64],
    pairs: Floats,
    weights: tuple[float, float],
) -> None:
    """Add the pairs of one feature."""
    place = begin = 0
    for t in range(len(offsets) - 1):
        size, before = offsets[t + 1] - offsets[t], 1
        ys = np.zeros(1, dtype=np.int64)
        if t:
            before = offsets[t] - offsets[t - 1]
            ys = rows[trellis.offsets[t - 1] : trellis.offsets[t]] - offsets[t - 1]
        for y in ys:
            for i in range(trellis.offsets[t], trellis.offsets[t + 1]):
                value = np.float64(pairs[begin + y * size + rows[i] - offsets[t]])
                trellis.base[place] += weights[0] * value
                trellis.slope[place] += weights[1] * value
                place += 1
        begin += before * size


def _assembled(
    found: Breaks, kept: NDArray[np.int64], offsets: NDArray[np.int64], lo: float, hi: float
) -> DocumentEnvelope:
    """Breaks in order, with rows for choices; those at the ends and those without width go."""
    order = np.argsort(found.steps, kind="stable")  # of one sentence they are in order already
    steps, sizes = found.steps[order], np.diff(found.starts)[order]
    places = np.repeat(found.starts[order] - np.cumsum(sizes) + sizes, sizes)
    places += np.arange(len(places))
    sentences = found.sentences[places]
    rows = kept[offsets[sentences] + found.choices[places]]
    of_change = np.repeat(steps, sizes)
    first = kept[offsets[:-1] + found.first]
    early = of_change <= lo
    first[sentences[early]] = rows[early]
    inside = (of_change > lo) & (of_change < hi)
    breaks = np.unique(of_change[inside])
    starts = np.append(np.searchsorted(of_change[inside], breaks), inside.sum())
    return DocumentEnvelope(
        first, breaks, starts, sentences[inside], rows[inside], found.complete
    )


@njit(cache=True, nogil=True)
def _changes(
    envelope: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    statistics: NDArray[np.integer],
    changes: NDArray[np.int64],
) -> None:
    """Fill in the changes of an `envelope` = (first, starts, sentences, rows)."""
    first, starts, sentences, rows = envelope
    path = first.copy()
    for m in range(len(starts) - 1):
        for x in range(starts[m], starts[m + 1]):
            t = sentences[x]
            for w in range(changes.shape[1]):
                changes[m, w] += statistics[rows[x], w] - statistics[path[t], w]
            path[t] = rows[x]
