"""Tuning of one pool, by MERT or by another tuner that the plan names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.mert import (
    PoolResult,
    optimise,
    report_pool,
    unit_norm,
)
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.plan import Plan
from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.table import MERT, load


def tune_pool(
    pool: Pool,
    start: NDArray[np.float64],
    plan: Plan,
    notices: Notices,
    *,
    names: Sequence[str],
    goal: SearchGoal,
    bounds: Bounds,
    history: Sequence[NDArray[np.float64]] = (),
) -> PoolResult:
    """The best weights found from `start` (F,); MERT begins at those of `history` as well.

    Other tuners know no bounds, and of the plan's settings the seed alone; `goal` is what their
    weights are judged by.
    """
    if plan.algorithm == MERT:
        return optimise(
            pool,
            start,
            notices,
            names=names,
            settings=plan.settings,
            goal=goal,
            bounds=bounds,
            history=history,
        )
    axes = Axes.of(pool)
    report_pool(axes, names, notices)
    weights = load(plan.algorithm)(pool, start, rng=np.random.default_rng(plan.settings.seed))
    if not pool.fixed.any():
        weights = unit_norm(weights, start=start, varying=axes.features)
    best = Optimum.at(pool, weights, goal)
    return PoolResult(best, Optimum.at(pool, start, goal), (best,))
