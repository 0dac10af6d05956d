"""What a weights file says of the tuning that made it, and the objective around its weights.

Weights whose neighbours are nearly as good generalise to other documents; weights on a narrow peak
do not. The objective has exact values along each feature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.files.paths import FilePath
from rerank.files.signature import run_entries
from rerank.tuning.goal import SearchGoal
from rerank.tuning.objective import Objective
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Pool
from rerank.tuning.tuners import MERT
from rerank.tuning.tuners.ascent import Axes, PoolPoint

NEAR = 0.1  # largest loss of a flat range, in points of the objective


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """An objective along one feature, all other weights fixed.

    name: of the feature; spread: of its values; weight: its given weight; left: (m,) weights where
    intervals begin, −inf first; values: (m,) objective on each interval
    """

    name: str
    spread: float
    weight: float
    left: NDArray[np.float64]
    values: NDArray[np.float64]

    def flat(self) -> tuple[float, float]:
        """The widest range around the weight where the objective loses at most `NEAR`.

        Ends may be infinite.
        """
        here = int(np.searchsorted(self.left, self.weight, side="right")) - 1
        low = np.flatnonzero(self.values < self.values[here] - NEAR)
        before, after = low[low < here], low[low > here]
        start = self.left[before[-1] + 1] if len(before) else -np.inf
        end = self.left[after[0]] if len(after) else np.inf
        return float(start), float(end)


def sections(
    pool: Pool, weights: NDArray[np.float64], objective: Objective, names: Sequence[str]
) -> list[Section]:
    """A section of each feature that varies, through weights (F,). O(n) for each."""
    axes = Axes.of(pool)
    point = PoolPoint(axes, weights, SearchGoal(objective))
    found = []
    for axis, feature in enumerate(axes.features.tolist()):
        line = point.line(axis)
        values = objective.along(line.changes[line.order], line.documents[line.order])
        places, left, _ = line.intervals()
        here, spread = float(weights[feature]), axes.directions[axis].spread
        found.append(Section(names[feature], spread, here, here + left, values[places]))
    return found


def plan_entries(plan: Plan, goal: SearchGoal, files: Sequence[FilePath]) -> dict[str, object]:
    """Entries of every weights file about its making: command, inputs, tuner, objective, seed."""
    settings = plan.settings
    starts = {"random_starts": settings.random_starts} if plan.algorithm == MERT else {}
    return {
        **run_entries(files),
        "algorithm": plan.algorithm,
        "select": plan.select,
        "objective": goal.name,
        "seed": settings.seed,
        **starts,
        "threads": settings.threads or 1,
    }


def feature_entries(
    names: Sequence[str], ranges: Mapping[str, tuple[float, float]]
) -> dict[str, object]:
    """Which columns were tuned, and the ranges that were asked for; None: unlimited."""
    ends = {
        name: [float(end) if math.isfinite(end) else None for end in both]
        for name, both in ranges.items()
    }
    return {"tuned": list(names), "ranges": ends}
