"""Coordinate ascent on the decoded documents themselves: exact line searches until none gains.

Where scores look back one sentence at most, a line search sees all paths. So there are no pools and
no rounds: the predicted value is the value of what Viterbi search decodes, and it never falls.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.exact.line_search import ChainSet, document_line
from rerank.tuning.mert.coordinates import coordinates
from rerank.tuning.mert.line import Step
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.mert.point import Point
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import Sums

Vector: TypeAlias = NDArray[np.float64]


def document_ascent(
    documents: ChainSet,
    start: Vector,
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
    point = DocumentPoint(documents, moving, start, goal, notices=notices, bounds=bounds)
    coordinates(point)
    return point.optimum()


class DocumentPoint(Point[Vector]):
    """A point on documents, of which `features` (G,) may move; directions are vectors (F,)."""

    def __init__(
        self,
        documents: ChainSet,
        features: NDArray[np.int64],
        weights: Vector,
        goal: SearchGoal,
        *,
        notices: Notices,
        bounds: Bounds | None = None,
    ) -> None:
        self.documents, self.features, self.notices = documents, features, notices
        weights = weights.astype(np.float64)
        self._unaries = documents.unaries(weights)
        super().__init__(weights, documents.decode(weights), goal, bounds)

    @property
    def n_axes(self) -> int:
        """Number of the features that may move."""
        return len(self.features)

    def axis(self, axis: int) -> Vector:
        """The unit vector (F,) of a feature that may move."""
        vector = np.zeros(len(self.documents.spreads))
        vector[self.features[axis]] = 1.0
        return vector

    def vector(self, direction: Vector) -> Vector:
        """The direction itself."""
        return direction

    def best_step(self, direction: Vector) -> Step:
        """The best step of an exact line search over all paths."""
        line = document_line(
            self.documents,
            self._unaries,
            (self.weights, direction),
            notices=self.notices,
            span=self.bounds.span(self.weights, direction),
        )
        return self.goal.best(line, self.value)

    def sums_after(self, direction: Vector, step: Step, weights: Vector) -> Sums:
        """Summed statistics (D, W) of the paths that the new weights decode."""
        return self.documents.decode(weights)

    def move(self) -> None:
        """Score the candidates under the new weights."""
        self._unaries = self.documents.unaries(self.weights)
