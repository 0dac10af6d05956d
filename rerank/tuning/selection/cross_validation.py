"""Cross-validation of tuning: what each way of tuning gives on text that it has not seen.

Every fold is tuned on the others with less effort than the whole set: no random starts and no kicks
of MERT, whose local optima matter less than the share of the way to them. All shares of one fold
cost one tuning and a decoding each. Results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.mert import silence
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.plan import Plan
from rerank.tuning.pools.pool import Pool
from rerank.tuning.selection import NONE
from rerank.tuning.selection.folds import Folds
from rerank.tuning.selection.selection import Candidate, Selection, one_standard_error
from rerank.tuning.selection.shrunk import Anchor, best_feature
from rerank.tuning.tuners.pool_tuner import tune_pool

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class PoolTuning:
    """What the tuning of a pool needs besides the pool: start (F,), plan, goal and bounds."""

    start: NDArray[np.float64]
    plan: Plan
    goal: SearchGoal
    bounds: Bounds
    names: Sequence[str]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Algorithms of the plan; only the first one keeps to ranges of weights."""
        ranges = np.isfinite([self.bounds.low, self.bounds.high]).any()
        return self.plan.algorithms[:1] if ranges else self.plan.algorithms

    def anchor(self, pool: Pool) -> Anchor:
        """The start weights, or the best single feature of a pool where there are none."""
        spreads = Axes.of(pool).scale
        settled = bool(pool.fixed.any()) or not self.bounds.free_of_scale
        if settled or (self.start * spreads).any():
            return Anchor(self.start, spreads, settled)
        feature, name = best_feature(pool, self.goal, self.bounds, self.names)
        return Anchor(feature, spreads, settled, name)

    def tuned(self, pool: Pool, algorithm: str) -> NDArray[np.float64]:
        """Weights (F,) tuned with little effort by an algorithm of the plan."""
        plan = self.plan.with_algorithm(algorithm)
        settings = replace(plan.settings, random_starts=0, kicks=0, threads=1)
        return tune_pool(
            pool,
            self.start,
            replace(plan, settings=settings),
            Notices(),
            names=self.names,
            goal=self.goal,
            bounds=self.bounds,
        ).best.weights


def cross_validate(
    pool: Pool,
    tuning: PoolTuning,
    notices: Notices,
    announce: Callable[[str], None] = lambda line: None,
) -> Selection | None:
    """The candidate that the one-standard-error rule chooses, by the plan's cross-validation.

    None where the plan has none, where BLEU does not depend on the weights and, with a notice,
    where the lists are too few for folds. Candidates are the start weights and, for each algorithm,
    weights at `SHARES` of the way from the start to the tuned ones. O(n F) memory for each thread.
    """
    plan, algorithms = tuning.plan, tuning.algorithms
    if plan.select == NONE or silence(Axes.of(pool)):
        return None
    folds = Folds.of(pool, np.random.default_rng(plan.settings.seed))
    if folds is None:
        notices.add("too few lists for cross-validation: tuned weights are taken as they are")
        return None
    candidates = [(algorithms[0], 0.0), *((a, s) for a in algorithms for s in SHARES)]
    width = pool.statistics.shape[1]
    sums = np.zeros((len(candidates), folds.n_units, width), dtype=pool.decode(tuning.start).dtype)

    def hold_out(fold: tuple[NDArray[np.int64], Pool, Pool]) -> None:
        units, rest, held = fold
        sums[:, units] = _held_out(rest, held, tuning)

    with ThreadPoolExecutor(plan.settings.threads) as threads:
        list(threads.map(hold_out, folds.split()))
    selection = one_standard_error(
        [Candidate(*one, statistics) for one, statistics in zip(candidates, sums, strict=True)],
        tuning.goal.objective,
        anchor=tuning.anchor(pool),
        unit=folds.unit,
        n_folds=len(folds.parts),
    )
    for line in selection.table():
        announce(line)
    return selection


def _held_out(rest: Pool, held: Pool, tuning: PoolTuning) -> Sums:
    """Summed statistics (C, U, W) of the held-out units for each candidate, tuned on the rest."""
    anchor = tuning.anchor(rest)
    found = [held.decode(anchor.weights)]
    for algorithm in tuning.algorithms:
        tuned = tuning.tuned(rest, algorithm)
        found += [held.decode(anchor.towards(tuned, share)) for share in SHARES]
    return np.array(found)
