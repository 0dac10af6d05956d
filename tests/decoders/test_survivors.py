"""One hypothesis for each candidate (the memo's eq. 18): best, drawn, or the mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support.problems import CHI2_999, chi2, probabilities, rng, unbounded

from decoders.arrays import HistoryTable, Pairwise, Unary, WeightedSum
from decoders.batching import path_score
from decoders.beam import survivors
from decoders.problem import Array, DocumentProblem, Indices, Path, UnsuitedDecoder

RNG = rng(0)  # where nothing is drawn
every_merge = pytest.mark.parametrize("merge", ["max", "sample", "mean"])


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
    found = set()
    for seed in range(40):
        problem = Recurrent((3, 1, 4, 2, 3), seed)
        path = survivors(problem, rng=RNG, merge="mean", alpha=alpha)
        assert path.choices == recursion(problem, alpha)
        assert path.score == path_score(problem, path.choices)
        total = WeightedSum([(0.0, unbounded(problem.lengths, 1)), (1.0, problem)])
        assert survivors(total, rng=RNG, merge="mean", alpha=alpha) == path
        found.add(path.choices == survivors(problem, rng=RNG).choices)
    assert found == {True, False}  # the mean is not the best in disguise


def test_the_best_of_each_candidate_may_lose_what_is_worth_more_later() -> None:
    tables = [np.array([1.0, 0]), np.zeros((2, 1)), np.array([[[0.0]], [[9.0]]])]
    assert survivors(HistoryTable(tables), rng=RNG) == Path((0, 0, 0), 1.0)


def test_drawn_hypotheses_follow_their_weights_at_scale_alpha() -> None:
    problem = Pairwise([np.array([[0.5, -0.25, 0, -np.inf]]), np.array([[0.0], [1], [0.5], [9]])])
    draws = rng(3)
    paths = [survivors(problem, rng=draws, merge="sample", alpha=1.5).choices for _ in range(1500)]
    without_last = Pairwise([problem.matrices[0][:, :3], problem.matrices[1][:3]])
    assert chi2(paths, probabilities(without_last, 1.5)) < CHI2_999[2]


@every_merge
def test_any_merge_leaves_the_only_path_and_first_candidates_where_none_is_possible(
    merge: str,
) -> None:
    only = Unary([np.array([-0.5])] * 300)
    assert survivors(only, rng=rng(), merge=merge, alpha=1.0) == Path((0,) * 300, -150.0)
    problem = Pairwise([np.array([[0, 1.0]]), np.full((2, 2), -np.inf), np.array([[0, 1.0]] * 2)])
    found = survivors(problem, rng=rng(1), merge=merge, alpha=1.0)
    assert found == Path((0, 0, 0), -np.inf)


def test_unknown_merges_a_missing_scale_and_states_without_a_mean_are_refused() -> None:
    for merge in ("sample", "mean"):
        with pytest.raises(ValueError, match=f"merging by {merge} needs a scale alpha"):
            survivors(Unary([]), rng=RNG, merge=merge)
    with pytest.raises(ValueError, match="'best'; there are max, sample, mean"):
        survivors(Unary([]), rng=RNG, merge="best")
    with pytest.raises(UnsuitedDecoder, match="have no mean; merge by max or sample"):
        survivors(HistoryTable([np.zeros(2), np.zeros((2, 2))]), rng=RNG, merge="mean", alpha=1.0)
