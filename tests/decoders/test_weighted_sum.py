"""Weighted sums: how problems add up, and whose fault it is when they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from support.problems import PAIRWISE, TABLE, UNARY, frozen

from decoders.arrays import Chain, HistoryTable, Pairwise, Unary
from decoders.batching import conditional_scores, path_score
from decoders.problem import (
    Answer,
    Array,
    DocumentProblem,
    Indices,
    ScoreError,
    UnsuitedDecoder,
)
from decoders.weighted_sum import WeightedSum


class Untouchable(Chain):
    """A scorer that must not be asked."""

    lengths = (2, 3)
    order = 1

    def pairwise(self, t: int) -> Array:
        raise AssertionError("evaluated")


def test_the_order_of_a_sum_is_the_highest_with_weight() -> None:
    assert WeightedSum([(1, UNARY), (1, PAIRWISE)]).order == 1
    assert WeightedSum([(1, UNARY), (0, PAIRWISE)]).order == 0
    assert WeightedSum([(1, UNARY), (1, TABLE), (1, PAIRWISE)]).order is None
    assert WeightedSum([(0, TABLE)]).order == 0


def test_a_sum_adds_weighted_scores() -> None:
    both = WeightedSum([(2, UNARY), (0.5, PAIRWISE)])
    assert both.pairwise(0).tolist() == [[2, 4.5]]
    assert both.pairwise(1).tolist() == [[1.5, 1.5, 1.5], [3, 3, -np.inf]]
    assert WeightedSum([(2, UNARY), (1, UNARY)]).unary(0).tolist() == [3, 6]
    assert WeightedSum([(2, UNARY), (1, UNARY)]).pairwise(1).tolist() == [[1.5, 0.75, 0]] * 2


def test_a_sum_of_any_order_scores_paths_as_its_parts_do() -> None:
    total = WeightedSum([(2, UNARY), (3, PAIRWISE), (-1, TABLE)])
    for choices in [(0, 0), (0, 2), (1, 0), (1, 1)]:
        parts = [path_score(p, choices) for p in (UNARY, PAIRWISE, TABLE)]
        assert path_score(total, choices) == 2 * parts[0] + 3 * parts[1] - parts[2]


def test_states_of_a_sum_follow_several_histories_at_once() -> None:
    total = WeightedSum([(1, PAIRWISE), (1, TABLE)])
    _, successors = total.extend(total.initial(), 0)
    states = total.select(successors, np.array([0, 0, 0]), np.array([1, 0, 1]))
    assert total.extend(states, 1)[0].tolist() == [
        [8, 10, -np.inf],
        [2, 4, 6],
        [8, 10, -np.inf],
    ]


def test_sums_asked_together_have_the_bits_of_each() -> None:
    rng = np.random.default_rng(8)
    unary = Unary([rng.normal(size=k).astype(np.float32) for k in (2, 3)])
    pairs = Pairwise([rng.normal(size=s) for s in ((1, 2), (2, 3))])
    table = HistoryTable([rng.normal(size=s) for s in ((2,), (2, 3))])
    sums = [
        WeightedSum([(0.1, unary), (0.7, pairs), (-1.3, table)]),
        WeightedSum([(0, Untouchable()), (0.3, pairs), (0.9, unary)]),
        WeightedSum([(0.7, WeightedSum([(0.2, table), (0.1, pairs)])), (0.3, pairs)]),
        WeightedSum([(0, Untouchable())]),
    ]
    starts = [(total, total.initial(), 0) for total in sums]
    answers = WeightedSum.extend_together(starts)
    later = [
        (total, total.select(successors, np.zeros(n, np.intp), np.arange(n) % 2), 1)
        for n, (total, (_, successors)) in enumerate(zip(sums, answers, strict=True), 1)
    ]
    requests = [later[0], starts[1], *later[1:]]  # sentences differ, too
    for (total, states, t), answer in zip(
        requests, WeightedSum.extend_together(requests), strict=True
    ):
        assert np.array_equal(answer[0], total.extend(states, t)[0])


def test_parts_of_one_class_are_asked_in_one_call() -> None:
    calls = []

    class Recording(Unary):
        @classmethod
        def extend_together(
            cls, requests: Sequence[tuple[Recording, Indices, int]]
        ) -> list[Answer]:
            calls.append([(problem.scores, len(states)) for problem, states, _ in requests])
            return super().extend_together(requests)

    parts = [Recording([np.zeros(2)]) for _ in range(3)]
    other = Unary([np.zeros(2)])
    sums = [
        WeightedSum([(1, parts[0]), (1, other)]),
        WeightedSum([(1, other), (0, Recording([np.zeros(2)])), (1, parts[1]), (1, parts[2])]),
    ]
    WeightedSum.extend_together([(total, total.initial(), 0) for total in sums])
    assert calls == [[(part.scores, 1) for part in parts]]


def test_weight_zero_means_not_evaluated() -> None:
    total = WeightedSum([(0.0, Untouchable()), (-0.0, Untouchable()), (1, UNARY)])
    assert path_score(total, (1, 0)) == 2.5


def test_with_all_weights_zero_every_path_scores_zero() -> None:
    total = WeightedSum([(0, Untouchable()), (0, PAIRWISE)])
    assert [scores.tolist() for scores in conditional_scores(total, (1, 2))] == [[0, 0], [0, 0, 0]]


def test_pairwise_and_extend_of_a_sum_have_equal_bits() -> None:
    rng = np.random.default_rng(7)
    unary = Unary([rng.normal(size=k) for k in (3, 4)])
    one, two = (Pairwise([rng.normal(size=s) for s in ((1, 3), (3, 4))]) for _ in range(2))
    total = WeightedSum([(0.1, one), (0.7, unary), (-1.3, two)])
    _, successors = total.extend(total.initial(), 0)
    states = total.select(successors, np.zeros(3, np.intp), np.arange(3))
    assert np.array_equal(total.extend(states, 1)[0], total.pairwise(1))


def test_float32_scores_are_weighted_in_float64() -> None:
    part = Unary([frozen([1 / 3], np.float32)])
    assert float(WeightedSum([(0.1, part)]).unary(0)[0]) == 0.1 * float(np.float32(1 / 3))


@pytest.mark.parametrize("fault", [np.nan, np.inf], ids=["NaN", "+inf"])
def test_a_sum_names_the_sentence_and_the_scorer_of_a_fault(fault: float) -> None:
    bad = Unary([np.zeros(2), np.array([0, 0, fault])])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 2, scorer 2 ") as caught:
        path_score(WeightedSum([(1, UNARY), (0, bad), (1, bad)]), (0, 0))
    assert (caught.value.sentence, caught.value.candidate, caught.value.part) == (1, 2, 2)


def test_sums_asked_together_name_the_sum_the_sentence_and_the_scorer_of_a_fault() -> None:
    bad = Unary([frozen([1, np.nan]), frozen([0, 0, 0])])
    sums = [
        WeightedSum([(1, UNARY), (0, bad)]),
        WeightedSum([(1, TABLE), (1, PAIRWISE)]),
        WeightedSum([(0, TABLE), (1, UNARY), (1, bad)]),
    ]
    with pytest.raises(ScoreError, match=r"^sentence 0, candidate 1, scorer 2 ") as caught:
        WeightedSum.extend_together([(total, total.initial(), 0) for total in sums])
    assert (caught.value.problem, caught.value.part) == (2, 2)


def test_a_fault_that_a_part_raises_itself_is_laid_to_its_sum() -> None:
    class Raising(Chain):
        lengths = (2, 3)
        order = 1

        def pairwise(self, t: int) -> Array:
            raise ScoreError("no scores today", sentence=t)

    sums = [WeightedSum([(1, UNARY), (1, TABLE)]), WeightedSum([(1, UNARY), (1, Raising())])]
    inner = [WeightedSum([(1, UNARY), (1, total)]) for total in sums]
    with pytest.raises(ScoreError, match="no scores today") as caught:
        WeightedSum.extend_together([(total, total.initial(), 0) for total in inner])
    assert (caught.value.problem, caught.value.sentence) == (1, 0)
    with pytest.raises(ScoreError) as caught:
        inner[1].extend(inner[1].initial(), 0)
    assert caught.value.problem is None


def test_a_class_that_does_not_say_whose_fault_it_is_leaves_it_open() -> None:
    class Vague(Unary):
        @classmethod
        def extend_together(cls, requests: Sequence[tuple[Vague, Indices, int]]) -> list[Answer]:
            raise ScoreError("one of you", sentence=0)

    total = WeightedSum([(1, Vague([np.zeros(2)]))])
    with pytest.raises(ScoreError, match="one of you") as caught:
        WeightedSum.extend_together([(total, total.initial(), 0)] * 2)
    assert caught.value.problem is None


def test_a_sum_names_the_scorer_whose_array_has_a_wrong_shape() -> None:
    class OneRow(Chain):
        lengths = (2, 3)
        order = 1

        def pairwise(self, t: int) -> Array:
            return np.zeros((1, self.lengths[t]))

    total = WeightedSum([(1, PAIRWISE), (1, OneRow())])
    with pytest.raises(ScoreError, match=r"sentence 1, scorer 1 .*\(2, 3\), found \(1, 3\)"):
        total.pairwise(1)


def test_minus_infinity_under_a_negative_weight_is_refused() -> None:
    with pytest.raises(ScoreError, match=r"sentence 1, scorer 0 .*−inf under a negative weight"):
        WeightedSum([(-1, PAIRWISE)]).pairwise(1)


def test_sums_that_cannot_be_formed_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one part"):
        WeightedSum([])
    with pytest.raises(ValueError, match="scorer 1: expected a finite weight, found nan"):
        WeightedSum([(1, UNARY), (float("nan"), UNARY)])
    with pytest.raises(ValueError, match="scorer 1: its sentences have other numbers"):
        WeightedSum([(1, UNARY), (0, Unary([np.zeros(2)]))])


class Recurrent(DocumentProblem):
    """States are vectors h' = h + e_k, scores their sums."""

    lengths = (2, 2)
    order = None

    def initial(self) -> Array:
        return np.zeros((1, 2))

    def extend(self, states: Array, t: int) -> tuple[Array, Array]:
        return states, states

    def select(self, successors: Array, parents: Indices, choices: Indices) -> Array:
        return successors[parents] + np.eye(2)[choices]

    def average(self, successors: Array, weights: Array) -> Array:
        return weights.T @ successors + np.eye(2)


