"""Coordinate ascent on the decoded documents themselves: exact line searches until none gains.

Where scores look back one sentence at most, a line search sees all paths. So there are no pools and
no rounds: the predicted value is the value of what Viterbi search decodes, and it never falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.exact.line_search import ChainSet, document_line
from rerank.tuning.mert.coordinates import coordinates
from rerank.tuning.mert.line import SearchLine
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.mert.point import Point
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import Sums


def document_ascent(
    documents: ChainSet,
    start: NDArray[np.float64],
    goal: SearchGoal,
    *,
    features: NDArray[np.int64],
    notices: Notices,
    bounds: Bounds | None = None,
) -> Optimum:
    """The local optimum of coordinate ascent from weights `start` (F,) within bounds.

    features: those that are tuned; of these only features that vary in some sentence move. No step
    is taken that does not gain when the documents are decoded. O(n) and `document_envelope` of
    each document for each search, and Viterbi search for each step taken.
    """
    moving = features[documents.spreads[features] > 0]
    point = DocumentPoint(documents, start, goal, moving, notices=notices, bounds=bounds)
    coordinates(point)
    return point.optimum()


class DocumentPoint(Point):
    """A point on documents, with the scores of their candidates alone."""

    def __init__(
        self,
        documents: ChainSet,
        weights: NDArray[np.float64],
        goal: SearchGoal,
        features: NDArray[np.int64],
        *,
        notices: Notices,
        bounds: Bounds | None = None,
    ) -> None:
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
            span=self.bounds.span(self.weights, vector),
        )

    def sums_after(self, axis: int, step: float, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of the paths that the new weights decode."""
        return self.documents.decode(weights)

    def move(self) -> None:
        """Score the candidates under the new weights."""
        self._unaries = self.documents.unaries(self.weights)
