"""Search with one document-level hypothesis for each candidate of the sentence.

Equation (18) of J. Eisenstein, "The Document Context Language Model" (memo, §3.2), as printed:
⟨h^(k), ψ^(k)⟩ = ⊕_q ⟨h^(ℓ), ψ^(ℓ) + log P(w^(k) | h^(ℓ))⟩, with q ∝ exp(α ψ) (eq. 19). The
operator ⊕ is one of `MERGES`: the best ℓ, one drawn with q, or the average. With the best it is
known as per-survivor processing: R. Raheli, A. Polydoros, C.-K. Tzou, "Per-survivor processing: a
general approach to MLSE in uncertain environments", IEEE Transactions on Communications, 1995.
"""

from __future__ import annotations

import numpy as np

from decoders.batching import Extend, Steps, batchable, follow
from decoders.beam import backtrack
from decoders.marginals import draw, log_sum_exp, softmax
from decoders.problem import DocumentProblem, Indices, Path, checked
from decoders.result import check_scale

MERGES = ("max", "sample", "mean")


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
    if merge != "max":
        if alpha is None:
            raise ValueError(f"merging by {merge} needs a scale alpha")
        check_scale(alpha)
    scale = alpha or 1.0
    states, totals = problem.initial(), np.zeros(1)
    backpointers: list[Indices] = []  # ℓ (K_t,) of each sentence
    for t, length in enumerate(problem.lengths):
        scores, successors = yield Extend(states, t)
        sums = totals[:, None] + checked(scores, t, shape=(totals.size, length))
        candidates = np.arange(length)
        # of the average, whose history is no text, the likeliest ℓ
        parents = draw(scale * sums.T, rng) if merge == "sample" else sums.argmax(axis=0)
        backpointers.append(parents)
        if merge == "mean":  # ψ = log-sum-exp at scale α
            totals = log_sum_exp(scale * sums, axis=0) / scale
        else:
            totals = sums[parents, candidates]
        if t + 1 == len(problem.lengths):
            break
        if merge == "mean":  # h̄ = Σ q h
            q = softmax(scale * sums.T).T
            q[0, q.sum(axis=0) == 0] = 1.0  # of an impossible candidate any state will do
            states = problem.average(successors, q)
        else:
            states = problem.select(successors, parents, candidates)
    if totals.max() == -np.inf:  # the rule of ties, where every path that was seen is impossible
        return (yield from follow.steps(problem, [0] * len(problem.lengths)))
    (choices,) = backtrack(backpointers, np.array([totals.argmax()])).tolist()
    return (yield from follow.steps(problem, choices))