def test_the_mean_of_a_sum_is_the_means_of_its_parts() -> None:
    total = WeightedSum([(1, Recurrent()), (0, TABLE_22), (2, PAIRWISE_22)])
    one = np.array([[0.0, 1], [1, 0]])
    weights = np.array([[0.25, 1], [0.75, 0]])
    vectors, candidates = total.average((one, None), weights)
    assert vectors.tolist() == [[1.75, 0.25], [0, 2]]
    assert candidates.tolist() == [0, 1]
    with pytest.raises(UnsuitedDecoder, match="have no mean; merge by max or sample"):
        WeightedSum([(1, Recurrent()), (1, TABLE_22)]).average((one, (None, 0)), weights)


PAIRWISE_22 = Pairwise([np.zeros((1, 2)), np.ones((2, 2))])
TABLE_22 = HistoryTable([np.zeros(2), np.ones((2, 2))])


def test_rescoring_a_sum_is_what_the_definition_gives() -> None:
    total = WeightedSum([(2, UNARY), (0, Untouchable()), (3, PAIRWISE), (0.5, TABLE)])
    paths = np.array([[0, 0], [0, 2], [1, 0], [1, 1], [1, 2]])
    for t in (0, 1):
        for horizon in (0, 1, 4):
            expected = DocumentProblem.rescore(total, paths, t, horizon).tolist()
            assert total.rescore(paths, t, horizon).tolist() == expected
    other = WeightedSum([(1, TABLE), (1, total)])
    found = WeightedSum.rescore_together([(other, paths, 0, 1), (total, paths[:2], 1, 0)])
    assert found[0].tolist() == [path_score(other, path) for path in paths.tolist()]
    assert found[1].tolist() == total.rescore(paths[:2], 1, 0).tolist()


