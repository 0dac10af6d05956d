"""Viterbi: exact on every finite order; `test_agreement.py` holds it against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from support.problems import random_pairwise, rng

from decoders.arrays import Chain, HistoryTable, Pairwise
from decoders.problem import Array, Path, ScoreError, UnsuitedDecoder
from decoders.viterbi import Cost, affordable, viterbi


class Counting(Chain):
    """A problem of equal scores that notes which matrices it was asked for."""

    lengths = (2, 3, 1, 4)
    order = 1

    def __init__(self) -> None:
        self.asked: list[int] = []

    def pairwise(self, t: int) -> Array:
        self.asked.append(t)
        return np.zeros(((1, *self.lengths)[t], self.lengths[t]))


def test_it_gives_up_a_better_start_for_a_better_whole() -> None:
    problem = Pairwise([np.array([[1.0, 0]]), np.array([[0, 1.0], [9, 9]])])
    assert viterbi(problem) == [Path((1, 0), 9.0)]


def test_equal_paths_go_to_the_lower_candidate_of_the_last_sentence_first() -> None:
    # by hand: (1, 0) and (0, 1) both score 1; read from the last sentence (1, 0) is smaller
    problem = Pairwise([np.zeros((1, 2)), np.array([[0, 1.0], [1, 0]])])
    assert viterbi(problem) == [Path((1, 0), 1.0)]


def test_each_matrix_is_asked_for_once() -> None:
    problem = Counting()
    assert viterbi(problem) == [Path((0, 0, 0, 0), 0.0)]
    assert problem.asked == [0, 1, 2, 3]


def test_one_sentence_takes_its_best_candidate() -> None:
    assert viterbi(Pairwise([np.array([[0, 3.0, 3]])])) == [Path((1,), 3.0)]


def test_one_candidate_everywhere_leaves_one_path() -> None:
    assert viterbi(Pairwise([np.full((1, 1), -0.5)] * 1000)) == [Path((0,) * 1000, -500.0)]


def test_impossible_transitions_are_avoided() -> None:
    problem = Pairwise([np.array([[9.0, 0]]), np.array([[-np.inf, -np.inf], [-np.inf, -7]])])
    assert viterbi(problem) == [Path((1, 1), -7.0)]


def test_when_every_path_is_impossible_first_candidates_are_kept() -> None:
    matrices = [np.array([[0, 1.0]]), np.array([[0, 1.0], [1, 2]]), np.full((2, 2), -np.inf)]
    assert viterbi(Pairwise(matrices)) == [Path((0, 0, 0), -np.inf)]


def test_a_thousand_sentences_score_what_the_backward_recursion_gives() -> None:
    lengths = rng(5).integers(1, 6, size=1000).tolist()
    problem = random_pairwise(lengths, 5, range(-20, 1))
    matrices = [matrix.astype(np.float32) for matrix in problem.matrices]
    best_rest = [0.0] * lengths[-1]  # best score of what follows each candidate, from the right
    for matrix in reversed(matrices):
        best_rest = [max(s + r for s, r in zip(row, best_rest, strict=True)) for row in matrix]
    assert viterbi(Pairwise(matrices))[0].score == best_rest[0]


def test_it_looks_back_as_far_as_the_order() -> None:
    # by hand: the first sentence decides about the third, which is worth more than both before it
    tables = [np.array([1.0, 0]), np.array([[1.0, 1], [0, 0]]), np.zeros((2, 2, 2))]
    tables[2][1, 1, 0] = 5
    assert viterbi(HistoryTable(tables, order=2)) == [Path((1, 1, 0), 5.0)]


def test_it_lists_as_many_paths_as_there_are() -> None:
    problem = Pairwise([np.array([[1.0, 0]]), np.array([[0, 0.5], [4, -np.inf]])])
    assert viterbi(problem, n_best=9) == [
        Path((1, 0), 4.0),
        Path((0, 1), 1.5),
        Path((0, 0), 1.0),
        Path((1, 1), -np.inf),
    ]
    with pytest.raises(ValueError, match="n_best of at least 1"):
        viterbi(problem, n_best=0)


def test_unbounded_dependence_is_refused_naming_decoders_that_fit() -> None:
    with pytest.raises(UnsuitedDecoder, match=r"depend on all earlier.*use beam, or exhaustive"):
        viterbi(HistoryTable([np.zeros(2)]))


class Expensive(Chain):
    """Lists too long for their order; never scored."""

    lengths = (100,) * 10
    order = 4


def test_what_costs_too_much_is_refused_with_the_cost_in_states_and_passes() -> None:
    cost = Cost.of(Expensive.lengths, 4)
    # sentence t is scored after 100^min(t, 4) tuples: 1 + 100 + 100^2 + 100^3 + 6 * 100^4 of ten
    assert cost == Cost(100**4, 60_101_010.1, 100**5)
    message = r"order 4 would hold up to 100,000,000 states .* 60,101,010 passes, 10,000,000,000"
    with pytest.raises(UnsuitedDecoder, match=message):
        viterbi(Expensive())


def test_a_list_of_more_paths_than_memory_holds_is_refused() -> None:
    matrices = [np.zeros((1, 50)), *[np.zeros((50, 50))] * 3]
    # each of the 50 states keeps 50 paths after the second sentence, then up to n_best
    assert Cost.of((50,) * 4, 1, 10**5) == Cost(50, (1 + 3 * 50) / 4, 50**4)
    with pytest.raises(
        UnsuitedDecoder, match=r"50 states of 5,000 paths each .* 12,500,000 scores"
    ):
        viterbi(Pairwise([*matrices, *matrices[1:]]), n_best=5000)
    assert len(viterbi(Pairwise(matrices[:2]), n_best=10**5)) == 50**2


def test_what_is_affordable_is_served() -> None:
    assert not affordable(Expensive())
    assert affordable(HistoryTable([np.zeros(9), np.zeros((9, 9))], order=3))
    assert not affordable(HistoryTable([np.zeros(9)]))
    assert Cost.of((), 2) == Cost(1, 0.0, 0)
    assert Cost.of((5, 7), 0) == Cost(1, 1.0, 7)


def test_nan_is_refused_by_sentence_even_where_no_path_would_go() -> None:
    matrices = [np.array([[0, -np.inf]]), np.array([[0.0], [np.nan]])]
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 0 .*NaN"):
        viterbi(Pairwise(matrices))
