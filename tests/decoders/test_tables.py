"""Problems written out: any order, against the tables themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoders.chains import Pairwise, Unary
from decoders.exhaustive import exhaustive
from decoders.lockstep import path_score
from decoders.problem import DocumentProblem, ScoreError, UnsuitedDecoder
from decoders.tables import HistoryTable

LENGTHS = st.lists(st.integers(1, 4), min_size=1, max_size=5)
ORDERS = st.none() | st.integers(0, 5)
SEEDS = st.integers(0, 2**32 - 1)


def table(lengths: Sequence[int], order: int | None, seed: int) -> HistoryTable:
    rng = np.random.default_rng(seed)
    tables = []
    for t in range(len(lengths)):
        first = 0 if order is None else max(0, t - order)
        tables.append(rng.integers(-9, 9, size=tuple(lengths[first : t + 1])) / 4)
        tables[-1].flags.writeable = False
    return HistoryTable(tables, order)


@settings(max_examples=100, deadline=None)
@given(lengths=LENGTHS, order=ORDERS, seed=SEEDS)
def test_a_path_scores_the_sum_of_its_entries(
    lengths: list[int], order: int | None, seed: int
) -> None:
    problem = table(lengths, order, seed)
    scores = {path.choices: path.score for path in exhaustive(problem, n_best=1024)}
    assert problem.lengths == tuple(lengths)
    for choices in product(*map(range, lengths)):
        entries = [
            float(scores_t[choices[t + 1 - scores_t.ndim : t + 1]])
            for t, scores_t in enumerate(problem.tables)
        ]
        assert scores[choices] == path_score(problem, choices) == sum(entries)


@settings(max_examples=100, deadline=None)
@given(
    lengths=LENGTHS,
    order=ORDERS,
    seed=SEEDS,
    t=st.integers(0, 4),
    block=st.integers(1, 3),
    horizon=st.integers(0, 5),
)
def test_rescoring_is_what_the_definition_gives_and_what_moves_differ_by(
    lengths: list[int], order: int | None, seed: int, t: int, block: int, horizon: int
) -> None:
    problem, rng, t = table(lengths, order, seed), np.random.default_rng(seed), t % len(lengths)
    paths = np.tile(rng.integers(lengths), (5, 1))
    paths[:, t : t + block] = rng.integers(lengths, size=(5, len(lengths)))[:, t : t + block]
    found = problem.rescore(paths, t, horizon)
    assert found.tolist() == DocumentProblem.rescore(problem, paths, t, horizon).tolist()
    reach = len(lengths) if order is None else order
    sums = problem.rescore(paths, t, block - 1 + reach)
    scores = np.array([path_score(problem, path) for path in paths.tolist()])
    assert (sums - sums[0]).tolist() == (scores - scores[0]).tolist()


def test_order_0_and_1_answer_as_chains_do() -> None:
    zero, one = table((2, 3), 0, 1), table((2, 3), 1, 1)
    unary, pairs = Unary(zero.tables), Pairwise([one.tables[0][None], one.tables[1]])
    for t in (0, 1):
        assert zero.unary(t).tolist() == unary.unary(t).tolist()
        assert zero.pairwise(t).tolist() == unary.pairwise(t).tolist()
        assert one.pairwise(t).tolist() == pairs.pairwise(t).tolist()
    with pytest.raises(UnsuitedDecoder, match="use beam"):
        one.unary(0)
    with pytest.raises(UnsuitedDecoder, match="use beam"):
        table((2, 3), 2, 1).pairwise(0)


def test_states_that_end_alike_are_equal() -> None:
    problem = table((3, 2, 2, 2), 2, 5)
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


def test_rescoring_names_the_sentence_and_candidate_of_a_fault() -> None:
    problem = HistoryTable([np.zeros(2), np.array([[0, 0, 0], [0, 0, np.nan]])])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 2 .*NaN"):
        problem.rescore(np.array([[0, 0], [0, 1], [0, 2], [1, 2]]), 0, 1)
