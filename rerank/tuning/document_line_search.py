"""Line search over all paths of all documents: exact where a score looks one sentence back.

Between two breaks of the documents' envelopes no choice changes, and so BLEU does not either: every
value that BLEU of the decoded paths takes in a range of steps is visited, without a pool. Och
(2003), section 5, https://aclanthology.org/P03-1021, with paths in place of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.document_chain import DocumentChain
from rerank.tuning.document_envelope import MOST_BREAKS, DocumentEnvelope, document_envelope
from rerank.tuning.line_search import _best_interval


@dataclass(frozen=True, slots=True, eq=False)
class ChainSet:
    """The documents of a tuning set, and what no choice changes.

    gaps: (W,) summed statistics of the sentences without candidates
    spreads: (F,) root mean square distance of a feature's values from the mean of their sentence
    """

    chains: tuple[DocumentChain, ...]
    gaps: NDArray[np.int64]
    spreads: NDArray[np.float64]

    @classmethod
    def of(cls, chains: Sequence[DocumentChain], gaps: NDArray[np.int64]) -> ChainSet:
        """Documents of the same features, one or more. O(n F)."""
        n = sum(len(chain.fixed) for chain in chains)
        squares = np.sum([chain.squares() for chain in chains], axis=0)
        return cls(tuple(chains), gaps, np.sqrt(squares / max(n, 1)))

    def unaries(self, weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Scores of each document's candidates alone under weights (F,). O(n F)."""
        return [chain.unary(weights) for chain in self.chains]

    def size(self, weights: NDArray[np.float64]) -> float:
        """Length of weights (F,) in spreads of the features."""
        return float(np.linalg.norm(weights * self.spreads))

    def decoded(self, weights: NDArray[np.float64]) -> NDArray[np.int64]:
        """Summed statistics (W,) of the paths that weights (F,) choose; Viterbi search."""
        found = self.gaps.copy()
        for chain, unary in zip(self.chains, self.unaries(weights), strict=True):
            lines, pair = (unary, np.zeros_like(unary)), weights[chain.contextual]
            path = document_envelope(chain, lines, (pair, np.zeros_like(pair)), lo=0.0, hi=0.0)
            found += chain.statistics[path.first].sum(axis=0)
        return found


@dataclass(frozen=True, slots=True)
class Step:
    """What a line search found: a step, BLEU (0..100) there, and how far it looked either way.

    breaks: number of steps, of all documents, where a best path changes
    """

    step: float
    bleu: float
    reach: float
    breaks: int


def document_line_search(
    documents: ChainSet,
    unaries: Sequence[NDArray[np.float64]],
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
    *,
    floor: float,
    most: int = MOST_BREAKS,
) -> Step:
    """Step into the middle of the best interval along a direction (F,), 0 if none beats `floor`.

    unaries: those of `weights` (F,). The range is a box around the weights: it ends where the
    direction adds as much as there is, both measured in spreads of the features (`ChainSet.size`;
    of weights 0, one spread). Where a document has more than `most` breaks in there, the range is
    halved until it has not: `reach` says. O(n) beside `document_envelope` and m log m, m breaks.
    """
    length = documents.size(direction)
    if length == 0:
        return Step(0.0, floor, 0.0, 0)
    reach = (documents.size(weights) or 1.0) / length
    found = _envelopes(documents, unaries, (weights, direction), reach, most)
    while not all(envelope.complete for envelope in found):
        reach /= 2
        found = _envelopes(documents, unaries, (weights, direction), reach, most)
    step, bleu = _best_step(documents, found, reach, floor)
    return Step(step, bleu, reach, sum(len(envelope.breaks) for envelope in found))


def _envelopes(
    documents: ChainSet,
    unaries: Sequence[NDArray[np.float64]],
    line: tuple[NDArray[np.float64], NDArray[np.float64]],
    reach: float,
    most: int,
) -> list[DocumentEnvelope]:
    """Envelope of each document along a `line` = (weights, direction), each (F,)."""
    weights, direction = line
    found = []
    for chain, unary in zip(documents.chains, unaries, strict=True):
        pair = (weights[chain.contextual], direction[chain.contextual])
        lines = (unary, chain.slopes(direction))
        found.append(document_envelope(chain, lines, pair, lo=-reach, hi=reach, most=most))
    return found


def _best_step(
    documents: ChainSet, envelopes: Sequence[DocumentEnvelope], reach: float, floor: float
) -> tuple[float, float]:
    """Middle of the best interval, and BLEU there; (0, floor) where none is better."""
    breaks, changes = [np.array([-np.inf])], [documents.gaps[None]]
    owners = [np.array([len(envelopes)])]  # what no choice changes has a document of its own
    for d, (chain, envelope) in enumerate(zip(documents.chains, envelopes, strict=True)):
        first = chain.statistics[envelope.first].sum(axis=0, dtype=np.int64)
        breaks += [np.array([-np.inf]), envelope.breaks]
        changes += [first[None], envelope.changes(chain.statistics)]
        owners.append(np.full(1 + len(envelope.breaks), d))
    return _scanned(np.concatenate(breaks), np.concatenate(changes), reach, floor)


def _scanned(
    breaks: NDArray[np.float64], changes: NDArray[np.int64], reach: float, floor: float
) -> tuple[float, float]:
    """Middle of the best interval between breaks (m,) at which statistics change by (m, W)."""
    order = np.argsort(breaks, kind="stable")
    best, bleu = _best_interval(breaks, order, changes, floor)
    if best < 0:
        return 0.0, floor
    left = max(float(breaks[order[best]]), -reach)
    right = float(breaks[order[best + 1]]) if best + 1 < len(order) else reach
    return left + (right - left) / 2, bleu
