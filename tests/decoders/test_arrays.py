"""Problems given as arrays: what they return, against the arrays themselves."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import SEEDS, SOME_LENGTHS, random_pairwise, random_problem, random_unary, rng

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import path_score
from decoders.exhaustive import exhaustive
from decoders.problem import DocumentProblem, ScoreError, UnsuitedDecoder

QUARTERS = tuple(np.arange(-9, 9) / 4)


@given(lengths=SOME_LENGTHS, order=st.none() | st.integers(0, 5), seed=SEEDS)
def test_a_path_scores_the_sum_of_its_entries(
    lengths: list[int], order: int | None, seed: int
) -> None:
    problem = random_problem(order, lengths, rng(seed), QUARTERS)
    scores = {path.choices: path.score for path in exhaustive(problem, n_best=1024)}
    assert problem.lengths == tuple(lengths)
    for choices in product(*map(range, lengths)):
        entries = [
            float(scores_t[choices[t + 1 - scores_t.ndim : t + 1]])
            for t, scores_t in enumerate(problem.tables)
        ]
        assert scores[choices] == path_score(problem, choices) == sum(entries)


@given(
    lengths=SOME_LENGTHS,
    order=st.none() | st.integers(0, 5),
    seed=SEEDS,
    t=st.integers(0, 4),
    horizon=st.integers(0, 5),
)
def test_rescoring_is_what_the_definition_gives(
    lengths: list[int], order: int | None, seed: int, t: int, horizon: int
) -> None:
    paths, t = rng(seed).integers(lengths, size=(6, len(lengths))), t % len(lengths)
    for problem in (
        random_problem(order, lengths, rng(seed), QUARTERS),
        random_unary(lengths, seed, QUARTERS),
        random_pairwise(lengths, seed, QUARTERS),
    ):
        found = problem.rescore(paths, t, horizon)
        assert found.tolist() == DocumentProblem.rescore(problem, paths, t, horizon).tolist()


def test_order_0_and_1_answer_as_chains_do() -> None:
    zero, one = (random_problem(order, (2, 3), rng()) for order in (0, 1))
    unary, pairs = Unary(zero.tables), Pairwise([one.tables[0][None], one.tables[1]])
    for t in (0, 1):
        assert zero.unary(t).tolist() == unary.unary(t).tolist()
        assert zero.pairwise(t).tolist() == unary.pairwise(t).tolist()
        assert one.pairwise(t).tolist() == pairs.pairwise(t).tolist()
    with pytest.raises(UnsuitedDecoder, match="use beam"):
        one.unary(0)
    with pytest.raises(UnsuitedDecoder, match="use beam"):
        random_problem(2, (2, 3), rng()).pairwise(0)


def test_the_state_of_a_chain_is_the_last_choice() -> None:
    problem = Pairwise([np.zeros((1, 2)), np.array([[1.0, 2, 3], [4, 5, 6]])])
    scores, successors = problem.extend(problem.initial(), 0)
    assert scores.tolist() == [[0, 0]]
    states = problem.select(successors, np.array([0, 0, 0]), np.array([1, 0, 1]))
    assert problem.extend(states, 1)[0].tolist() == [[4, 5, 6], [1, 2, 3], [4, 5, 6]]
    assert problem.average(None, np.full((2, 3), 0.5)).tolist() == [0, 1, 2]


def test_states_that_end_alike_are_equal() -> None:
    problem = random_problem(2, (3, 2, 2, 2), rng(5))
    states = problem.initial()
    for t, choice in enumerate((np.array([0, 1, 2]), np.array([1, 1, 1]), np.array([0, 0, 0]))):
        _, successors = problem.extend(states, t)
        parents = np.arange(3) if t else np.zeros(3, dtype=np.intp)
        states = problem.select(successors, parents, choice)
    assert len(set(states.tolist())) == 1  # (·, 1, 0) thrice


def test_tables_of_another_order_are_refused() -> None:
    tables = [np.zeros(2), np.zeros((2, 3)), np.zeros((2, 3, 2))]
    assert HistoryTable(tables, 2).order == 2
    with pytest.raises(ScoreError, match=r"^sentence 2 .*shape \(3, K_t\) .* found \(2, 3, 2\)"):
        HistoryTable(tables, 1)


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["NaN", "+inf"])
def test_rescoring_names_the_sentence_and_candidate_of_a_fault(value: float) -> None:
    matrix, paths = np.array([[0, value], [0, 0]]), np.array([[0, 0]])
    for problem in (Pairwise([np.zeros((1, 2)), matrix]), HistoryTable([np.zeros(2), matrix])):
        with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 "):
            problem.rescore(paths, 0, 1)
