"""What a task is tuned on, by its plan; exact searches against decoding and a circle of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray
from support.tasks import ALONE, SPACE, one_document, task_on

from decoders.arrays import Pairwise
from decoders.problem import DocumentProblem
from rerank.corpus.columns import offsets_of
from rerank.errors import UsageError
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.mert.mert import MertSettings
from rerank.tuning.objectives.options import CORPUS_BLEU_ALONE
from rerank.tuning.plan import POOLS, Plan
from rerank.tuning.pools.kinds import KINDS, best_round
from rerank.tuning.pools.tuning_set import TuningSet
from rerank.tuning.rounds import Round
from rerank.tuning.task import Task

QUICK = MertSettings(random_starts=2, kicks=2)


@dataclass
class Endless:
    """A problem whose scores look back to the beginning, of which nothing but that is asked."""

    order: int | None = None


def documents(seed: int, n_documents: int = 5, n_sentences: int = 5, k: int = 4) -> TuningSet:
    """Documents whose better candidates have better features, in groups of two; gaps in all.

    One more row of gaps is that of documents without any candidate.
    """
    rng = np.random.default_rng(seed)
    groups: list[list[DocumentFeatures]] = []
    counts = []
    for d in range(n_documents):
        quality = rng.uniform(0.3, 0.9, (n_sentences, k))
        static = np.zeros((n_sentences * k, 3))
        static[:, 0] = 3 * quality.ravel() + rng.standard_normal(n_sentences * k)
        before = [1, *[k] * (n_sentences - 1)]
        pairs = [3 * q + rng.standard_normal((b, k)) for q, b in zip(quality, before, strict=True)]
        length = rng.integers(6, 12, n_sentences * k)[:, None]
        totals = length - np.arange(4)
        matches = (totals * quality.reshape(-1, 1) ** np.arange(1, 5)).astype(np.int64)
        counts.append(np.hstack([matches, totals, np.full_like(length, 9)]))
        if d % 2 == 0:
            groups.append([])
        offsets, present = offsets_of(np.full(n_sentences, k)), np.arange(n_sentences)
        sparse = np.zeros(n_sentences * k)
        groups[-1].append(
            DocumentFeatures(f"d{d}", SPACE, static, sparse, (Pairwise(pairs),), offsets, present)
        )
    gaps = np.zeros((n_documents + 1, 9), np.int64)
    gaps[:, 8] = 4
    return TuningSet(tuple(map(tuple, groups)), tuple(counts), gaps)


def rounds_of(task: Task) -> list[Round]:
    seen: list[Round] = []
    best_round(task, seen.append)
    return seen


def test_every_kind_of_pools_has_a_function() -> None:
    assert tuple(KINDS) == POOLS


# Lists


@pytest.mark.parametrize("kind", ["auto", "conditional"])
def test_lists_of_candidates_are_one_pool_where_no_context_counts(kind: str) -> None:
    plan = Plan(kind, settings=QUICK)
    assert best_round(task_on(one_document(ALONE), plan)).reason == "the pool is complete"
    assert best_round(task_on(one_document(), plan)).reason in (
        "no weight moves",
        "2 rounds without gain",
    )


@pytest.mark.parametrize("kind", POOLS)
def test_what_is_told_of_each_round_is_what_decoding_gives(kind: str) -> None:
    """Gaps and documents without any candidate are in it."""
    made = task_on(documents(1), Plan(kind, settings=QUICK))
    for r in rounds_of(made):
        path, sums = made.decode(r.result.weights)
        np.testing.assert_array_equal(r.result.statistics, sums)
        assert sums[-1].tolist() == [0] * 8 + [4]
        np.testing.assert_array_equal(sums, made.corpus.sums(path))
        assert r.value == made.goal.value(sums, r.result.weights)


@pytest.mark.parametrize("kind", POOLS)
def test_pools_of_every_kind_raise_the_value(kind: str) -> None:
    for seed in range(2):
        made = task_on(documents(seed), Plan(kind, settings=QUICK), start=(1.0, -0.5))
        values = [r.value for r in rounds_of(made)]
        assert max(values) > values[0]


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("best", ["some", "the first"])
def test_zeros_are_left_for_weights_that_choose(kind: str, best: str) -> None:
    """Also where the first candidates, which zeros choose, cannot be bettered."""
    corpus = documents(1)
    if best == "the first":
        worst = [rows.copy() for rows in corpus.statistics]
        for rows in worst:
            rows[np.arange(len(rows)) % 4 > 0, :4] = 0
        corpus = TuningSet(corpus.groups, tuple(worst), corpus.gaps)
    made = task_on(corpus, Plan(kind, settings=QUICK), start=(0.0, 0.0))
    ended = best_round(made)
    assert ended.best.result.weights.any()


# Exact searches


def test_exact_searches_need_but_one_pool_where_no_context_counts() -> None:
    plan = Plan("exact", settings=QUICK)
    assert best_round(task_on(one_document(ALONE), plan)).reason == "the pool is complete"
    assert best_round(task_on(one_document(), plan)).reason == "3 rounds without gain"


@pytest.mark.parametrize("order", [2, None])
def test_exact_searches_refuse_what_looks_further_back(order: int | None) -> None:
    corpus = one_document(cast(DocumentProblem, Endless(order)))
    with pytest.raises(UsageError, match=r"--pools exact: .* take --pools conditional"):
        best_round(task_on(corpus, Plan("exact", objective=CORPUS_BLEU_ALONE)))


@pytest.mark.parametrize("seed", range(2))
def test_exact_searches_predict_what_is_decoded_and_end_at_the_best_of_a_circle(seed: int) -> None:
    """Two weights: all directions are tried, each decoded."""
    plan = Plan("exact", objective=CORPUS_BLEU_ALONE, settings=QUICK)
    made = task_on(documents(seed, 3), plan)
    seen = rounds_of(made)
    for r in seen[2:]:  # climbs; round 1 is the optimum of a pool
        assert r.result.predicted is not None
        assert r.result.predicted.value == pytest.approx(r.value, abs=1e-9)
        np.testing.assert_array_equal(
            r.result.predicted.statistics, r.result.statistics.sum(axis=0)
        )
        assert np.abs(r.result.weights).sum() == pytest.approx(1)
    angles = np.linspace(0, 2 * np.pi, 180, endpoint=False)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    circle = [made.goal.value(made.decode(point)[1], point) for point in points]
    assert max(r.value for r in seen) >= max(circle) - 1e-9


def test_exact_searches_keep_to_ranges() -> None:
    ranges = {"LM0": (0.2, 0.4), "x": (-np.inf, 0.6)}
    made = task_on(documents(2), Plan("exact", settings=QUICK), ranges=ranges, start=(0.3, 0.5))
    weights = np.array([r.result.weights for r in rounds_of(made)])
    assert within(weights[:, 0], 0.2, 0.4)
    assert within(weights[:, 1], -np.inf, 0.6)


def within(weights: NDArray[np.float64], low: float, high: float) -> bool:
    return bool(((low <= weights) & (weights <= high)).all())


def test_exact_searches_leave_weights_that_are_not_tuned_and_count_them() -> None:
    made = task_on(documents(3, 3), Plan("exact", settings=QUICK), tuned=("x",), start=(0.7, 0.1))
    assert made.fixed
    seen = rounds_of(made)
    values = [r.value for r in seen]
    steps = np.linspace(-10, 10, 101)[:, None]
    line = [made.goal.value(made.decode(step)[1], step) for step in steps]
    assert max(values) >= max(line) - 1e-9


def test_a_seed_decides_what_exact_searches_find() -> None:
    one, same = (rounds_of(task_on(documents(4), Plan("exact", settings=QUICK))) for _ in "12")
    assert [r.result.weights.tolist() for r in one] == [r.result.weights.tolist() for r in same]
