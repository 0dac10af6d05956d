"""Greedy, beam and Viterbi search against enumeration; a hypothesis for each candidate (eq. 18)."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.problems import (
    BUILDS,
    CHI2_999,
    DYADIC,
    FINITE,
    LENGTHS,
    SEEDS,
    Build,
    chi2,
    probabilities,
    rng,
    unbounded,
)

from decoders.arrays import HistoryTable, Pairwise, Unary, WeightedSum
from decoders.batching import path_score
from decoders.beam import beam, full_width, greedy, survivors
from decoders.problem import (
    Array,
    Chain,
    DocumentProblem,
    Floats,
    Indices,
    Path,
    ScoreError,
    UnsuitedDecoder,
)
from decoders.viterbi import affordable, exhaustive, most_extensions, viterbi

VALUES = st.sampled_from([None, *DYADIC])


@settings(max_examples=60)
@given(build=st.sampled_from(BUILDS), lengths=LENGTHS, seed=SEEDS, values=VALUES, n=SEEDS)
def test_exact_searches_list_what_enumeration_lists_in_the_same_order(
    build: Build, lengths: list[int], seed: int, values: Sequence[float] | None, n: int
) -> None:
    problem, count = build(lengths, seed, values), math.prod(lengths)
    n_best = n % count + 1
    truth = exhaustive(problem, n_best=n_best)
    for width in (count, full_width(lengths, problem.order), None):
        assert beam(problem, width=width, n_best=n_best) == truth
    assert all(path.score == path_score(problem, path.choices) for path in truth)
    assert greedy(problem).score <= truth[0].score
    assert beam(problem, width=n % 9 + 1)[0].score <= truth[0].score
    if build in FINITE:
        assert viterbi(problem, n_best=n_best) == truth
        assert viterbi(problem) == truth[:1]
    if problem.order is None:
        assert beam(problem, width=1) == [greedy(problem)]


# By hand
def test_each_context_is_scored_once_and_each_matrix_asked_for_once() -> None:
    class Counting(Pairwise):
        def extend(self, states: Indices, t: int) -> tuple[Floats, None]:
            sizes.append(len(states))
            return super().extend(states, t)

        def pairwise(self, t: int) -> Floats:
            asked.append(t)
            return super().pairwise(t)

    sizes, asked = list[int](), list[int]()
    problem = Counting([np.zeros((1, 3)), *[np.zeros((3, 3))] * 3])
    assert len(beam(problem, width=9, n_best=20)) == 20
    assert sizes == [1, 3, 3, 3]
    asked.clear()
    assert viterbi(problem) == [Path((0, 0, 0, 0), 0.0)]
    assert asked == [0, 1, 2, 3]


def test_what_is_worse_than_the_best_by_more_than_the_threshold_is_dropped() -> None:
    table = HistoryTable([np.array([0.0, 1, -1]), np.array([[9.0], [0], [99]])])
    for threshold, start in ((0.5, 1), (1, 0), (2, 2)):
        assert beam(table, width=3, threshold=threshold)[0].choices == (start, 0)
    impossible = HistoryTable([np.full(2, -np.inf), np.zeros((2, 1))])
    assert len(beam(impossible, width=2, threshold=0, n_best=2)) == 2


# What exact search costs, and what it refuses
class Expensive(Chain):
    """Lists too long for their order; never scored."""

    lengths = (100,) * 10
    order = 4


def test_the_cost_is_the_most_histories_times_candidates_of_a_sentence() -> None:
    expected = (100**5, 100**4)
    assert (most_extensions(Expensive.lengths, 4), full_width(Expensive.lengths, 4)) == expected
    # each of 50 states keeps 50 paths after the second sentence, then up to n_best
    assert most_extensions((50,) * 4, 1, 10**5) == 50**4
    assert (most_extensions((), 2), most_extensions((5, 7), 0)) == (0, 7)


def test_exact_search_serves_what_it_can_afford() -> None:
    matrices = [np.zeros((1, 50)), *[np.zeros((50, 50))] * 4]
    assert affordable(HistoryTable([np.zeros(9), np.zeros((9, 9))], order=3))
    assert not affordable(Expensive())
    assert not affordable(HistoryTable([np.zeros(9)]))
    assert len(viterbi(Pairwise(matrices[:2]), n_best=10**5)) == 50**2
    refused = [
        (HistoryTable([np.zeros(2)]), 1, r"depend on all earlier.*use beam, or exhaustive"),
        (Expensive(), 1, r"order 4 would hold up to 100,000,000 states, and 10,0"),
        (Pairwise(matrices), 5000, r"50 states of 5,000 paths each, and 12,500,000 scores"),
    ]
    for problem, n_best, message in refused:
        with pytest.raises(UnsuitedDecoder, match=message):
            viterbi(problem, n_best=n_best)


def test_invalid_scores_are_refused_by_sentence_even_where_no_path_would_go() -> None:
    class Wrong(Unary):
        def pairwise(self, t: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
            return np.zeros((9, 9))

    with pytest.raises(ScoreError, match=r"^sentence 1, candidate 0 .*NaN"):
        viterbi(Pairwise([np.array([[0, -np.inf]]), np.array([[0.0], [np.nan]])]))
    with pytest.raises(ScoreError, match=r"sentence 0 .*shape \(1, 2\), found \(1, 9\)"):
        beam(Wrong([np.zeros(2)]), width=2)


# One hypothesis for each candidate: the best, drawn, or the mean
RNG = rng(0)  # where nothing is drawn


class Recurrent(DocumentProblem):
    """A linear recurrent model: h' = A h + b_k, and candidate k scores v_k · h + c_k."""

    order = None
    lengths: tuple[int, ...] = ()

    def __init__(self, lengths: tuple[int, ...], seed: int) -> None:
        draws = rng(seed)
        self.lengths, self.a = lengths, draws.normal(scale=0.6, size=(2, 2))
        self.b = [draws.normal(size=(k, 2)) for k in lengths]
        self.v = [draws.normal(size=(k, 2)) for k in lengths]
        self.c = [draws.normal(size=k) for k in lengths]

    def initial(self) -> Array:
        return np.ones((1, 2))

    def extend(self, states: Array, t: int) -> tuple[Array, tuple[Array, int]]:
        return states @ self.v[t].T + self.c[t], (states @ self.a.T, t)

    def select(self, successors: tuple[Array, int], parents: Indices, choices: Indices) -> Array:
        states, t = successors
        return np.asarray(states[parents] + self.b[t][choices])

    def average(self, successors: tuple[Array, int], weights: Array) -> Array:
        states, t = successors
        return np.asarray(weights.T @ states + self.b[t])


