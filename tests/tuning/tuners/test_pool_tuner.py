"""One interface to all tuners: the truth are the tuners themselves, called as they are."""

from typing import Any

import numpy as np
import pytest

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.mert import MertSettings, PoolResult, optimise
from rerank.tuning.objectives.goal import BLEU_GOAL
from rerank.tuning.plan import Plan
from rerank.tuning.pools.pool import Pool
from rerank.tuning.tuners.pool_tuner import tune_pool
from rerank.tuning.tuners.table import ALGORITHMS, MERT, load

NAMES = ["LM0", "TM0", "one"]
SETTINGS = MertSettings(random_starts=1, kicks=1, seed=5)
START = np.array([0.5, 0.25, 0.25])


def pool() -> Pool:
    """20 lists of 5 candidates; the fewer matches, the lower LM0; the last feature is constant."""
    rng = np.random.default_rng(2)
    grams = np.array([8, 7, 6, 5])
    matches = np.minimum(rng.integers(1, 9, (100, 1)), grams)
    columns = [matches[:, 0] + 4 * rng.standard_normal(100), rng.standard_normal(100), np.ones(100)]
    statistics = np.hstack([matches, np.tile([*grams, 8], (100, 1))])
    return Pool(np.arange(0, 101, 5), np.column_stack(columns), statistics, np.zeros(100))


def tuned(
    algorithm: str, on: Pool, notices: Notices, bounds: Bounds | None = None, **options: Any
) -> PoolResult:
    plan, bounds = (
        Plan(algorithm=algorithm, settings=SETTINGS, select="none"),
        bounds or Bounds.none(3),
    )
    return tune_pool(
        on, START, plan, notices, names=NAMES, goal=BLEU_GOAL, bounds=bounds, **options
    )


def test_mert_is_told_everything() -> None:
    bounds = Bounds(np.array([0.25, -1.0, -np.inf]), np.array([0.5, 1.0, np.inf]))
    history = (np.array([0.3, -0.7, 0.0]),)
    found = tuned(MERT, pool(), Notices(), bounds, history=history)
    truth = optimise(
        pool(),
        START,
        Notices(),
        names=NAMES,
        settings=SETTINGS,
        bounds=bounds,
        goal=BLEU_GOAL,
        history=history,
    )
    assert found.best.weights.tolist() == truth.best.weights.tolist()
    assert [o.value for o in found.optima] == [o.value for o in truth.optima]
    assert bounds.hold(found.best.weights)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_other_tuners_are_called_with_the_seed_and_normed(algorithm: str) -> None:
    notices = Notices()
    found = tuned(algorithm, pool(), notices)
    truth = load(algorithm)(pool(), START, rng=np.random.default_rng(SETTINGS.seed))
    varying = found.best.weights[:2]
    assert np.allclose(varying / np.abs(varying).sum(), truth[:2] / np.abs(truth[:2]).sum())
    assert np.isclose(np.abs(found.best.weights).sum(), 1)
    assert np.isclose(found.best.weights[2], 0.25)
    assert found.optima == (found.best,)
    assert found.best.bleu >= found.start.bleu
    assert notices.lines() == ["1 x constant feature, whose weight stays as given: one"]


def test_weights_are_not_normed_where_a_fixed_part_settles_their_scale() -> None:
    whole = pool()
    fixed = np.random.default_rng(3).standard_normal(100)
    some = Pool(whole.offsets, whole.features, whole.statistics, fixed)
    found = tuned("pro", some, Notices())
    truth = load("pro")(some, START, rng=np.random.default_rng(SETTINGS.seed))
    assert found.best.weights.tolist() == truth.tolist()
