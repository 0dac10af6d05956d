"""Reversed problems against the problems that they reverse, and against all paths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import (
    DYADIC,
    LENGTHS,
    ORDERS,
    SEEDS,
    SOME_LENGTHS,
    ExactMatch,
    posterior_of,
    random_pairwise,
    random_problem,
    rng,
)

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.batching import conditional_scores, path_score
from decoders.directions import Direction
from decoders.exhaustive import exhaustive
from decoders.problem import Array, DocumentProblem, ScoreError, UnsuitedDecoder
from decoders.reversal import ReversedUtility, own_scores, reversed_problem
from decoders.search import Options, decode, decode_all
from decoders.table import DECODERS
from decoders.viterbi import viterbi
from decoders.weighted_sum import WeightedSum

VALUES = DYADIC[0]  # sums in either order are equal


def all_paths(lengths: list[int]) -> list[tuple[int, ...]]:
    return list(product(*map(range, lengths)))


@given(lengths=LENGTHS, order=ORDERS, seed=SEEDS)
def test_paths_keep_their_scores_and_two_reversals_are_none(
    lengths: list[int], order: int | None, seed: int
) -> None:
    problem = random_problem(order, lengths, rng(seed), VALUES)
    turned = reversed_problem(problem)
    assert tuple(turned.lengths) == tuple(lengths)[::-1]
    assert reversed_problem(turned) is problem
    assert (turned.given_later, problem.given_later) == (True, False)
    assert turned.causal == (order in (0, 1))
    assert turned.order == (order if order in (0, 1) else None)
    for path in all_paths(lengths):
        assert path_score(turned, path[::-1]) == path_score(problem, path)


@given(lengths=SOME_LENGTHS, order=ORDERS, seed=SEEDS, data=st.data())
def test_rescoring_tells_how_much_a_change_inside_a_path_is_worth(
    lengths: list[int], order: int | None, seed: int, data: st.DataObject
) -> None:
    """Over a horizon that reaches the order, and of other orders both ends."""
    problem = random_problem(order, lengths, rng(seed), VALUES)
    turned, n = reversed_problem(problem), len(lengths)
    t = data.draw(st.integers(0, n - 1))
    u = data.draw(st.integers(t, n - 1))
    one, other = (rng(seed + i).integers(turned.lengths) for i in (1, 2))
    other[:t], other[u + 1 :] = one[:t], one[u + 1 :]
    reach = n if order is None else order
    sums = turned.rescore(np.array([one, other]), t, u - t + reach)
    truth = [path_score(problem, path[::-1].tolist()) for path in (one, other)]
    assert sums[0] - sums[1] == truth[0] - truth[1]


def test_rescoring_may_leave_out_what_is_beyond_the_horizon_on_either_side() -> None:
    problem = random_problem(None, [2] * 7, rng(3), VALUES)
    paths = np.array(all_paths([2] * 7)[:5])
    near = reversed_problem(problem).rescore(paths, 3, 1)
    truth = problem.rescore(paths[:, ::-1], 2, 2)  # sentences 2, 3 and 4
    np.testing.assert_array_equal(near, truth)


def test_a_problem_of_unbounded_order_has_no_states_once_it_is_reversed() -> None:
    turned = reversed_problem(random_problem(None, [2, 2], rng(1)))
    for call in (
        turned.initial,
        lambda: turned.extend(None, 0),
        lambda: turned.select(None, np.zeros(1, np.intp), np.zeros(1, np.intp)),
    ):
        with pytest.raises(UnsuitedDecoder, match="scores depend on later sentences"):
            call()


# Order 1: both directions are one chain


@given(lengths=SOME_LENGTHS, seed=SEEDS)
def test_two_directions_of_order_1_are_one_exact_viterbi(lengths: list[int], seed: int) -> None:
    forward = random_pairwise(lengths, seed, VALUES)
    backward = random_pairwise(lengths[::-1], seed + 1, VALUES)
    both = WeightedSum([(0.5, forward), (2.0, reversed_problem(backward))])
    assert (both.order, both.causal) == (1, True)
    truth = {
        path: 0.5 * path_score(forward, path) + 2.0 * path_score(backward, path[::-1])
        for path in all_paths(lengths)
    }
    (found,) = viterbi(both)
    assert found.score == max(truth.values()) == truth[found.choices]
    assert decode(both).direction is Direction.FORWARD


def test_the_pair_scores_of_a_reversed_chain_are_the_transposed_ones() -> None:
    """p(t − 1 | t) at t, and p(last | start) of the last sentence beside it."""
    start, last = np.array([[-1.0, -2.0]]), np.array([[-4.0, -8.0, -16.0], [-32.0, -64.0, -128.0]])
    turned = reversed_problem(Pairwise([start, last]))
    assert turned.lengths == (3, 2)
    np.testing.assert_array_equal(turned.pairwise(0), np.zeros((1, 3)))
    np.testing.assert_array_equal(turned.pairwise(1), last.T + start)
    alone = reversed_problem(Pairwise([start]))
    np.testing.assert_array_equal(alone.pairwise(0), start)
    flat = reversed_problem(Unary([np.array([1.0]), np.array([2.0, 3.0])]))
    np.testing.assert_array_equal(flat.unary(0), [2.0, 3.0])
    np.testing.assert_array_equal(flat.pairwise(1), [[1.0], [1.0]])


# Searches in reverse order


@pytest.mark.parametrize("name", sorted(DECODERS))
@pytest.mark.parametrize("order", [0, 1, 2, None])
def test_a_reversed_problem_is_searched_as_the_problem_that_it_reverses(
    name: str, order: int | None
) -> None:
    row = DECODERS[name]
    if not row.serves(order):
        return
    problems = [
        random_problem(order, shape, rng(n)) for n, shape in enumerate(([3, 2, 4], [2] * 5))
    ]
    options, ids = Options(scale=0.7, gap=4), ["a", "b"]
    utilities = [ExactMatch(), ExactMatch()]
    truth = decode_all(problems, name, options, documents=ids, utilities=utilities)
    turned = [WeightedSum([(1.0, reversed_problem(problem))]) for problem in problems]
    found = decode_all(turned, name, options, documents=ids, utilities=utilities)
    for one, other in zip(found, truth, strict=True):
        if order in (0, 1):  # searched forward, as every chain
            assert (one.direction, one.exact) == (Direction.FORWARD, other.exact)
            assert one.exact <= (one.choices == other.choices[::-1])
            continue
        assert (one.direction, other.direction) == (Direction.REVERSED, Direction.FORWARD)
        assert [path.choices for path in one.paths] == [p.choices[::-1] for p in other.paths]
        assert (one.score, one.best_score, one.exact) == (
            other.score,
            other.best_score,
            other.exact,
        )
        if other.posterior is not None:
            ours, theirs = posterior_of(one), posterior_of(other)
            assert ours.log_normaliser == theirs.log_normaliser
            np.testing.assert_array_equal(ours.draws, theirs.draws[:, ::-1])
            for marginals, expected in zip(ours.marginals, theirs.marginals[::-1], strict=True):
                np.testing.assert_array_equal(marginals, expected)


def test_chains_of_either_direction_join_a_search_in_reverse_order() -> None:
    lengths = [3, 2, 3, 2]
    parts = [
        (1.0, Unary(random_problem(0, lengths, rng(1), VALUES).tables)),
        (0.5, random_pairwise(lengths, 2, VALUES)),
        (2.0, reversed_problem(random_pairwise(lengths[::-1], 3, VALUES))),
        (1.0, reversed_problem(random_problem(None, lengths[::-1], rng(4), VALUES))),
    ]
    problem = WeightedSum(parts)
    truth = {
        path: sum(weight * path_score(part, path) for weight, part in parts)
        for path in all_paths(lengths)
    }
    found = decode(problem, "exhaustive")
    assert (found.direction, found.exact) == (Direction.REVERSED, True)
    assert found.score == max(truth.values()) == truth[found.choices]
    beams = decode(problem, "beam", Options(width=100))
    assert (beams.choices, beams.exact) == (found.choices, True)


def test_equal_paths_of_a_reversed_search_are_decided_from_the_first_sentence() -> None:
    """As the rule of ties says of the reversed problem."""
    table = HistoryTable([np.zeros(2), np.array([[0.0, 1.0], [1.0, 0.0]])], None)
    assert exhaustive(table)[0].choices == (1, 0)  # and not 0 1, which is equal
    assert decode(table, "exhaustive").choices == (1, 0)
    assert decode(reversed_problem(table), "exhaustive").choices == (0, 1)


def test_a_faulty_score_is_located_in_the_document() -> None:
    for faulty, sentence in ((0, 2), (1, 1), (2, 0)):
        tables = [np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2, 2))]
        good = WeightedSum([(1.0, reversed_problem(HistoryTable([np.zeros(2)], None)))])
        tables[faulty][..., 1] = np.nan
        bad = WeightedSum([(1.0, reversed_problem(HistoryTable(tables, None)))])
        with pytest.raises(ScoreError) as raised:
            decode_all([good, bad], "beam")
        fault = raised.value
        assert (fault.problem, fault.sentence, fault.candidate, fault.part) == (1, sentence, 1, 0)
        assert f"sentence {sentence}, candidate 1" in str(fault)


# Scores of candidates given a path


@given(lengths=LENGTHS, order=ORDERS, seed=SEEDS)
def test_a_candidates_own_score_is_given_the_sentences_after_it(
    lengths: list[int], order: int | None, seed: int
) -> None:
    problem = random_problem(order, lengths, rng(seed), VALUES)
    path = rng(seed).integers(lengths).tolist()
    truth: list[Array] = conditional_scores(problem, path)
    for found in (
        own_scores(problem, path),
        own_scores(reversed_problem(problem), path[::-1])[::-1],
    ):
        for ours, theirs in zip(found, truth, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    total = sum(row[k] for row, k in zip(truth, path, strict=True))
    assert total == path_score(problem, path)


class BothSides(HistoryTable):
    """A table whose scores count as given later sentences, too."""

    causal = False

    def scores_within(self, choices: Sequence[int]) -> list[Array]:
        return conditional_scores(HistoryTable(self.tables, self.order), choices)


def test_scores_within_a_path_are_those_of_the_problem_in_either_order() -> None:
    table = random_problem(None, [2, 3, 2], rng(1), VALUES)
    both, path = BothSides(table.tables, None), [1, 2, 0]
    for found in (own_scores(both, path), own_scores(reversed_problem(both), path[::-1])[::-1]):
        for ours, theirs in zip(found, conditional_scores(table, path), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ValueError, match="sentence 2 has 2 candidates, no candidate 2"):
        own_scores(both, [0, 0, 2])


def test_a_problem_of_later_sentences_without_scores_within_a_path_is_refused() -> None:
    turned = reversed_problem(random_problem(None, [2, 2], rng(1), VALUES))
    with pytest.raises(UnsuitedDecoder, match="no scores of candidates within a path"):
        turned.scores_within([0, 0])


def test_the_utility_of_a_reversed_problem_counts_sentences_from_the_last() -> None:
    class Places:
        def expected(self, t: int, marginals: Array) -> Array:
            return marginals + t

        def words(self, t: int) -> Array:
            return np.array([float(t)])

    turned = ReversedUtility.of(Places(), 5)
    assert turned is not None
    np.testing.assert_array_equal(turned.expected(1, np.zeros(2)), [3.0, 3.0])
    np.testing.assert_array_equal(turned.words(0), [4.0])
    assert ReversedUtility.of(None, 5) is None


def test_a_problem_that_reads_both_ways_has_a_part_for_each_direction() -> None:
    one, other = (random_problem(None, [2, 2], rng(n), VALUES) for n in (1, 2))
    parts: list[tuple[float, DocumentProblem]] = [(1.0, one), (2.0, reversed_problem(other))]
    both = WeightedSum(parts)
    assert not both.causal
    forward, backward = both.causal_part(), reversed_problem(both).causal_part()
    assert forward is not None
    assert backward is not None
    for path in all_paths([2, 2]):
        assert path_score(forward, path) == path_score(one, path)
        assert path_score(backward, path[::-1]) == 2 * path_score(other, path[::-1])
    assert one.causal_part() is one
    assert reversed_problem(one).causal_part() is None
