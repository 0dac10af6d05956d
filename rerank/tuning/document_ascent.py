"""Ascent on the decoded documents themselves: exact line searches until none gains.

Where scores look one sentence back at most, a line search sees all paths, so there are no pools and
no rounds: what it predicts is what Viterbi search then decodes, and the goal never falls. The
strategies are those of pools (`rerank.tuning.strategies`): a point on documents moves like one on
a pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.ascent import Optimum
from rerank.tuning.bounds import Bounds
from rerank.tuning.document_line_search import ChainSet, document_line_search
from rerank.tuning.goals import GAIN, SearchGoal
from rerank.tuning.line import Step

Vector: TypeAlias = NDArray[np.float64]
DocumentStrategy: TypeAlias = Callable[[Any, np.random.Generator], None]
"""Moves a `DocumentPoint`; every `rerank.tuning.ascent.Strategy` does."""


def document_ascent(
    documents: ChainSet,
    start: Vector,
    goal: SearchGoal,
    strategy: DocumentStrategy,
    rng: np.random.Generator,
    *,
    features: NDArray[np.int64],
    notices: Notices,
    bounds: Bounds | None = None,
    most_searches: float = math.inf,
) -> Optimum:
    """The local optimum that a strategy reaches from weights `start` (F,) within bounds.

    features: those that may move; such as vary in no sentence stay, as do all the others. No step
    is taken that does not gain when the documents are decoded (of a smoothed goal, that does not
    keep its promise). O(n) and `document_envelope` of each document for each search, and for each
    step taken Viterbi search.
    """
    moving = features[documents.spreads[features] > 0]
    axes = DocumentAxes(documents, moving)
    point = DocumentPoint(axes, start, goal, notices=notices, bounds=bounds, most=most_searches)
    if len(moving):
        strategy(point, rng)
    return point.optimum()


@dataclass(frozen=True, slots=True, eq=False)
class DocumentAxes:
    """Documents, and the features (G,) of theirs that may move, all of which vary somewhere."""

    documents: ChainSet
    features: NDArray[np.int64]

    @property
    def directions(self) -> tuple[Vector, ...]:
        """Unit vector (F,) of each of the features."""
        return tuple(map(self.vector, range(len(self.features))))

    @property
    def spreads(self) -> Vector:
        """Spread of each of the features, (G,)."""
        return self.documents.spreads[self.features]

    def vector(self, axis: int) -> Vector:
        """Unit vector (F,) of one of them."""
        vector = np.zeros(len(self.documents.spreads))
        vector[self.features[axis]] = 1.0
        return vector


class DocumentPoint:
    """Weights on the move, with the scores of documents under them: `Point` on documents.

    A way is a vector (F,). searches: line searches made; none is made beyond `most`.
    """

    def __init__(
        self,
        axes: DocumentAxes,
        weights: Vector,
        goal: SearchGoal,
        *,
        notices: Notices,
        bounds: Bounds | None = None,
        most: float = math.inf,
    ) -> None:
        self.axes, self.goal, self.notices = axes, goal, notices
        self.bounds = bounds or Bounds.none(len(weights))
        self.weights, self.most, self.searches = weights.astype(np.float64), most, 0
        self.sums = axes.documents.decoded(self.weights)
        self.value = goal.value(self.sums, self.weights)
        self._unaries = axes.documents.unaries(self.weights)
        self._reached = -math.inf

    @property
    def exhausted(self) -> bool:
        """Whether all searches allowed have been made."""
        return self.searches >= self.most

    def axis(self, axis: int) -> Vector:
        """The way along a feature that may move."""
        return self.axes.vector(axis)

    def along(self, vector: Vector) -> Vector:
        """The way along a vector (F,); what may not move is left out."""
        way = np.zeros_like(vector)
        way[self.axes.features] = vector[self.axes.features]
        return way

    def search(self, way: Vector) -> Step:
        """The best step along a way from here."""
        self.searches += 1
        return document_line_search(
            self.axes.documents,
            self._unaries,
            (self.weights, way),
            self.goal,
            self.value,
            notices=self.notices,
            span=self.bounds.span(self.weights, way),
        )

    def take(self, way: Vector, step: Step) -> bool:
        """Whether a step does gain, or smoothed is what it promised; it is taken only then.

        Smoothed values have to rise from step to step, as in `rerank.tuning.ascent.Point`.
        """
        weights = self.bounds.clipped(self.weights + step.size * way)
        if step.size == 0 or np.array_equal(weights, self.weights):
            return False
        if self.goal.smoothed and step.value <= self._reached + GAIN:
            return False
        sums = self.axes.documents.decoded(weights)
        value = self.goal.value(sums, weights)
        if value <= min(self.value, step.promised - GAIN):
            return False
        self.weights, self.sums, self.value = weights, sums, value
        self._reached = step.value
        self._unaries = self.axes.documents.unaries(weights)
        return True

    def try_along(self, way: Vector) -> bool:
        """Whether a search along a way did gain."""
        return self.take(way, self.search(way))

    def optimum(self) -> Optimum:
        """Where it stands."""
        return Optimum(self.weights, self.sums.sum(axis=0), self.value, self.searches)
