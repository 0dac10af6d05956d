"""Sums and maxima over paths, against enumeration."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import LENGTHS, SEEDS, random_problem, rng

from decoders.arrays import HistoryTable, Pairwise, Unary
from decoders.exhaustive import exhaustive
from decoders.marginals import backward, forward, is_chain, marginals, max_marginals
from decoders.numerics import log_sum_exp
from decoders.problem import Array, DocumentProblem, ScoreError, UnsuitedDecoder

VALUES = st.sampled_from(
    [(-np.inf, -1.0, 0.0, 0.75), (-np.inf,) * 4 + (0.5,), (-300.0, 5.0, 250.0)]
)


def enumerate_paths(
    problem: DocumentProblem, alpha: float
) -> tuple[list[Array], float, list[Array]]:
    """Marginals, log Z and max-marginals from a list of all paths."""
    paths = exhaustive(problem, n_best=1024)
    logs = [alpha * path.score for path in paths]
    top = max(logs)
    if top == -math.inf:
        log_z, shares = top, [0.0] * len(paths)
    else:
        log_z = top + math.log(math.fsum(math.exp(log - top) for log in logs))
        shares = [math.exp(log - log_z) for log in logs]
    sums = [np.zeros(k) for k in problem.lengths]
    best = [np.full(k, -np.inf) for k in problem.lengths]
    for path, share in zip(paths, shares, strict=True):
        for t, choice in enumerate(path.choices):
            sums[t][choice] += share
            best[t][choice] = max(best[t][choice], path.score)
    return sums, log_z, best


@given(
    lengths=LENGTHS,
    order=st.integers(0, 1),
    seed=SEEDS,
    values=VALUES,
    alpha=st.sampled_from([0.1, 1.0, 3.0]),
)
def test_they_are_what_enumeration_gives(
    lengths: list[int], order: int, seed: int, values: Sequence[float], alpha: float
) -> None:
    problem = random_problem(order, lengths, rng(seed), values)
    sums, log_z, best = enumerate_paths(problem, alpha)
    found, normaliser = marginals(problem, alpha)
    # logarithms up to 4,000, of which 2^-53 is 5e-13; a few such roundings a sentence
    assert normaliser == pytest.approx(log_z, rel=1e-13, abs=1e-13)
    for mine, theirs in zip(found, sums, strict=True):
        assert mine == pytest.approx(theirs, abs=1e-10)
    for mine, theirs in zip(max_marginals(problem), best, strict=True):
        assert mine.tolist() == theirs.tolist()  # the values are dyadic


def test_messages_meet_at_every_sentence() -> None:
    problem = random_problem(1, [3, 4, 2, 3], rng(7), (-2.0, 0.25, 1.5))
    before, after = forward(problem, log_sum_exp, 0.7), backward(problem, log_sum_exp, 0.7)
    totals = [float(log_sum_exp(b + a)) for b, a in zip(before, after, strict=True)]
    assert totals == pytest.approx([marginals(problem, 0.7)[1]] * 4)
    assert after[-1].tolist() == [0, 0, 0]


def test_without_a_possible_path_no_candidate_has_a_share() -> None:
    problem = Pairwise([np.zeros((1, 2)), np.full((2, 2), -np.inf), np.zeros((2, 1))])
    found, log_z = marginals(problem, 1.0)
    assert log_z == -np.inf
    assert [row.tolist() for row in found] == [[0, 0], [0, 0], [0]]
    assert [row.tolist() for row in max_marginals(problem)] == [[-np.inf] * 2] * 2 + [[-np.inf]]


def test_an_empty_document_has_one_path() -> None:
    assert marginals(Unary([]), 2.0) == ((), 0.0)
    assert max_marginals(Pairwise([])) == ()


def test_a_thousand_sentences_keep_their_shares() -> None:
    scores = list(rng(2).normal(scale=50, size=(1000, 4)))
    tiled = [np.tile(row, (1 if t == 0 else 4, 1)) for t, row in enumerate(scores)]
    found, log_z = marginals(Pairwise(tiled), 0.3)
    alone = [np.exp(0.3 * row - log_sum_exp(0.3 * row)) for row in scores]
    assert np.array(found) == pytest.approx(np.array(alone), abs=1e-9)
    assert log_z == pytest.approx(sum(float(log_sum_exp(0.3 * row)) for row in scores))


def test_orders_and_scales_without_messages_are_refused() -> None:
    table = HistoryTable([np.zeros(2)], order=2)
    assert not is_chain(table)
    assert is_chain(HistoryTable([np.zeros(2)], order=1))
    with pytest.raises(UnsuitedDecoder, match="order 0 or 1"):
        marginals(table, 1.0)
    with pytest.raises(ValueError, match="scale alpha above 0, found 0"):
        marginals(Unary([]), 0)


def test_nan_is_refused_by_sentence_and_candidate() -> None:
    bad = Unary([np.zeros(2), np.array([0, np.nan])])
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN"):
        marginals(bad, 1.0)
    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 1 .*NaN"):
        max_marginals(bad)


def test_at_order_0_no_matrix_of_pairs_is_made() -> None:
    """Of two lists of 20,000 candidates it would take 3 GB."""
    scores = [rng(seed).standard_normal(20_000) for seed in (1, 2)]
    best = max_marginals(Unary(scores))
    np.testing.assert_array_equal(best[0], scores[0] + scores[1].max())
    tracemalloc.start()
    found, log_z = marginals(Unary(scores), 1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10e6
    assert log_z == pytest.approx(sum(float(log_sum_exp(own)) for own in scores))
    np.testing.assert_allclose(found[1], np.exp(scores[1] - log_sum_exp(scores[1])))
