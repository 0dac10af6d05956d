"""Ranges of weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Least and greatest weight of each feature, (F,) each; infinite where there is none."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def none(cls, n_features: int) -> Bounds:
        """Infinite ranges."""
        return cls(np.full(n_features, -math.inf), np.full(n_features, math.inf))

    @property
    def free_of_scale(self) -> bool:
        """Whether weights may be multiplied by any positive number: ends are 0 or infinite."""
        ends = np.concatenate([self.low, self.high])
        return bool((np.isinf(ends) | (ends == 0)).all())

    def clipped(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The nearest weights (F,) within the ranges."""
        return np.clip(weights, self.low, self.high)

    def span(
        self, weights: NDArray[np.float64], vector: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Least and greatest step from weights (F,) within bounds along a vector (F,)."""
        least, greatest = -math.inf, math.inf
        for feature in vector.nonzero()[0].tolist():
            ends = self.low[feature] - weights[feature], self.high[feature] - weights[feature]
            low, high = sorted(float(end / vector[feature]) for end in ends)
            least, greatest = max(least, low), min(greatest, high)
        return min(least, 0.0), max(greatest, 0.0)
