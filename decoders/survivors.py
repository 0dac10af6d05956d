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

from decoders.batching import Extend, Steps, batchable, follow
from decoders.beam import backtrack
from decoders.marginals import draw, log_sum_exp, softmax
from decoders.problem import Array, DocumentProblem, Indices, Path, States, Successors, checked
from decoders.result import check_scale


@batchable
def survivors(
    problem: DocumentProblem,
    *,
    rng: np.random.Generator,
    merge: str = "max",
    alpha: float | None = None,
) -> Steps[Path]:
    """The path of the best hypothesis when one is kept for each candidate (eq. 18).

    `merge`: max, sample or mean, of which the latter two need α. Serves every order, `mean` where
    states have a mean. Exact on order 0 and 1 with `max`: there it is Viterbi. With `mean` no text
    has the state, so the path that comes out is scored again. O(Σ K_{t-1} K_t) scores, as many as
    exact search on order 1, O(Σ K_t) memory. Ties: with `max` the rule of `decoders.problem` among
    the hypotheses kept. Random with `sample`: `rng`. Errors: ValueError for a merge without its α,
    UnsuitedDecoder, ScoreError naming the sentence.
    """
    if merge not in MERGES:
        raise ValueError(f"no merge is called {merge!r}; there are {', '.join(MERGES)}")
    if merge in NEED_SCALE:
        if alpha is None:
            raise ValueError(f"merging by {merge} needs a scale alpha")
        check_scale(alpha)
    states, totals = problem.initial(), np.zeros(1)
    backpointers: list[Indices] = []
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        sums = totals[:, None] + checked(scores, t, shape=(totals.size, length))
        merged = MERGES[merge](Extensions(problem, successors, sums, alpha or 1.0, rng))
        totals = merged.totals
        backpointers.append(merged.parents)
        if t + 1 < len(problem.lengths):
            states = merged.states()
    if totals.max() == -np.inf:  # the rule of ties, where every path that was seen is impossible
        return (yield from follow.steps(problem, [0] * len(problem.lengths)))
    (choices,) = backtrack(backpointers, np.array([totals.argmax()])).tolist()
    return (yield from follow.steps(problem, choices))


@dataclass(frozen=True, slots=True, eq=False)
class Extensions:
    """All extensions of N hypotheses by the K_t candidates of a sentence.

    sums: (N, K_t) scores of the longer hypotheses.
    """

    problem: DocumentProblem
    successors: Successors
    sums: Array
    alpha: float
    rng: np.random.Generator

    def best(self) -> Hypotheses:
        """⊕ = max: the first best ℓ for each candidate."""
        return self._keep(self.sums.argmax(axis=0))

    def sample(self) -> Hypotheses:
        """⊕ = random: an ℓ for each candidate, drawn with probability ∝ exp(α · sum)."""
        return self._keep(draw(self.alpha * self.sums.T, self.rng))

    def mean(self) -> Hypotheses:
        """⊕ = average: h̄ = Σ q h, ψ = log-sum-exp at scale α; backpointers to the likeliest ℓ."""
        q = softmax(self.alpha * self.sums.T).T
        q[0, q.sum(axis=0) == 0] = 1.0  # of an impossible candidate any state will do
        totals = log_sum_exp(self.alpha * self.sums, axis=0) / self.alpha
        parents = self.sums.argmax(axis=0)
        return Hypotheses(totals, parents, lambda: self.problem.average(self.successors, q))

    def _keep(self, parents: Indices) -> Hypotheses:
        """For each candidate the extension of one hypothesis, `parents: (K_t,)`."""
        columns = np.arange(self.sums.shape[1])
        totals, select = self.sums[parents, columns], self.problem.select
        return Hypotheses(totals, parents, lambda: select(self.successors, parents, columns))


@dataclass(frozen=True, slots=True, eq=False)
class Hypotheses:
    """One hypothesis for each candidate: scores ψ (K_t,), backpointers ℓ (K_t,) and the states."""

    totals: Array
    parents: Indices
    states: Callable[[], States]


MERGES: Mapping[str, Callable[[Extensions], Hypotheses]] = {
    "max": Extensions.best,
    "sample": Extensions.sample,
    "mean": Extensions.mean,
}
NEED_SCALE = frozenset({"sample", "mean"})
