"""Tuning tasks on made-up features of documents, decoded by Viterbi search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary
from decoders.problem import DocumentProblem
from rerank.corpus.labels import Label
from rerank.formats.weights import Weights
from rerank.metrics.bleu import Bleu
from rerank.notices import Notices
from rerank.pipeline.searching import Search, search_documents
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.plan import Plan
from rerank.tuning.pools.tuning_set import TuningSet
from rerank.tuning.task import Decode, Task

SPACE = FeatureSpace((Label("LM0", 1), Label("x", 1), Label("one", 1)), (1,), 1, False)
PAIRS = Pairwise([np.array([[-1.0, -2.0]]), np.array([[-3.0, -4.0, -5.0], [-6.0, -1.0, -8.0]])])
ALONE = Unary([np.array([-1.0, -2.0]), np.array([-3.0, -4.0, -5.0])])
STATISTICS = np.arange(45).reshape(5, 9)


def one_document(problem: DocumentProblem = PAIRS) -> TuningSet:
    """Lists of 2 and 3 candidates: LM0 of the lists, x of the problem, one that never varies."""
    static = np.array([[k, 0.0, 1.0] for k in (1.0, 2.0, 3.0, 4.0, 5.0)])
    document = DocumentFeatures(
        "a", SPACE, static, np.zeros(5), (problem,), np.array([0, 2, 5]), np.array([0, 1])
    )
    return TuningSet(((document,),), (STATISTICS,), np.zeros((1, 9), np.int64))


def viterbi(
    documents: Sequence[DocumentFeatures], weights: NDArray[np.float64]
) -> list[tuple[int, ...]]:
    """The best path of every document."""
    return [found.choices for found in search_documents(documents, weights, Search())]


def task_on(
    corpus: TuningSet,
    plan: Plan,
    *,
    tuned: tuple[str, ...] = ("LM0", "x"),
    start: tuple[float, float] = (1.0, 0.5),
    ranges: Mapping[str, tuple[float, float]] | None = None,
    decode: Decode = viterbi,
) -> Task:
    """The tuning of the features that are named; start: weights of LM0 and x."""
    weights = Weights({"LM0": start[:1], "x": start[1:], "one": (0.0,)}, {}, None, {})
    features = TunedFeatures(tuned, weights, "start.json", ranges or {})
    objective = plan.objective_options.objective([Bleu()])
    return Task(corpus, features, objective, plan, decode, Notices())
