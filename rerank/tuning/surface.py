"""The objective around given weights: its exact values along each feature, and how flat it is.

Weights whose neighbours are nearly as good generalise to other documents; weights on a narrow peak
do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.goal import SearchGoal
from rerank.tuning.objective import Objective
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.ascent import Axes, PoolPoint

NEAR = 0.1  # largest loss of a flat range, in points of the objective


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """An objective along one feature, all other weights fixed.

    feature: its column; weight: its given weight; left: (m,) weights where intervals begin, −inf
    first; values: (m,) objective on each interval
    """

    feature: int
    weight: float
    left: NDArray[np.float64]
    values: NDArray[np.float64]

    def flat(self, near: float = NEAR) -> tuple[float, float]:
        """The widest range around the weight where the objective loses at most `near`.

        Ends may be infinite.
        """
        here = int(np.searchsorted(self.left, self.weight, side="right")) - 1
        low = np.flatnonzero(self.values < self.values[here] - near)
        before, after = low[low < here], low[low > here]
        start = self.left[before[-1] + 1] if len(before) else -np.inf
        end = self.left[after[0]] if len(after) else np.inf
        return float(start), float(end)


def sections(pool: Pool, weights: NDArray[np.float64], objective: Objective) -> list[Section]:
    """A section of each feature that varies, through weights (F,). O(n) for each."""
    axes = Axes.of(pool)
    point = PoolPoint(axes, weights, SearchGoal(objective))
    found = []
    for axis, feature in enumerate(axes.features.tolist()):
        line = point.line(axis)
        values = objective.along(line.changes[line.order], line.documents[line.order])
        places, left, _ = line.intervals()
        here = float(weights[feature])
        found.append(Section(feature, here, here + left, values[places]))
    return found
