"""Ascent on BLEU of the decoded documents themselves: exact line searches until none gains.

Where scores look one sentence back at most, a line search sees all paths, so there are no pools and
no rounds: what it predicts is what Viterbi search then decodes, and BLEU never falls. The features
are searched one after another, random directions once none of these gains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.bleu import corpus_bleu, length_ratio
from rerank.tuning.document_line_search import ChainSet, Step, document_line_search


@dataclass(frozen=True, slots=True, eq=False)
class DocumentOptimum:
    """Weights (F,), summed statistics (9,) of the paths that they decode, searches it took."""

    weights: NDArray[np.float64]
    statistics: NDArray[np.int64]
    searches: int = 0

    @property
    def bleu(self) -> float:
        """BLEU, 0..100."""
        return float(corpus_bleu(self.statistics))

    @property
    def ratio(self) -> float:
        """Length of the choices ÷ length of the references."""
        return float(length_ratio(self.statistics))


def document_ascent(
    documents: ChainSet,
    start: NDArray[np.float64],
    *,
    features: NDArray[np.int64],
    rng: np.random.Generator,
    chosen_moves: int = 0,
    random_directions: int = 0,
    most_searches: float = math.inf,
) -> DocumentOptimum:
    """The local optimum reached from weights `start` (F,); no step is taken without a gain.

    features: (G,) those that may move; such as vary in no sentence stay. First come `chosen_moves`
    steps, each the best of those along all features; then the features are searched in turn until
    none gains, and `random_directions` after them, N(0, 1) over the spread of each feature; one
    that gains sends back to the features. It ends before, after `most_searches`.
    """
    point = _Point(documents, start)
    moving = features[documents.spreads[features] > 0]
    axes = [direction(len(start), [f], np.ones(1)) for f in moving]
    for _ in range(chosen_moves if axes else 0):
        steps = [point.search(axis) for axis in axes]
        best = max(range(len(axes)), key=lambda g: steps[g].bleu)
        if not point.take(axes[best], steps[best]):
            break
    turn = idle = 0
    ends = len(axes) + (random_directions if axes else 0)
    while idle < ends and point.searches < most_searches:
        if idle < len(axes):
            ahead, turn = axes[turn], (turn + 1) % len(axes)
        else:
            shares = rng.standard_normal(len(moving)) / documents.spreads[moving]
            ahead = direction(len(start), moving, shares)
        idle = 0 if point.take(ahead, point.search(ahead)) else idle + 1
    return DocumentOptimum(point.weights, point.statistics, point.searches)


def direction(
    width: int, features: list[int] | NDArray[np.int64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The direction (F,) with given shares of some features, 0 of the others."""
    along = np.zeros(width)
    along[features] = shares
    return along


class _Point:
    """Weights on the move, with the documents' scores and statistics under them."""

    def __init__(self, documents: ChainSet, weights: NDArray[np.float64]) -> None:
        self.documents = documents
        self.weights = weights.astype(np.float64)
        self.searches = 0
        self.statistics = documents.decoded(self.weights)
        self._unaries = documents.unaries(self.weights)
        self._bleu = float(corpus_bleu(self.statistics))

    def search(self, along: NDArray[np.float64]) -> Step:
        """Best step along a direction (F,)."""
        self.searches += 1
        return document_line_search(
            self.documents, self._unaries, self.weights, along, floor=self._bleu
        )

    def take(self, along: NDArray[np.float64], step: Step) -> bool:
        """Whether a step did gain in decoding; it is taken only then."""
        weights = self.weights + step.step * along
        if np.array_equal(weights, self.weights):
            return False
        statistics = self.documents.decoded(weights)
        bleu = float(corpus_bleu(statistics))
        if bleu <= self._bleu:
            return False
        self.weights, self.statistics, self._bleu = weights, statistics, bleu
        self._unaries = self.documents.unaries(weights)
        return True
