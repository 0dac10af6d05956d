"""Weights between those that tuning starts from and those that it ends with.

Tuned weights fit the tuning documents too well: on new documents, weights on the way from the start
weights to the tuned ones are often better than either end. PRO goes a fixed share of the way in
each round (Hopkins and May 2011, https://aclanthology.org/D11-1125, section 5); here
cross-validation chooses the share. The mean of several tunings is steadier than each of them
(Clark, Dyer, Lavie and Smith 2011, https://aclanthology.org/P11-2031).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.pools.pool import Pool


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Weights (F,) that tuned weights are shrunk towards.

    spreads: (F,) spread of each feature, 0 for constant ones; settled: whether the scale of weights
    matters, because of fixed scores or ranges; name: what the weights are, for people
    """

    weights: NDArray[np.float64]
    spreads: NDArray[np.float64]
    settled: bool
    name: str = "start weights"

    def towards(self, tuned: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """Weights (F,) at a share 0..1 of the way from here to `tuned` (F,), which is at 1.

        Where scale is free, both ends first get length 1 in units of the features' spreads, and
        weights on the way get L1 norm 1.
        """
        if share in (0, 1):
            return tuned if share else self.weights
        if self.settled:
            return (1 - share) * self.weights + share * tuned
        mixed = (1 - share) * self._unit(self.weights) + share * self._unit(tuned)
        return np.asarray(mixed / (np.linalg.norm(mixed, 1) or 1.0))

    def mean(self, several: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The mean of weights (F,); of their directions, with L1 norm 1, where scale is free."""
        if self.settled:
            return np.asarray(np.mean(several, axis=0))
        mean = np.mean([self._unit(one) for one in several], axis=0)
        return np.asarray(mean / (np.linalg.norm(mean, 1) or 1.0))

    def _unit(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        length = float(np.linalg.norm(weights * self.spreads))
        return weights / length if length > 0 else weights


def best_feature(
    pool: Pool, goal: SearchGoal, bounds: Bounds, names: Sequence[str]
) -> tuple[NDArray[np.float64], str]:
    """Weights (F,) of the single feature, with either sign, that has the best value, and its name.

    Of equal ones the first, without a sign if possible. With indicator features of systems this is
    the best system. O(n F²).
    """
    best, found, value = np.zeros(len(names)), "no feature", -np.inf
    for sign, how in ((1.0, ""), (-1.0, ", negated")):
        for f, name in enumerate(names):
            weights = np.zeros(len(names))
            weights[f] = sign
            weights = bounds.clipped(weights)
            reached = goal.objective.value(pool.decode(weights)) if weights[f] else -np.inf
            if reached > value:
                best, found, value = weights, f"the feature {name} alone{how}", reached
    return best, found
