"""Line search over all paths of all documents: exact where a score looks one sentence back.

Between two breaks of the documents' envelopes no choice changes, nor does any objective: all the
values that it takes on decoded documents in a range of steps are visited, without a pool. Och
(2003), section 5, https://aclanthology.org/P03-1021, with paths in place of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.document_chain import DocumentChain
from rerank.tuning.document_envelope import MOST_BREAKS, DocumentEnvelope, document_envelope
from rerank.tuning.goals import SearchGoal
from rerank.tuning.line import EVERYWHERE, Line, Step
from rerank.tuning.objectives import Sums


@dataclass(frozen=True, slots=True, eq=False)
class ChainSet:
    """The D documents of a tuning set, and what no choice changes.

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
        if not len(chains) <= len(gaps) <= len(chains) + 1:
            raise ValueError(f"statistics of the gaps of {len(gaps)}, {len(chains)} documents")
        n = sum(len(chain.fixed) for chain in chains)
        squares = np.sum([chain.squares() for chain in chains], axis=0)
        return cls(tuple(chains), gaps, np.sqrt(squares / max(n, 1)))

    def unaries(self, weights: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Scores of each document's candidates alone under weights (F,). O(n F)."""
        return [chain.unary(weights) for chain in self.chains]

    def size(self, weights: NDArray[np.float64]) -> float:
        """Length of weights (F,) in spreads of the features."""
        return float(np.linalg.norm(weights * self.spreads))

    def decoded(self, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of the paths that weights (F,) choose: Viterbi search."""
        nowhere = np.zeros_like(weights)
        found = _envelopes(self, self.unaries(weights), (weights, nowhere), (0.0, 0.0), MOST_BREAKS)
        return self.begun(found)

    def begun(self, envelopes: Sequence[DocumentEnvelope]) -> Sums:
        """Summed statistics (D, W) of the paths that envelopes begin with."""
        sums = [
            chain.statistics[envelope.first].sum(axis=0)
            for chain, envelope in zip(self.chains, envelopes, strict=True)
        ]
        whole = self.gaps.copy()
        whole[: len(sums)] += np.array(sums)
        return whole


def document_line_search(
    documents: ChainSet,
    unaries: Sequence[NDArray[np.float64]],
    line: tuple[NDArray[np.float64], NDArray[np.float64]],
    goal: SearchGoal,
    here: float,
    *,
    notices: Notices,
    span: tuple[float, float] = EVERYWHERE,
) -> Step:
    """The best step from weights along a direction, a `line` of two (F,); `here`: its value at 0.

    `unaries` are those of the weights. As `document_line`, and then O(m W) for m breaks.
    """
    if documents.size(line[1]) == 0:
        return Step(0.0, here, here, here)
    return goal.best(document_line(documents, unaries, line, notices=notices, span=span), here)


def document_line(
    documents: ChainSet,
    unaries: Sequence[NDArray[np.float64]],
    line: tuple[NDArray[np.float64], NDArray[np.float64]],
    *,
    notices: Notices,
    span: tuple[float, float] = EVERYWHERE,
    most: int = MOST_BREAKS,
) -> Line:
    """Where the best path of some document changes along a line = (weights, direction), (F,) each.

    The direction moves something. The range is a box around the weights: it ends where the
    direction adds as much as the weights are (1 if they are nothing), both measured in spreads of
    the features, and where `span` ends. Where a document has more than `most` breaks in there, the
    range is halved until it has not, with a notice; `Line.span` tells what was searched.
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
    begun = documents.begun(found)
    breaks, changes, owners = [np.full(len(begun), -np.inf)], [begun], []
    for chain, envelope in zip(documents.chains, found, strict=True):
        breaks.append(envelope.breaks)
        changes.append(envelope.changes(chain.statistics))
        owners.append(len(envelope.breaks))
    steps = np.concatenate(breaks)
    return Line(
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
    """Envelope of each document; after one that is not complete none."""
    weights, direction = line
    found: list[DocumentEnvelope] = []
    for chain, unary in zip(documents.chains, unaries, strict=True):
        pair = (weights[chain.contextual], direction[chain.contextual])
        lines = (unary, chain.slopes(direction))
        found.append(document_envelope(chain, lines, pair, lo=box[0], hi=box[1], most=most))
        if not found[-1].complete:
            break
    return found