def test_parts_of_one_class_are_rescored_in_one_call() -> None:
    calls = []

    class Recording(Unary):
        @classmethod
        def rescore_together(
            cls, requests: Sequence[tuple[Recording, Indices, int, int]]
        ) -> list[Array]:
            calls.append(len(requests))
            return super().rescore_together(requests)

    parts = [Recording([np.zeros(2)]) for _ in range(3)]
    sums = [WeightedSum([(1, parts[0]), (0, parts[1])]), WeightedSum([(1, p) for p in parts])]
    WeightedSum.rescore_together([(total, np.array([[1]]), 0, 0) for total in sums])
    assert calls == [4]


def test_rescoring_lays_a_fault_to_its_sum() -> None:
    bad = Unary([np.zeros(2), np.array([0, np.nan, 0])])
    sums = [WeightedSum([(1, UNARY)]), WeightedSum([(1, UNARY), (1, bad)])]
    paths = np.array([[0, 0]])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN") as caught:
        WeightedSum.rescore_together([(total, paths, 0, 1) for total in sums])
    assert caught.value.problem == 1
    with pytest.raises(ScoreError, match="−inf under a negative weight"):
        WeightedSum([(-1, PAIRWISE)]).rescore(np.array([[1, 2]]), 0, 1)


def test_a_sum_depends_on_later_sentences_where_a_part_with_weight_does() -> None:
    class RightToLeft(Untouchable):
        causal = False

    assert not WeightedSum([(1, UNARY), (1, RightToLeft())]).causal
    assert WeightedSum([(1, UNARY), (0, RightToLeft())]).causal
