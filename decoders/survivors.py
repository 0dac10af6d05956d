"""Search with one document-level hypothesis for each candidate of the sentence.

Equation (18) of J. Eisenstein, "The Document Context Language Model" (memo, §3.2), as printed:
⟨h^(k), ψ^(k)⟩ = ⊕_q ⟨h^(ℓ), ψ^(ℓ) + log P(w^(k) | h^(ℓ))⟩, with q ∝ exp(α ψ) (eq. 19). The
operator ⊕ is one of `MERGES`: the best ℓ, one drawn with q, or the average. With the best it is
known as per-survivor processing: R. Raheli, A. Polydoros, C.-K. Tzou, "Per-survivor processing: a
general approach to MLSE in uncertain environments", IEEE Transactions on Communications, 1995.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decoders.lockstep import Steps, alone, along
from decoders.numerics import drawn, log_sum_exp, shares
from decoders.posterior import check_scale
from decoders.problem import DocumentProblem, Indices, Path, States, Successors, checked
from decoders.requests import Extend

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """The hypotheses ψ (K_t,) of a sentence's candidates, the ℓ (K_t,) to read back, the states."""

    totals: Array
    parents: Indices
    states: Callable[[], States]


Merge = Callable[[DocumentProblem, Successors, Array, float, np.random.Generator], Merged]


def survivors(
    problem: DocumentProblem,
    *,
    rng: np.random.Generator,
    merge: str = "max",
    alpha: float | None = None,
) -> Path:
    """The path of the best hypothesis when one is kept for each candidate (eq. 18).

    `merge`: max, sample or mean, of which the latter two need α. Serves every order, `mean` where
    states have a mean. Exact on order 0 and 1 with `max`: there it is Viterbi. With `mean` the
    state is that of no text, so the path that comes out is scored again. O(Σ K_{t-1} K_t) scores,
    as many as exact search on order 1, O(Σ K_t) memory. Ties: with `max` the rule of
    `decoders.problem` among the hypotheses kept. Random with `sample`: `rng`. Errors: ValueError
    for a merge without its α, UnsuitedDecoder, ScoreError naming the sentence.
    """
    return alone(problem, survivors_steps(problem, rng=rng, merge=merge, alpha=alpha))


def survivors_steps(
    problem: DocumentProblem,
    *,
    rng: np.random.Generator,
    merge: str = "max",
    alpha: float | None = None,
) -> Steps[Path]:
    """The search of `survivors`, a step for each sentence."""
    if merge not in MERGES:
        raise ValueError(f"no merge is called {merge!r}; there are {', '.join(MERGES)}")
    if merge in NEED_SCALE:
        if alpha is None:
            raise ValueError(f"merging by {merge} needs a scale alpha")
        check_scale(alpha)
    operator, scale = MERGES[merge], 1.0 if alpha is None else alpha  # best looks at none
    states, totals = problem.initial(), np.zeros(1)
    backpointers: list[Indices] = []
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        sums = totals[:, None] + checked(scores, t, shape=(totals.size, length))
        merged = operator(problem, successors, sums, scale, rng)
        totals = merged.totals
        backpointers.append(merged.parents)
        if t + 1 < len(problem.lengths):
            states = merged.states()
    choice = int(totals.argmax())
    choices = []
    for parents in reversed(backpointers):
        choices.append(choice)
        choice = int(parents[choice])
    if totals.max() == -np.inf:  # the rule of ties, where every path that was seen is impossible
        choices = [0] * len(choices)
    return (yield from along(problem, choices[::-1]))


def best(
    problem: DocumentProblem,
    successors: Successors,
    sums: Array,
    alpha: float,
    rng: np.random.Generator,
) -> Merged:
    """⊕ = max: of `sums: (N, K_t)` the first best ℓ for each candidate."""
    return _taken(problem, successors, sums, sums.argmax(axis=0))


def sample(
    problem: DocumentProblem,
    successors: Successors,
    sums: Array,
    alpha: float,
    rng: np.random.Generator,
) -> Merged:
    """⊕ = random: an ℓ for each candidate, with probability ∝ exp(α · sum)."""
    return _taken(problem, successors, sums, drawn(alpha * sums.T, rng))


def mean(
    problem: DocumentProblem,
    successors: Successors,
    sums: Array,
    alpha: float,
    rng: np.random.Generator,
) -> Merged:
    """⊕ = average: h̄ = Σ q h and ψ = log-sum-exp at scale α; the likeliest ℓ is read back."""
    q = shares(alpha * sums.T).T
    q[0, q.sum(axis=0) == 0] = 1.0  # of an impossible candidate any state will do
    totals = log_sum_exp(alpha * sums, axis=0) / alpha
    return Merged(totals, sums.argmax(axis=0), lambda: problem.average(successors, q))


MERGES: Mapping[str, Merge] = {"max": best, "sample": sample, "mean": mean}
NEED_SCALE = frozenset({"sample", "mean"})


def _taken(
    problem: DocumentProblem, successors: Successors, sums: Array, parents: Indices
) -> Merged:
    """One hypothesis ℓ for each candidate."""
    columns = np.arange(sums.shape[1])
    totals = sums[parents, columns]
    return Merged(totals, parents, lambda: problem.select(successors, parents, columns))
