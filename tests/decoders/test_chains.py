"""Problems of order 0 and 1: what they answer, against their arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.chains import Pairwise, Unary
from decoders.lockstep import path_score
from decoders.problem import DocumentProblem, ScoreError

LENGTHS = st.lists(st.integers(1, 4), min_size=1, max_size=5)
SEEDS = st.integers(0, 2**32 - 1)


def chains(lengths: list[int], seed: int) -> tuple[Unary, Pairwise]:
    rng = np.random.default_rng(seed)
    pairs = list(itertools.pairwise([1, *lengths]))
    arrays = [rng.integers(-9, 9, size=k) / 4 for k in lengths]
    matrices = [rng.integers(-9, 9, size=pair) / 4 for pair in pairs]
    for array in (*arrays, *matrices):
        array.flags.writeable = False
    return Unary(arrays), Pairwise(matrices)


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, t=st.integers(0, 4), horizon=st.integers(0, 5))
def test_rescoring_is_what_the_definition_gives(
    lengths: list[int], seed: int, t: int, horizon: int
) -> None:
    rng, t = np.random.default_rng(seed), t % len(lengths)
    paths = rng.integers(lengths, size=(6, len(lengths)))
    for problem in chains(lengths, seed):
        found = problem.rescore(paths, t, horizon)
        assert found.tolist() == DocumentProblem.rescore(problem, paths, t, horizon).tolist()


@settings(max_examples=60, deadline=None)
@given(lengths=LENGTHS, seed=SEEDS, t=st.integers(0, 4), block=st.integers(1, 3))
def test_paths_that_differ_in_a_block_differ_by_what_is_rescored(
    lengths: list[int], seed: int, t: int, block: int
) -> None:
    rng, t = np.random.default_rng(seed), t % len(lengths)
    paths = np.tile(rng.integers(lengths), (5, 1))
    paths[:, t : t + block] = rng.integers(lengths, size=(5, len(lengths)))[:, t : t + block]
    for problem in chains(lengths, seed):
        sums = problem.rescore(paths, t, block - 1 + problem.order)
        scores = np.array([path_score(problem, path) for path in paths.tolist()])
        assert (sums - sums[0]).tolist() == (scores - scores[0]).tolist()


def test_the_state_is_the_last_choice() -> None:
    problem = Pairwise([np.zeros((1, 2)), np.array([[1.0, 2, 3], [4, 5, 6]])])
    scores, successors = problem.extend(problem.initial(), 0)
    assert scores.tolist() == [[0, 0]]
    states = problem.select(successors, np.array([0, 0, 0]), np.array([1, 0, 1]))
    assert problem.extend(states, 1)[0].tolist() == [[4, 5, 6], [1, 2, 3], [4, 5, 6]]


def test_histories_that_end_alike_are_their_own_mean() -> None:
    problem = Unary([np.zeros(2), np.zeros(3)])
    assert problem.average(None, np.full((2, 3), 0.5)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["NaN", "+inf"])
def test_rescoring_names_the_sentence_and_candidate_of_a_fault(value: float) -> None:
    problem = Pairwise([np.zeros((1, 2)), np.array([[0, value], [0, 0]])])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 "):
        problem.rescore(np.array([[1, 0]]), 0, 1)
