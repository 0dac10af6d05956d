"""A point in the space of weights that moves by line searches, on a pool or on documents."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.line import SearchLine, Step
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import Sums


class Point(ABC):
    """Weights (F,) on the move, their summed statistics (D, W) and the goal's value.

    features: (G,) those that may move; axis g is the direction of features[g]
    searches: line searches made so far; the point is exhausted after `most_searches`
    """

    def __init__(
        self,
        weights: NDArray[np.float64],
        sums: Sums,
        goal: SearchGoal,
        features: NDArray[np.int64],
        *,
        bounds: Bounds | None = None,
        most_searches: float = math.inf,
    ) -> None:
        self.weights, self.sums, self.goal, self.features = weights, sums, goal, features
        self.bounds = bounds or Bounds.none(len(weights))
        self.most_searches, self.searches = most_searches, 0
        self.value = goal.value(sums, weights)

    @abstractmethod
    def line(self, axis: int) -> SearchLine:
        """All breaks along an axis."""

    @abstractmethod
    def sums_after(self, axis: int, step: float, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of the choices after a step, which leads to `weights` (F,)."""

    @abstractmethod
    def move(self) -> None:
        """Adopt what `sums_after` has computed last; `weights` are the new ones."""

    @property
    def exhausted(self) -> bool:
        """Whether all searches allowed have been made."""
        return self.searches >= self.most_searches

    def vector(self, axis: int) -> NDArray[np.float64]:
        """The unit vector (F,) of an axis."""
        vector = np.zeros(len(self.weights))
        vector[self.features[axis]] = 1.0
        return vector

    def search(self, axis: int) -> Step:
        """The best step along an axis, into the middle of its interval."""
        self.searches += 1
        return self.goal.best(self.line(axis), self.value)

    def take(self, axis: int, step: Step) -> bool:
        """Take a step if it does raise the value; whether it did."""
        weights = self.bounds.clipped(self.weights + step.size * self.vector(axis))
        if step.size == 0 or np.array_equal(weights, self.weights):
            return False
        sums = self.sums_after(axis, step.size, weights)
        value = self.goal.value(sums, weights)
        if value <= self.value:
            return False
        self.weights, self.sums, self.value = weights, sums, value
        self.move()
        return True

    def optimum(self) -> Optimum:
        """The point as a result."""
        return Optimum(self.weights, self.sums.sum(axis=0), self.value, self.searches)
