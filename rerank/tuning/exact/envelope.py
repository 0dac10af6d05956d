"""Upper envelope over all paths of a document: which path is best at which step of a direction.

Candidates that are dominated in any context are dropped (`undominated`), then the pairs of the
others are gathered, and `parametric_viterbi` searches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit
from rerank.tuning.exact.chain import Affine, CandidateSubset, DocumentChain, Floats, undominated
from rerank.tuning.exact.paths import Breaks, Trellis, parametric_viterbi
from rerank.tuning.objective import Sums

MOST_BREAKS = 10**6  # of a document; real ones have a few for each sentence
_FEW_PAIRS = 300  # a sentence: with no more, dividing a box costs what it saves
_HALVINGS = 5


@dataclass(frozen=True, slots=True, eq=False)
class DocumentEnvelope:
    """The best paths of a document from one end of a range of steps to the other.

    first: (S,) rows of the best path at the lower end
    breaks: (m,) steps inside the range, strictly increasing, where another path becomes best
    starts: (m+1,); what break i changes is starts[i]:starts[i+1] of
    sentences: (x,), rows: (x,) what they choose from there on
    complete: whether these are all breaks; if not, there are more than the limit
    """

    first: NDArray[np.int64]
    breaks: NDArray[np.float64]
    starts: NDArray[np.int64]
    sentences: NDArray[np.int64]
    rows: NDArray[np.int64]
    complete: bool

    def changes(self, statistics: Sums) -> Sums:
        """What each break adds to the summed statistics of the path, (m, W); O(x W)."""
        shape = (len(self.breaks), statistics.shape[1])
        found = np.zeros(shape, np.result_type(statistics, np.int64))
        _changes((self.first, self.starts, self.sentences, self.rows), statistics, found)
        return found


def document_envelope(
    chain: DocumentChain,
    unary: Affine,
    pair: Affine,
    *,
    lo: float,
    hi: float,
    most: int = MOST_BREAKS,
) -> DocumentEnvelope:
    """The envelope of a document's paths for steps from lo to hi; with lo = hi Viterbi search.

    unary: scores (n,) of candidates alone at step 0, and what a step of 1 adds; pair: weights (C,)
    of the contextual features at step 0, and what a step of 1 adds; most: limit on the
    number of breaks, at least 1. Paths whose scores differ by less than 2⁻⁴² count as equal, and
    of equal paths the one is taken that decoders take, as far as sums are exact. O(n C), the pairs
    of candidates that are not dominated, and `parametric_viterbi` on these.
    """
    lines = (unary, pair)
    every = CandidateSubset(np.arange(len(chain.fixed)), chain.offsets)
    boxes = _divided(chain, lines, every, (lo, hi), _HALVINGS)
    found = []
    for box, candidates in boxes:
        trellis = gathered(chain, unary, pair, candidates)
        found.append(parametric_viterbi(trellis, *box, most))
        most -= found[-1].number
        if most < 0:
            break
    return _assembled(found, boxes)


def _divided(
    chain: DocumentChain,
    lines: tuple[Affine, Affine],
    candidates: CandidateSubset,
    box: tuple[float, float],
    halvings: int,
) -> list[tuple[tuple[float, float], CandidateSubset]]:
    """Neighbouring boxes that make up a box, and the candidates that matter in each of them.

    A box with many candidates is halved: shorter chords are tighter bounds, so far fewer candidates
    are left in each half.
    """
    kept = undominated(chain, candidates, *lines, box)
    middle = box[0] + (box[1] - box[0]) / 2
    few = kept.starts[-1] <= _FEW_PAIRS * len(kept.offsets)
    if few or halvings == 0 or not box[0] < middle < box[1]:
        return [(box, kept)]
    halves = ((box[0], middle), (middle, box[1]))
    return [part for h in halves for part in _divided(chain, lines, kept, h, halvings - 1)]


def gathered(
    chain: DocumentChain, unary: Affine, pair: Affine, candidates: CandidateSubset
) -> Trellis:
    """Lines of all pairs of some candidates, in float64. O(C Σ m_{t−1} m_t), m in a sentence."""
    starts = candidates.starts
    trellis = Trellis(candidates.offsets, starts, np.empty(starts[-1]), np.empty(starts[-1]))
    _set_candidates(trellis, candidates.rows, unary)
    for c, flat in enumerate(chain.pairs):
        weights = (float(pair[0][c]), float(pair[1][c]))
        _add_pairs(trellis, candidates.rows, chain.offsets, flat, weights)
    return trellis


@njit(cache=True, nogil=True)
def _set_candidates(
    trellis: Trellis,
    rows: NDArray[np.int64],
    unary: Affine,
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
def _add_pairs(
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
    found: Sequence[Breaks], boxes: Sequence[tuple[tuple[float, float], CandidateSubset]]
) -> DocumentEnvelope:
    """Breaks of neighbouring boxes in order, with rows in place of choices.

    Breaks at the two ends are dropped, and of paths that are best at a single step all but the
    last.
    """
    (lo, _), candidates = boxes[0]
    first = candidates.rows[candidates.offsets[:-1] + found[0].first]
    path, parts = first.copy(), []
    for breaks, ((start, _), candidates) in zip(found, boxes, strict=False):
        begins = candidates.offsets[:-1]
        entered = candidates.rows[begins + breaks.first]
        turned = np.flatnonzero(entered != path)  # no more than rounding can turn
        parts.append((np.full(len(turned), start), turned, entered[turned]))
        order = np.argsort(breaks.steps, kind="stable")  # of one sentence they are in order
        sentences = breaks.sentences[order]
        rows = candidates.rows[begins[sentences] + breaks.choices[order]]
        parts.append((breaks.steps[order], sentences, rows))
        for _, at, chosen in parts[-2:]:
            path[at] = chosen  # numpy: of equal places the last one counts
    steps, sentences, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
    early = steps <= lo
    first[sentences[early]] = rows[early]
    inside = (steps > lo) & (steps < boxes[-1][0][1])
    places = np.unique(steps[inside])
    starts = np.append(np.searchsorted(steps[inside], places), inside.sum())
    complete = all(breaks.complete for breaks in found) and len(found) == len(boxes)
    return DocumentEnvelope(first, places, starts, sentences[inside], rows[inside], complete)


@njit(cache=True, nogil=True)
def _changes(
    envelope: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    statistics: Sums,
    changes: Sums,
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
