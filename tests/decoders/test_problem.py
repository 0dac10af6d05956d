"""Problems: what they score, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.problems import PAIRWISE, TABLE, UNARY, frozen

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import conditional_scores, path_score
from decoders.problem import (
    Array,
    DocumentProblem,
    Indices,
    ScoreError,
    UnsuitedDecoder,
    checked,
    checked_sums,
)


def test_lengths_are_the_numbers_of_candidates() -> None:
    assert UNARY.lengths == PAIRWISE.lengths == TABLE.lengths == (2, 3)
    assert Unary([]).lengths == Pairwise([]).lengths == HistoryTable([]).lengths == ()


def test_forced_scores_are_those_after_the_given_path() -> None:
    first, second = conditional_scores(PAIRWISE, (1, 0))
    assert first.tolist() == [0, 1]
    assert second.tolist() == [4, 5, -np.inf]
    assert conditional_scores(TABLE, (0, 2))[1].tolist() == [1, 2, 3]


def test_path_score_is_the_sum_along_the_path() -> None:
    assert path_score(UNARY, (1, 0)) == 2.5
    assert path_score(PAIRWISE, (1, 1)) == 6
    assert path_score(PAIRWISE, (1, 2)) == -np.inf
    assert path_score(TABLE, (1, 2)) == 8
    assert path_score(Unary([]), ()) == 0


@pytest.mark.parametrize(
    ("choices", "message"),
    [((1,), "expected 2 choices"), ((0, 3), "no candidate 3"), ((-1, 0), "no candidate -1")],
    ids=["too few", "too high", "negative"],
)
def test_an_invalid_path_is_refused(choices: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        path_score(PAIRWISE, choices)


def test_order_0_answers_pairwise_by_repeating_its_rows() -> None:
    assert UNARY.pairwise(0).tolist() == [[1, 2]]
    assert UNARY.pairwise(1).tolist() == [[0.5, 0.25, 0]] * 2


def test_unbounded_and_first_order_problems_refuse_unary() -> None:
    for problem in (PAIRWISE, TABLE):
        with pytest.raises(UnsuitedDecoder, match="use beam"):
            problem.unary(1)
    with pytest.raises(UnsuitedDecoder, match="use beam"):
        TABLE.pairwise(1)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Unary([np.zeros(2), np.zeros(0)]),
        lambda: Unary([np.zeros(2), np.zeros((1, 2))]),
        lambda: Pairwise([np.zeros((1, 2)), np.zeros((3, 2))]),
        lambda: Pairwise([np.zeros((1, 2)), np.zeros((2, 0))]),
        lambda: HistoryTable([np.zeros(2), np.zeros((3, 2))]),
    ],
    ids=["no candidate", "matrix for vector", "rows", "columns", "table"],
)
def test_arrays_of_a_wrong_shape_are_refused_at_once(build: Callable[[], object]) -> None:
    with pytest.raises(ScoreError, match=r"^sentence 1 \(counted from 0\): expected .* found"):
        build()


def test_what_is_asked_together_is_answered_as_if_asked_alone() -> None:
    one, two = np.zeros(1, np.intp), np.array([1, 0])
    requests = [(PAIRWISE, one, 0), (PAIRWISE, two, 1), (Pairwise([np.ones((1, 2))]), one, 0)]
    answers = Pairwise.extend_together(requests)
    assert [scores.tolist() for scores, _ in answers] == [
        problem.extend(states, t)[0].tolist() for problem, states, t in requests
    ]


def test_checked_returns_float64_and_keeps_minus_infinity() -> None:
    scores = frozen([-np.inf, 0.5], np.float32)
    assert checked(scores, 0, shape=(2,)).dtype == np.float64
    assert checked(scores, 0, shape=(2,)).tolist() == [-np.inf, 0.5]
    assert checked(UNARY.scores[0], 0, shape=(2,)) is UNARY.scores[0]


def test_checked_names_the_shape_it_expected() -> None:
    with pytest.raises(ScoreError, match="leave the sentence out"):
        checked(np.zeros((1, 0)), 4, shape=(1, 0))
    with pytest.raises(ScoreError, match=r"sentence 4 .* expected scores of shape \(1, 3\)"):
        checked(np.zeros((3, 1)), 4, shape=(1, 3))


class Plain(DocumentProblem):
    """A problem with nothing of its own but what it must have; the state is the path."""

    lengths = (2, 3, 2)
    order = None

    def initial(self) -> list[tuple[int, ...]]:
        return [()]

    def extend(self, states: list[tuple[int, ...]], t: int) -> tuple[Array, list[tuple[int, ...]]]:
        rows = [[sum(state) * 2.0**t + k for k in range(self.lengths[t])] for state in states]
        return np.array(rows), states

    def select(
        self, successors: list[tuple[int, ...]], parents: Indices, choices: Indices
    ) -> list[tuple[int, ...]]:
        pairs = zip(parents.tolist(), choices.tolist(), strict=True)
        return [(*successors[m], k) for m, k in pairs]


def test_a_class_that_inherits_needs_five_members() -> None:
    problem = Plain()
    assert problem.causal
    assert path_score(problem, (1, 2, 0)) == 1 + (2 + 2) + 3 * 4
    paths = np.array([[1, 2, 0], [0, 1, 1]])
    assert problem.rescore(paths, 1, 0).tolist() == [4, 1]
    assert problem.rescore(paths, 1, 9).tolist() == [16, 6]
    assert problem.rescore(paths, 0, 1).tolist() == [5, 1]
    assert [s.tolist() for s in Plain.rescore_together([(problem, paths, 2, 0)] * 2)] == [
        [12, 5]
    ] * 2
    assert len(Plain.extend_together([(problem, [()], 0), (problem, [(1,), (0,)], 1)])) == 2
    with pytest.raises(UnsuitedDecoder, match="no mean; merge by max or sample"):
        problem.average([()], np.ones((1, 2)))
    with pytest.raises(UnsuitedDecoder, match="use beam"):
        problem.unary(0)


def test_a_fault_of_one_of_many_names_the_request() -> None:
    class Poisoned(Plain):
        def extend(
            self, states: list[tuple[int, ...]], t: int
        ) -> tuple[Array, list[tuple[int, ...]]]:
            scores, successors = super().extend(states, t)
            scores[-1, 1] = np.nan
            return scores, successors

    paths = np.array([[1, 2, 0], [0, 1, 1]])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN") as caught:
        Plain.rescore_together([(Plain(), paths, 0, 1), (Poisoned(), paths, 1, 0)])
    assert caught.value.problem == 1


def test_sums_of_scores_are_checked_by_the_sentence_where_they_begin() -> None:
    assert checked_sums(np.array([0, -np.inf], dtype=np.float32), 3, 2).dtype == np.float64
    assert checked_sums(np.zeros(0), 3, 0).size == 0
    with pytest.raises(ScoreError, match=r"^sentence 3 .*from here on is NaN"):
        checked_sums(np.array([0, np.nan]), 3, 2)
    with pytest.raises(ScoreError, match=r"^sentence 3 .*from here on is \+inf"):
        checked_sums(np.array([0, np.inf]), 3, 2)
    with pytest.raises(ScoreError, match=r"^sentence 3 .*shape \(2,\), found \(2, 1\)"):
        checked_sums(np.zeros((2, 1)), 3, 2)
