"""Cross-validation of tuning: what each way of tuning gives on text that it has not seen.

Each fold is held out once, and weights are tuned on the others. Their mean takes the place of a
tuning of the whole set: a longer search finds better local optima of the tuning documents, not of
new ones. Results do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.mert import silence
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.plan import Plan
from rerank.tuning.pools.pool import Pool
from rerank.tuning.saved import SavedSearches
from rerank.tuning.selection import NONE
from rerank.tuning.selection.folds import Folds
from rerank.tuning.selection.selection import EVEN, Candidate, Selection, choose
from rerank.tuning.selection.shrunk import Anchor, best_feature
from rerank.tuning.tuners.pool_tuner import tune_pool
from rerank.tuning.waiting import map_in_threads

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class PoolTuning:
    """What the tuning of a pool needs besides the pool: start (F,), plan, goal and bounds.

    start_name: what the start weights are, for people; confidence: that tuned weights are
    better than these, to leave them (`choose`);
    saved: results of searches that an earlier run finished.
    """

    start: NDArray[np.float64]
    plan: Plan
    goal: SearchGoal
    bounds: Bounds
    names: Sequence[str]
    start_name: str = "start weights"
    confidence: float = EVEN
    saved: SavedSearches = field(default_factory=SavedSearches)

    def anchor(self, pool: Pool) -> Anchor:
        """The start weights, or the best single feature of a pool where there are none."""
        spreads = Axes.of(pool).scale
        settled = bool(pool.fixed.any()) or not self.bounds.free_of_scale
        if settled or (self.start * spreads).any():
            return Anchor(self.start, spreads, settled, self.start_name)
        feature, name = best_feature(pool, self.goal, self.bounds, self.names)
        return Anchor(feature, spreads, settled, name)

    def tuned(self, pool: Pool) -> NDArray[np.float64]:
        """Weights (F,) tuned with little effort: no random starts, no kicks."""
        settings = replace(self.plan.settings, random_starts=0, kicks=0, threads=1)
        plan = replace(self.plan, settings=settings)
        return self.saved.optimum(
            (pool, self.start, plan.searched, self.goal, self.bounds),
            lambda: (
                tune_pool(
                    pool,
                    self.start,
                    plan,
                    Notices(),
                    names=self.names,
                    goal=self.goal,
                    bounds=self.bounds,
                ).best
            ),
        ).weights


def cross_validate(
    pool: Pool,
    tuning: PoolTuning,
    notices: Notices,
    announce: Callable[[str], None] = lambda line: None,
) -> Selection | None:
    """What `choose` takes by cross-validation, if the plan has it.

    None where the plan has none, where BLEU does not depend on the weights and, with a notice,
    where the lists are too few for folds. Candidates are the start weights, and weights at `SHARES`
    of the way to the tuned ones. O(n F) memory for each thread.
    """
    plan = tuning.plan
    if plan.select == NONE or silence(Axes.of(pool)):
        return None
    folds = Folds.of(pool, np.random.default_rng(plan.settings.seed))
    if folds is None:
        notices.add("too few lists for cross-validation: tuned weights are taken as they are")
        return None
    width = pool.statistics.shape[1]
    sums = np.zeros((1 + len(SHARES), folds.n_units, width), pool.decode(tuning.start).dtype)

    def hold_out(units: NDArray[np.int64]) -> NDArray[np.float64]:
        rest, held = folds.split(units)
        anchor, tuned = tuning.anchor(rest), tuning.tuned(rest)
        for c, share in enumerate((0.0, *SHARES)):
            sums[c, units] = held.decode(anchor.towards(tuned, share))
        return tuned

    with ThreadPoolExecutor(plan.settings.threads) as threads:
        tuned = map_in_threads(threads, hold_out, folds.parts)
    anchor = tuning.anchor(pool)
    selection = choose(
        [Candidate(share, own) for share, own in zip((0.0, *SHARES), sums, strict=True)],
        tuning.goal.objective,
        anchor=anchor,
        tuned=anchor.mean(tuned),
        unit=folds.unit,
        n_folds=len(folds.parts),
        confidence=tuning.confidence,
    )
    for line in selection.table():
        announce(line)
    return selection
