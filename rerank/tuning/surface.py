"""The surface of an objective around weights: its values along each feature, and how flat it is.

Weights whose neighbours are as good carry over to other documents; weights on a needle's point do
not. Along a feature the objective is known exactly, on every interval between breaks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.ascent import Axes, Point
from rerank.tuning.goals import goal_of
from rerank.tuning.objectives import Objective
from rerank.tuning.pool import Pool

NEAR = 0.1  # what still counts as flat, in units of the objective


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """An objective along one feature, all other weights fixed.

    feature: its column; weight: where it stands; left: (m,) weights where intervals begin, −inf
    first; values: (m,) of the objective on each
    """

    feature: int
    weight: float
    left: NDArray[np.float64]
    values: NDArray[np.float64]

    def flat(self, near: float = NEAR) -> tuple[float, float]:
        """The widest range of weights around its own in which no value is `near` below that here.

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
    point = Point(axes, weights, goal_of(objective))
    found = []
    for axis, feature in enumerate(axes.features.tolist()):
        line = point.line(point.axis(axis))
        values = objective.along(line.changes[line.order], line.documents[line.order])
        places, left, _ = line.intervals()
        here = float(weights[feature])
        found.append(Section(feature, here, here + left, values[places]))
    return found
