"""What a plan refuses, and what its pools are made of."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from decoders.chains import Pairwise, Unary
from decoders.problem import DocumentProblem
from rerank.errors import UsageError
from rerank.features import Document, Space
from rerank.kbest import Label
from rerank.notices import Notices
from rerank.pipeline.searching import Search
from rerank.pipeline.tuning_plan import POOLS, Plan, Task
from rerank.pipeline.tuning_set import TuningSet
from rerank.pipeline.wanted import Wanted
from rerank.weights import Weights

SPACE = Space((Label("LM0", 1), Label("x", 1), Label("one", 1)), (1,), 1, False)
PAIRS = Pairwise([np.array([[-1.0, -2.0]]), np.array([[-3.0, -4.0, -5.0], [-6.0, -1.0, -8.0]])])
ALONE = Unary([np.array([-1.0, -2.0]), np.array([-3.0, -4.0, -5.0])])
STATISTICS = np.arange(45).reshape(5, 9)


def task(
    plan: Plan,
    problem: DocumentProblem = PAIRS,
    tuned: tuple[str, ...] = ("LM0", "x"),
    **options: Any,
) -> Task:
    """One document: lists of 2 and 3 candidates; a feature of order 1, one that never varies."""
    static = np.array([[k, 0.0, 1.0] for k in (1.0, 2.0, 3.0, 4.0, 5.0)])
    sparse = options.pop("sparse", np.zeros(5))
    document = Document(
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
    with pytest.raises(UsageError, match=r"--pools exakt: no such kind .* auto, conditional, doc"):
        Plan("exakt").check()
    with pytest.raises(UsageError, match="--n-best 2: only pools of documents hold paths; add"):
        Plan("auto", 2).check()
    for kind in POOLS:
        Plan(kind).check()


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
