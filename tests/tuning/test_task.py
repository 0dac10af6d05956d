"""The goal, bounds and tuner of a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.tasks import STATISTICS, one_document, task_on

from rerank.scorers.features import DocumentFeatures
from rerank.tuning.mert.mert import MertSettings
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import bleu_of
from rerank.tuning.objectives.options import ObjectiveOptions
from rerank.tuning.plan import Plan
from rerank.tuning.pools.tuning_set import TuningSet
from rerank.tuning.task import Task
from rerank.tuning.tuners.table import ALGORITHMS

GOOD = np.array([[8, 7, 6, 5], [2, 1, 1, 0], [9, 8, 7, 6], [3, 2, 1, 0], [1, 0, 0, 0]])
GOOD = np.hstack([GOOD, np.tile([9, 8, 7, 6, 9], (5, 1))])  # the first of each list is the best


def no_decoder(documents: Sequence[DocumentFeatures], weights: NDArray[np.float64]) -> list[Any]:
    raise AssertionError("nothing is decoded")


def task(plan: Plan, **options: Any) -> Task:
    """A task that needs no decoding."""
    return task_on(one_document(), plan, decode=no_decoder, **options)


def test_other_documents_have_a_goal_of_their_own_length() -> None:
    """Statistics of the first candidates: 4 words for 8, then 36 for 40."""
    made = task(Plan(objective=ObjectiveOptions(length="keep")))
    (document,) = made.corpus.documents
    more = np.arange(45).reshape(5, 9) + np.array([0] * 8 + [100])
    both = TuningSet(
        ((document, replace(document, name="b")),), (STATISTICS, more), np.zeros((2, 9), int)
    )
    whole = replace(made, corpus=both)
    for chosen in ([0], [1], [0, 1]):
        part = whole.on(chosen, 7)
        first = part.corpus.sums(part.corpus.first).sum(axis=0)
        assert f"length ratio − {first[4] / first[8]:.3f}|" in part.goal.name
        assert part.plan.settings.seed == 7
    assert len({whole.on(chosen, 1).goal.name for chosen in ([0], [1], [0, 1])}) == 3


def test_what_is_maximised_is_bleu_less_the_price_of_length() -> None:
    made = task(Plan(objective=ObjectiveOptions(length=0.5, price=10.0, shrinkage=0.0)))
    sums = np.array([[20] * 4 + [20] * 4 + [25]])
    expected = bleu_of(sums) - 10 * abs(20 / 25 - 0.5)
    assert made.goal.value(sums, np.ones(2)) == pytest.approx(expected)


def test_ranges_are_those_of_the_weights_that_may_move() -> None:
    bounds = task(Plan(), tuned=("x", "one"), ranges={"x": (0.0, 2.0)}).bounds
    assert bounds.low.tolist() == [0.0, -np.inf]
    assert bounds.high.tolist() == [2.0, np.inf]


@pytest.mark.parametrize("algorithm", ["mert", *ALGORITHMS])
def test_tuners_find_weights_of_norm_1_whose_choices_they_tell(algorithm: str) -> None:
    settings = MertSettings(random_starts=1, kicks=1) if algorithm == "mert" else MertSettings()
    made = task(Plan(algorithm=algorithm, settings=settings))
    pool = made.pool(((1, 2),))
    pool = replace(pool, statistics=np.vstack([GOOD, np.zeros((1, 9), np.int64)]))
    found = made.pool_tuner(made.notices)(pool, made.start[made.tuned])
    assert np.abs(found.weights).sum() == pytest.approx(1)
    sums = pool.sums(pool.choices(pool.scores(found.weights)))
    assert found.statistics.tolist() == sums.sum(axis=0).tolist()
    assert found.value == made.goal.value(sums, found.weights)
    assert found.bleu > Optimum.at(pool, made.start[made.tuned]).bleu


def test_the_tuner_sees_the_names_of_the_features_it_tunes() -> None:
    made = task(Plan(), tuned=("LM0", "one"))
    assert made.names == ["LM0", "one"]
    assert made.full(np.array([7.0, 8.0])).tolist() == [7, 0.5, 8]
