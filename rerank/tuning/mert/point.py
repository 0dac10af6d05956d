"""A point in the space of weights that moves by line searches, on a pool or on documents."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.line import Step
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import Sums

D = TypeVar("D")
"""What a kind of points knows of the direction of a search."""


class Point(ABC, Generic[D]):
    """Weights (F,) on the move, their summed statistics (D, W) and the goal's value.

    searches: line searches made so far; the point is exhausted after `most_searches`
    """

    def __init__(
        self,
        weights: NDArray[np.float64],
        sums: Sums,
        goal: SearchGoal,
        bounds: Bounds | None = None,
        most_searches: float = math.inf,
    ) -> None:
        self.weights, self.sums, self.goal = weights, sums, goal
        self.bounds = bounds or Bounds.none(len(weights))
        self.most_searches, self.searches = most_searches, 0
        self.value = goal.value(sums, weights)

    @property
    @abstractmethod
    def n_axes(self) -> int:
        """How many features may move."""

    @abstractmethod
    def axis(self, axis: int) -> D:
        """The direction of a feature that may move."""

    @abstractmethod
    def vector(self, direction: D) -> NDArray[np.float64]:
        """A direction as a vector (F,)."""

    @abstractmethod
    def best_step(self, direction: D) -> Step:
        """The best step along a direction."""

    @abstractmethod
    def sums_after(self, direction: D, step: Step, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of the choices after a step, which leads to `weights` (F,)."""

    @abstractmethod
    def move(self) -> None:
        """Adopt what `sums_after` has computed last; `weights` are the new ones."""

    @property
    def exhausted(self) -> bool:
        """Whether all searches allowed have been made."""
        return self.searches >= self.most_searches

    def search(self, direction: D) -> Step:
        """The best step along a direction, counted."""
        self.searches += 1
        return self.best_step(direction)

    def take(self, direction: D, step: Step) -> bool:
        """Take a step if it does raise the value; whether it did."""
        weights = self.bounds.clipped(self.weights + step.size * self.vector(direction))
        if step.size == 0 or np.array_equal(weights, self.weights):
            return False
        sums = self.sums_after(direction, step, weights)
        value = self.goal.value(sums, weights)
        if value <= self.value:
            return False
        self.weights, self.sums, self.value = weights, sums, value
        self.move()
        return True

    def optimum(self) -> Optimum:
        """The point as a result."""
        return Optimum(self.weights, self.sums.sum(axis=0), self.value, self.searches)
