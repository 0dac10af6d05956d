"""A tuner by its name, told what it works for: minimum error rate training, or another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.algorithms import named
from rerank.tuning.ascent import Axes, Optimum
from rerank.tuning.bounds import Bounds
from rerank.tuning.goals import SearchGoal
from rerank.tuning.mert import Settings, Tuned, optimise, report_features, unit_norm
from rerank.tuning.pool import Pool

MERT = "mert"


@dataclass(frozen=True, slots=True, eq=False)
class PoolTuner:
    """What tunes the weights (F,) of pools with the features `names`.

    algorithm: `mert`, or a name of `rerank.tuning.algorithms`: those know no bounds, and of the
    settings the seed alone; the goal is what their weights are judged by
    """

    algorithm: str
    settings: Settings
    names: Sequence[str]
    bounds: Bounds
    goal: SearchGoal

    def tune(
        self,
        pool: Pool,
        start: NDArray[np.float64],
        notices: Notices,
        history: Sequence[NDArray[np.float64]] = (),
    ) -> Tuned:
        """The best weights from `start` (F,), for `mert` from those of `history` as well."""
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
        return Tuned(best, Optimum.at(pool, start, self.goal), (best,))
