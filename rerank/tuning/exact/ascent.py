"""Coordinate ascent by exact line searches over all paths of all documents.

Between two breaks of the documents' envelopes no choice changes, so no objective does. Where scores
look back one sentence at most, a line search sees all paths (Och 2003, section 5,
https://aclanthology.org/P03-1021, with paths in place of candidates): every value that an objective
takes on decoded documents in a range of steps. So there are no pools and no rounds: the predicted
value is the value of what Viterbi search decodes, and it never falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.exact.chain import DocumentChain
from rerank.tuning.exact.envelope import MOST_BREAKS, DocumentEnvelope, document_envelope
from rerank.tuning.goal import EVERYWHERE, SearchGoal, SearchLine
from rerank.tuning.objective import Sums
from rerank.tuning.pool import TuningSet
from rerank.tuning.tuners.ascent import Bounds, Point


@dataclass(frozen=True, slots=True, eq=False)
class ChainSet:
    """The D documents of a tuning set as chains, and the statistics of their gaps.

    gaps: (D, W) summed statistics of the sentences without candidates; one more row is that of the
    documents without any candidate
    spreads: (F,) root mean square distance of a feature's values from the mean of their sentence
    """

    chains: tuple[DocumentChain, ...]
    gaps: Sums
    spreads: NDArray[np.float64]

    @classmethod
    def of(cls, chains: Sequence[DocumentChain], gaps: Sums) -> ChainSet:
        """Documents of the same features, one or more. O(n F)."""
        n = sum(len(chain.fixed) for chain in chains)
        squares = np.sum([chain.squares() for chain in chains], axis=0)
        return cls(tuple(chains), gaps, np.sqrt(squares / max(n, 1)))

    @classmethod
    def of_documents(cls, corpus: TuningSet) -> ChainSet:
        """The documents of a tuning set whose scorers are of order 0 or 1."""
        wide = (rows.astype(np.result_type(rows, np.int64)) for rows in corpus.statistics)
        pairs = zip(corpus.documents, wide, strict=True)
        return cls.of([DocumentChain.of(*pair) for pair in pairs], corpus.gaps)

    def unaries(self, weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Scores of each document's candidates alone under weights (F,). O(n F)."""
        return [chain.unary(weights) for chain in self.chains]

    def size(self, weights: NDArray[np.float64]) -> float:
        """Length of weights (F,) in spreads of the features."""
        return float(np.linalg.norm(weights * self.spreads))

    def decode(self, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of the paths that weights (F,) choose: Viterbi search."""
        nowhere = np.zeros_like(weights)
        found = _envelopes(self, self.unaries(weights), (weights, nowhere), (0.0, 0.0), MOST_BREAKS)
        return self.first_sums(found)

    def first_sums(self, envelopes: Sequence[DocumentEnvelope]) -> Sums:
        """Summed statistics (D, W) of the first paths of envelopes."""
        sums = [
            chain.statistics[envelope.first].sum(axis=0)
            for chain, envelope in zip(self.chains, envelopes, strict=True)
        ]
        whole = self.gaps.copy()
        whole[: len(sums)] += np.array(sums)
        return whole


def document_line(
    documents: ChainSet,
    unaries: Sequence[NDArray[np.float64]],
    line: tuple[NDArray[np.float64], NDArray[np.float64]],
    *,
    notices: Notices,
    span: tuple[float, float] = EVERYWHERE,
    most: int = MOST_BREAKS,
) -> SearchLine:
    """The breaks of all documents along a line = (weights, direction), (F,) each.

    The direction must vary in some list. The range of steps ends where the direction adds as much
    as the weights' own length (1 for zeros), both in spreads of the features, and where `span`
    ends. Where a document has more than `most` breaks in the range, it is halved, with a notice;
    `SearchLine.span` is the range that was searched. unaries: those of the weights.
    O(n) beside `document_envelope`, m log m for m breaks.
    """
    weights, direction = line
    length = documents.size(direction)
    reach = (documents.size(weights) or 1.0) / length
    box = max(span[0], -reach), min(span[1], reach)
    found = _envelopes(documents, unaries, line, box, most)
    while not all(envelope.complete for envelope in found):
        notices.add(
            f"more than {most:,} changes of a document's best path in the range of a line search, "
            "which was halved; fewer features, or fewer candidates (--top), make it whole"
        )
        box = box[0] / 2, box[1] / 2
        found = _envelopes(documents, unaries, line, box, most)
    begun = documents.first_sums(found)
    breaks, changes, owners = [np.full(len(begun), -np.inf)], [begun], []
    for chain, envelope in zip(documents.chains, found, strict=True):
        breaks.append(envelope.breaks)
        changes.append(envelope.changes(chain.statistics))
        owners.append(len(envelope.breaks))
    steps = np.concatenate(breaks)
    return SearchLine(
        steps,
        np.argsort(steps, kind="stable"),
        np.concatenate(changes),
        np.concatenate([np.arange(len(begun)), np.repeat(np.arange(len(found)), owners)]),
        weights,
        direction,
        box,
        1 / length,
    )


def _envelopes(
    documents: ChainSet,
    unaries: Sequence[NDArray[np.float64]],
    line: tuple[NDArray[np.float64], NDArray[np.float64]],
    box: tuple[float, float],
    most: int,
) -> list[DocumentEnvelope]:
    """Envelope of each document, up to the first one that is not complete."""
    weights, direction = line
    found: list[DocumentEnvelope] = []
    for chain, unary in zip(documents.chains, unaries, strict=True):
        pair = (weights[chain.contextual], direction[chain.contextual])
        lines = (unary, chain.slopes(direction))
        found.append(document_envelope(chain, lines, pair, lo=box[0], hi=box[1], most=most))
        if not found[-1].complete:
            break
    return found


class DocumentPoint(Point):
    """A point on documents, with the scores of their candidates alone.

    features: those that are tuned; of these only features that vary in some sentence move. No step
    is taken that does not gain when the documents are decoded. O(n) and `document_envelope` of
    each document for each search, and Viterbi search for each step taken.
    """

    def __init__(
        self,
        documents: ChainSet,
        weights: NDArray[np.float64],
        goal: SearchGoal,
        *,
        features: NDArray[np.int64],
        notices: Notices,
        bounds: Bounds,
    ) -> None:
        features = features[documents.spreads[features] > 0]
        self.documents, self.notices = documents, notices
        weights = weights.astype(np.float64)
        self._unaries = documents.unaries(weights)
        super().__init__(weights, documents.decode(weights), goal, features, bounds=bounds)

    def line(self, axis: int) -> SearchLine:
        """All breaks along an axis, of all paths."""
        vector = self.vector(axis)
        return document_line(
            self.documents,
            self._unaries,
            (self.weights, vector),
            notices=self.notices,
            span=self.bounds.span(self.weights, self.features[axis]),
        )

    def sums_after(self, axis: int, step: float, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of the paths that the new weights decode."""
        return self.documents.decode(weights)

    def move(self) -> None:
        """Score the candidates under the new weights."""
        self._unaries = self.documents.unaries(self.weights)
