"""A tuner chosen by name, with its settings, for pools of the same features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.mert import MertSettings, PoolResult, optimise, report_features, unit_norm
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.table import MERT, named


@dataclass(frozen=True, slots=True, eq=False)
class PoolTuner:
    """What tunes the weights (F,) of pools with the features `names`.

    algorithm: `mert`, or a name of `rerank.tuning.tuners.table`: those know no bounds, and of the
    settings the seed alone; the goal is what their weights are judged by
    """

    algorithm: str
    settings: MertSettings
    names: Sequence[str]
    bounds: Bounds
    goal: SearchGoal

    def tune(
        self,
        pool: Pool,
        start: NDArray[np.float64],
        notices: Notices,
        history: Sequence[NDArray[np.float64]] = (),
    ) -> PoolResult:
        """The best weights found from `start` (F,); MERT begins at those of `history` as well."""
        if self.algorithm == MERT:
            return optimise(
                pool,
                start,
                notices,
                names=self.names,
                settings=self.settings,
                bounds=self.bounds,
                goal=self.goal,
                history=history,
            )
        axes = Axes.of(pool)
        report_features(axes, self.names, notices)
        rng = np.random.default_rng(self.settings.seed)
        weights = named(self.algorithm).load()(pool, start, rng=rng)
        if not pool.fixed.any():
            weights = unit_norm(weights, start=start, varying=axes.features)
        best = Optimum.at(pool, weights, self.goal)
        return PoolResult(best, Optimum.at(pool, start, self.goal), (best,))