def recursion(problem: Recurrent, alpha: float) -> tuple[int, ...]:
    """Eq. 18 with the average, candidate by candidate; the likeliest ℓ is read back."""
    hypotheses = [([1.0, 1.0], 0.0, list[int]())]  # h, ψ, path
    for t, length in enumerate(problem.lengths):
        new = []
        for k in range(length):
            sums = [
                psi + sum(v * x for v, x in zip(problem.v[t][k], h, strict=True)) + problem.c[t][k]
                for h, psi, _ in hypotheses
            ]
            total = sum(math.exp(alpha * s) for s in sums)
            q = [math.exp(alpha * s) / total for s in sums]
            mean = [
                sum(w * h[i] for w, (h, _, _) in zip(q, hypotheses, strict=True)) for i in (0, 1)
            ]
            after = [
                sum(problem.a[i, j] * mean[j] for j in (0, 1)) + problem.b[t][k][i] for i in (0, 1)
            ]
            parent = max(range(len(sums)), key=lambda m: sums[m])
            new.append((after, math.log(total) / alpha, [*hypotheses[parent][2], k]))
        hypotheses = new
    return tuple(max(hypotheses, key=lambda one: one[1])[2])


@pytest.mark.parametrize("alpha", [0.4, 2.5])
def test_the_mean_is_the_recursion_of_the_memo_and_its_path_is_scored_again(alpha: float) -> None:
    result = set()
    for seed in range(40):
        problem = Recurrent((3, 1, 4, 2, 3), seed)
        path = survivors(problem, rng=RNG, merge="mean", alpha=alpha)
        assert path.choices == recursion(problem, alpha)
        assert path.score == path_score(problem, path.choices)
        total = WeightedSum([(0.0, unbounded(problem.lengths, 1)), (1.0, problem)])
        assert survivors(total, rng=RNG, merge="mean", alpha=alpha) == path
        result.add(path.choices == survivors(problem, rng=RNG).choices)
    assert result == {True, False}  # the mean is not the best in disguise


def test_the_best_of_each_candidate_may_lose_what_is_worth_more_later() -> None:
    tables = [np.array([1.0, 0]), np.zeros((2, 1)), np.array([[[0.0]], [[9.0]]])]
    assert survivors(HistoryTable(tables), rng=RNG) == Path((0, 0, 0), 1.0)


def test_drawn_hypotheses_follow_their_weights_at_scale_alpha() -> None:
    problem = Pairwise([np.array([[0.5, -0.25, 0, -np.inf]]), np.array([[0.0], [1], [0.5], [9]])])
    draws = rng(3)
    paths = [survivors(problem, rng=draws, merge="sample", alpha=1.5).choices for _ in range(1500)]
    without_last = Pairwise([problem.matrices[0][:, :3], problem.matrices[1][:3]])
    assert chi2(paths, probabilities(without_last, 1.5)) < CHI2_999[2]


@pytest.mark.parametrize("merge", ["max", "sample", "mean"])
def test_any_merge_leaves_the_only_path_and_first_candidates(merge: str) -> None:
    only = Unary([np.array([-0.5])] * 300)
    assert survivors(only, rng=rng(), merge=merge, alpha=1.0) == Path((0,) * 300, -150.0)
    problem = Pairwise([np.array([[0, 1.0]]), np.full((2, 2), -np.inf), np.array([[0, 1.0]] * 2)])
    result = survivors(problem, rng=rng(1), merge=merge, alpha=1.0)
    assert result == Path((0, 0, 0), -np.inf)


def test_unknown_merges_a_missing_scale_and_states_without_a_mean_are_refused() -> None:
    for merge in ("sample", "mean"):
        with pytest.raises(ValueError, match=f"merging by {merge} needs a scale alpha"):
            survivors(Unary([]), rng=RNG, merge=merge)
    with pytest.raises(ValueError, match="'best'; there are max, sample, mean"):
        survivors(Unary([]), rng=RNG, merge="best")
    with pytest.raises(UnsuitedDecoder, match="have no mean; merge by max or sample"):
        survivors(HistoryTable([np.zeros(2), np.zeros((2, 2))]), rng=RNG, merge="mean", alpha=1.0)
