"""What a plan refuses, and what its pools are made of."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from decoders.chains import Pairwise, Unary
from decoders.problem import DocumentProblem
from rerank.corpus.labels import Label
from rerank.errors import UsageError
from rerank.formats.weights import Weights
from rerank.notices import Notices
from rerank.pipeline.criteria import Aims
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning_plan import POOLS, Plan, Task
from rerank.pipeline.tuning_set import TuningSet
from rerank.pipeline.wanted import Wanted
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.algorithms import ALGORITHMS
from rerank.tuning.ascent import Optimum
from rerank.tuning.criterion import Criterion
from rerank.tuning.mert import Settings
from rerank.tuning.rounds import Step

SPACE = FeatureSpace((Label("LM0", 1), Label("x", 1), Label("one", 1)), (1,), 1, False)
PAIRS = Pairwise([np.array([[-1.0, -2.0]]), np.array([[-3.0, -4.0, -5.0], [-6.0, -1.0, -8.0]])])
ALONE = Unary([np.array([-1.0, -2.0]), np.array([-3.0, -4.0, -5.0])])
STATISTICS = np.arange(45).reshape(5, 9)
GOOD = np.array([[8, 7, 6, 5], [2, 1, 1, 0], [9, 8, 7, 6], [3, 2, 1, 0], [1, 0, 0, 0]])
GOOD = np.hstack([GOOD, np.tile([9, 8, 7, 6, 9], (5, 1))])  # the first of each list is the best


def task(
    plan: Plan,
    problem: DocumentProblem = PAIRS,
    tuned: tuple[str, ...] = ("LM0", "x"),
    **options: Any,
) -> Task:
    """One document: lists of 2 and 3 candidates; a feature of order 1, one that never varies."""
    static = np.array([[k, 0.0, 1.0] for k in (1.0, 2.0, 3.0, 4.0, 5.0)])
    sparse = options.pop("sparse", np.zeros(5))
    document = DocumentFeatures(
        "a", SPACE, static, sparse, (problem,), np.array([0, 2, 5]), np.array([0, 1])
    )
    corpus = TuningSet(((document,),), (STATISTICS,), np.zeros((1, 9), np.int64))
    opened = cast(Any, SimpleNamespace(searching=nullcontext))
    start = Weights({"LM0": (1.0,), "x": (0.5,), "one": (options.pop("held", 0.0),)}, {}, None, {})
    wanted = Wanted(tuned, start, "start.json", options.pop("ranges", {}))
    return Task.of(
        opened,
        corpus,
        SPACE,
        Search(),
        wanted,
        plan=plan,
        settings=plan.settings,
        notices=Notices(),
    )


def test_kinds_of_pools_that_are_none_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"--pools exakt: no such kind .* auto, .*conditional, doc"
    ):
        Plan("exakt").check()
    with pytest.raises(UsageError, match="--n-best 2: only pools of documents hold paths; add"):
        Plan("auto", 2).check()
    for kind in POOLS:
        Plan(kind).check()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(held_out=1.0), "--hold-out 1: expected a share, at least 0, below 1"),
        (Plan(held_out=-0.5), "--hold-out -0.5: expected a share"),
        (Plan(held_out=float("nan")), "--hold-out nan: expected a share"),
        (Plan(replicates=0), "--replicates 0: expected at least 1"),
        (Plan(settings=Settings(Criterion(length=0.9))), "settings have a criterion; say what"),
        (
            Plan("documents", aims=Aims(window=2)),
            "--window 2: pools of documents go by",
        ),
        (Plan(algorithm="mirra"), "'mirra'; did you mean mira"),
        (Plan("exact", algorithm="pro"), "--pools exact: .* for --algorithm mert alone"),
        (Plan("exact", settings=Settings(directions="gradient")), "gradient: --pools exact has"),
    ],
)
def test_plans_that_cannot_be_followed_are_told(plan: Plan, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        plan.check()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "idle",
    [
        {"aims": Aims(window=2)},
        {"aims": Aims(documents=True)},
        {"aims": Aims((("ter", 1.0),))},
        {"settings": Settings(threads=2)},
        {"settings": Settings(random_starts=3)},
        {"settings": Settings(directions="powell")},
        {"settings": Settings(norm="l2")},
    ],
)
def test_options_of_mert_are_idle_for_other_algorithms(
    algorithm: str, idle: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=f"--algorithm {algorithm} goes its own way"):
        Plan(algorithm=algorithm, **idle).check()
    Plan(**idle).check()
    Plan(algorithm=algorithm, settings=Settings(seed=9)).check()


def test_ranges_are_for_tuners_that_keep_to_them() -> None:
    for pools in ("auto", "conditional", "exact"):
        Plan(pools).check(ranges=True)
    with pytest.raises(UsageError, match="--range: pools of documents do not keep to it"):
        Plan("documents").check(ranges=True)
    with pytest.raises(UsageError, match="--algorithm mira goes its own way"):
        Plan(algorithm="mira").check(ranges=True)


def test_other_documents_have_a_goal_of_their_own_length() -> None:
    """Statistics of the first candidates: 4 words for 8, then 36 for 40."""
    made = task(Plan(settings=Settings(Criterion(length="keep"))))
    (document,) = made.corpus.documents
    more = np.arange(45).reshape(5, 9) + np.array([0] * 8 + [100])
    both = TuningSet(
        ((document, replace(document, name="b")),), (STATISTICS, more), np.zeros((2, 9), int)
    )
    whole = made.on(both, 1)
    for chosen in ([0], [1], [0, 1]):
        part = whole.on(both.of(chosen), 7)
        first = part.corpus.sums(part.corpus.first).sum(axis=0)
        assert f"length ratio − {first[4] / first[8]:.3f}|" in part.goal.name
        assert part.settings.seed == 7
    assert len({whole.on(both.of(chosen), 1).goal.name for chosen in ([0], [1], [0, 1])}) == 3


def test_what_is_maximised_is_bleu_less_the_price_of_length() -> None:
    made = task(Plan(aims=Aims(length=0.5, price=10.0)))
    made = replace(
        made, goal=made.plan.aims.criterion([]).goal(np.zeros(9), np.ones(2), np.ones(2))
    )
    sums = np.array([[20] * 4 + [20] * 4 + [25]])
    step = Step(np.ones(2), sums)
    assert made.value(step) == pytest.approx(step.bleu - 10 * abs(20 / 25 - 0.5))


def test_ranges_are_those_of_the_weights_that_may_move() -> None:
    bounds = task(Plan(), tuned=("x", "one"), ranges={"x": (0.0, 2.0)}).bounds
    assert bounds.low.tolist() == [0.0, -np.inf]
    assert bounds.high.tolist() == [2.0, np.inf]


@pytest.mark.parametrize("algorithm", ["mert", *ALGORITHMS])
def test_tuners_find_weights_of_norm_1_whose_choices_they_tell(algorithm: str) -> None:
    settings = Settings(random_starts=1, kicks=1) if algorithm == "mert" else Settings()
    made = task(Plan(algorithm=algorithm, settings=settings))
    pool = made.pool(((1, 2),))
    pool = replace(pool, statistics=np.vstack([GOOD, np.zeros((1, 9), np.int64)]))
    found = made.tuner(made.notices)(pool, made.start[made.tuned])
    assert np.abs(found.weights).sum() == pytest.approx(1)
    sums = pool.sums(pool.choices(pool.scores(found.weights)))
    assert found.statistics.tolist() == sums.sum(axis=0).tolist()
    assert found.value == made.goal.value(sums, found.weights)
    assert found.bleu > Optimum.at(pool, made.start[made.tuned]).bleu


def test_the_decoded_path_comes_first_and_as_many_as_are_asked_for_follow() -> None:
    for n_best in (1, 3):
        (paths,) = task(Plan("documents", n_best)).list_paths(np.array([0.0, 1.0]))
        assert paths.choices.tolist()[0] == [1, 1]
        scores = paths.features[:, 1].tolist()
        assert scores[:1] == [-3]
        assert scores[1:] == ([] if n_best == 1 else [-3, -4, -5])


def test_the_tuner_sees_the_names_of_the_features_it_tunes() -> None:
    made = task(Plan(), tuned=("LM0", "one"))
    assert made.names == ["LM0", "one"]
    assert made.full(np.array([7.0, 8.0])).tolist() == [7, 0.5, 8]
