"""The result of a search for weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objectives.goal import BLEU_GOAL, SearchGoal
from rerank.tuning.objectives.objective import Sums, bleu_of, length_of
from rerank.tuning.pools.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Weights (F,), summed statistics (W,) of their choices, the goal's value, searches made."""

    weights: NDArray[np.float64]
    statistics: Sums
    value: float
    searches: int = 0

    @classmethod
    def at(cls, pool: Pool, weights: NDArray[np.float64], goal: SearchGoal = BLEU_GOAL) -> Optimum:
        """The choices of given weights from a pool. O(n F)."""
        sums = pool.decode(weights)
        return cls(weights, sums.sum(axis=0), goal.value(sums, weights))

    @property
    def bleu(self) -> float:
        """Corpus BLEU, 0..100, whatever the goal."""
        return bleu_of(self.statistics)

    @property
    def ratio(self) -> float:
        """Length of the choices ÷ length of the references."""
        return length_of(self.statistics)
