"""What a plan refuses."""

from typing import Any

import pytest

from rerank.errors import UsageError
from rerank.tuning.mert.mert import MertSettings
from rerank.tuning.objectives.options import ObjectiveOptions
from rerank.tuning.plan import POOLS, Plan
from rerank.tuning.tuners.table import ALGORITHMS


def test_unknown_kinds_of_pools_are_refused_with_those_that_exist() -> None:
    with pytest.raises(UsageError, match=r"--pools documents: no such kind .* auto, .*, exact"):
        Plan("documents").check()
    for kind in POOLS:
        Plan(kind).check()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(held_out=1.0), "--hold-out 1: expected a share, at least 0, below 1"),
        (Plan(held_out=-0.5), "--hold-out -0.5: expected a share"),
        (Plan(held_out=float("nan")), "--hold-out nan: expected a share"),
        (Plan(replicates=0), "--replicates 0: expected at least 1"),
        (Plan(algorithm="prow"), "'prow'; did you mean pro"),
        (Plan("exact", algorithm="pro"), "--pools exact: its line searches need --algorithm mert"),
    ],
)
def test_plans_that_cannot_be_followed_are_refused(plan: Plan, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan.check()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "idle",
    [
        {"objective": ObjectiveOptions(documents=True)},
        {"objective": ObjectiveOptions((("ter", 1.0),))},
        {"settings": MertSettings(random_starts=3)},
    ],
)
def test_objectives_and_starts_are_refused_for_other_tuners_than_mert(
    algorithm: str, idle: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=f"--algorithm {algorithm} maximises corpus BLEU in its"):
        Plan(algorithm=algorithm, **idle).check()
    Plan(**idle).check()


@pytest.mark.parametrize("algorithm", ["mert", *ALGORITHMS])
def test_seed_and_threads_are_accepted_for_every_tuner(algorithm: str) -> None:
    Plan(algorithm=algorithm, settings=MertSettings(seed=9, threads=4)).check()


def test_ranges_are_for_mert() -> None:
    for pools in POOLS:
        Plan(pools).check(ranges=True)
    with pytest.raises(UsageError, match="--algorithm pro maximises corpus BLEU in its own way"):
        Plan(algorithm="pro").check(ranges=True)
