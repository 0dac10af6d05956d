"""Cross-validation against decoding every fold by hand, and what it chooses on planted pools."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pools import planted_pool

from rerank.notices import Notices
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.mert import MertSettings
from rerank.tuning.objectives.goal import BLEU_GOAL
from rerank.tuning.objectives.objective import bleu_of
from rerank.tuning.plan import Plan
from rerank.tuning.pools.pool import Pool
from rerank.tuning.selection.cross_validation import SHARES, PoolTuning, cross_validate
from rerank.tuning.selection.folds import Folds
from rerank.tuning.selection.selection import Selection

NAMES = ("a", "b", "c")


def pool_of(seed: int, truth: list[float], *, noise: float = 1.0, fixed: float = 0.0) -> Pool:
    made = planted_pool(seed, truth, lists=24, size=8, noise=noise, fixed=fixed)
    return replace(made, documents=np.repeat(np.arange(8), 3))


def tuning(start: list[float], *, threads: int = 1, select: str = "cv") -> PoolTuning:
    plan = Plan(settings=MertSettings(seed=2, threads=threads), select=select)
    return PoolTuning(np.array(start), plan, BLEU_GOAL, Bounds.none(3), NAMES)


def selected(pool: Pool, how: PoolTuning) -> Selection:
    found = cross_validate(pool, how, Notices())
    assert found is not None
    return found


def held_out(pool: Pool, how: PoolTuning, share: float) -> NDArray[np.int64]:
    """Summed statistics of all units, each decoded with weights tuned on the other folds."""
    folds = Folds.of(pool, np.random.default_rng(2))
    assert folds is not None
    found = np.zeros((folds.n_units, 9), dtype=np.int64)
    for units in folds.parts:
        rest, own = folds.split(units)
        weights = how.anchor(rest).towards(how.tuned(rest), share)
        for unit, lists in ((unit, own.places == place) for place, unit in enumerate(units)):
            found[unit] = own.take(lists).decode(weights).sum(axis=0)
    return found


@pytest.mark.parametrize("start", [[1.0, 0.5, -0.5], [0.0, 0.0, 0.0]])
def test_held_out_values_are_those_of_decoding_each_fold(start: list[float]) -> None:
    pool, how = pool_of(3, [1.0, -0.5, 0.2]), tuning(start)
    found = selected(pool, how)
    assert [one.candidate.share for one in found.compared] == [0, *SHARES]
    for one in found.compared:
        truth = held_out(pool, how, one.candidate.share)
        assert np.array_equal(one.candidate.statistics, truth)
        assert one.value == bleu_of(truth)


def test_the_number_of_threads_changes_nothing() -> None:
    pool = pool_of(5, [1.0, 0.3, -1.0])
    one, three = (selected(pool, tuning([1.0, 1, 1], threads=n)) for n in (1, 3))
    assert one.to_dict() == three.to_dict()
    assert np.array_equal(one.tuned, three.tuned)


def test_from_a_bad_start_the_tuned_weights_are_taken() -> None:
    truth, bad = [1.0, -2.0, 0.5], [-1.0, 1.0, 0.0]
    pool, new = pool_of(7, truth, noise=0.2), pool_of(8, truth, noise=0.2)
    found = selected(pool, tuning(bad))
    assert found.chosen.candidate.share > 0.3
    better = found.weights(found.tuned)
    assert bleu_of(new.decode(better)) > bleu_of(new.decode(np.array(bad))) + 10


def test_features_of_noise_leave_the_start_or_come_near_it() -> None:
    """Only `a` matters, and the start says so: on new lists nothing is lost by tuning."""
    truth, losses = [2.0, 0.0, 0.0], []
    for seed in range(6):
        pool, new = pool_of(seed, truth), pool_of(100 + seed, truth)
        found = selected(pool, tuning([1.0, 0.0, 0.0]))
        losses.append(
            bleu_of(new.decode(np.array([1.0, 0, 0])))
            - bleu_of(new.decode(found.weights(found.tuned)))
        )
    assert np.mean(losses) < 0.3


def test_without_a_start_the_best_single_feature_takes_its_place() -> None:
    found = selected(pool_of(9, [0.1, -2.0, 0.1]), tuning([0.0, 0.0, 0.0]))
    assert found.anchor.name == "the feature b alone, negated"
    assert found.anchor.weights.tolist() == [0, -1, 0]


def test_fixed_scores_settle_the_scale() -> None:
    found = selected(pool_of(10, [1.0, 1.0, 1.0], fixed=1.0), tuning([0.0, 0.0, 0.0]))
    assert found.anchor.settled
    assert found.anchor.weights.tolist() == [0, 0, 0]


def test_few_lists_are_a_notice_and_lists_without_a_match_are_none() -> None:
    notices, pool = Notices(), pool_of(1, [1.0, 1.0, 1.0])
    few = pool.take(np.arange(24) < 3)
    assert cross_validate(few, tuning([1.0, 1, 1]), notices) is None
    assert any("too few lists for cross-validation" in one.kind for one in notices)
    assert cross_validate(pool, tuning([1.0, 1, 1], select="none"), Notices()) is None
    silent = replace(pool, statistics=pool.statistics * (np.arange(9) > 3))
    assert cross_validate(silent, tuning([1.0, 1, 1]), Notices()) is None
