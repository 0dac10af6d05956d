"""Sums and maxima over all paths of a document of order 0 or 1.

Messages between neighbours, forward and backward: L. R. Rabiner, "A tutorial on hidden Markov
models and selected applications in speech recognition", 1989, §III,
https://doi.org/10.1109/5.18626. With sums of exp(α · score) they give the marginals of
p(path) ∝ exp(α · score); with maxima the score of the best path through each candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from decoders.numerics import log_sum_exp
from decoders.posterior import check_scale
from decoders.problem import Array, DocumentProblem, UnsuitedDecoder, checked

Combine: TypeAlias = Callable[[Array, int], Array]  # reduces one axis: a sum or a maximum


def is_chain(problem: DocumentProblem) -> bool:
    """Whether the order is 0 or 1, so that sums over all paths are exact and cheap."""
    return problem.order in (0, 1)


def marginals(problem: DocumentProblem, alpha: float) -> tuple[tuple[Array, ...], float]:
    """Probabilities (K_t,) of the candidates of each sentence, and log Z.

    Exact. O(Σ K_{t-1} K_t) time at order 1, where each matrix is asked for twice, O(Σ K_t) at order
    0; O(Σ K_t) memory beside a matrix. Zeros where every path is impossible. Errors: ValueError for
    an invalid α, UnsuitedDecoder above order 1, ScoreError naming the sentence.
    """
    check_scale(alpha)
    forwards = forward(problem, log_sum_exp, alpha)
    if not forwards:
        return (), 0.0
    log_z = float(log_sum_exp(forwards[-1]))
    if log_z == -np.inf:
        return tuple(np.zeros(k) for k in problem.lengths), log_z
    backwards = backward(problem, log_sum_exp, alpha)
    logs = [before + after for before, after in zip(forwards, backwards, strict=True)]
    # each sums to Z but for rounding, and to 1 by its own sum
    return tuple(np.exp(row - log_sum_exp(row)) for row in logs), log_z


def max_marginals(problem: DocumentProblem) -> tuple[Array, ...]:
    """Score (K_t,) of the best path through each candidate of each sentence.

    Cost and errors as in `marginals`. Not bit for bit the scores of paths: the sums are not formed
    from the first sentence to the last.
    """
    pairs = zip(forward(problem, _maximum), backward(problem, _maximum), strict=True)
    return tuple(before + after for before, after in pairs)


def forward(problem: DocumentProblem, combine: Combine, alpha: float = 1.0) -> list[Array]:
    """Messages (K_t,) of each sentence: the sum or maximum over the prefixes to each candidate."""
    messages = [np.zeros(1)]
    for t in range(len(problem.lengths)):
        before = messages[-1][:, None]
        if problem.order == 0:  # the prefixes are those of every candidate
            before = combine(before, 0)[:, None]
        messages.append(combine(before + _scaled(problem, t, alpha), 0))
    return messages[1:]


def backward(problem: DocumentProblem, combine: Combine, alpha: float = 1.0) -> list[Array]:
    """Messages (K_t,) of each sentence: the sum or maximum over what follows each candidate."""
    lengths = problem.lengths
    messages = [np.zeros(lengths[-1])] if lengths else []
    for t in reversed(range(1, len(lengths))):
        sums = combine(_scaled(problem, t, alpha) + messages[-1], 1)
        messages.append(np.resize(sums, lengths[t - 1]))  # at order 0 one for all candidates
    return messages[::-1]


def _scaled(problem: DocumentProblem, t: int, alpha: float) -> Array:
    """α times the scores (K_{t-1}, K_t) of sentence t; (1, K_t) at order 0."""
    if not is_chain(problem):
        raise UnsuitedDecoder("sums over all paths need scores of order 0 or 1")
    if problem.order == 0:
        return alpha * checked(problem.unary(t), t, shape=(problem.lengths[t],))[None]
    shape = (problem.lengths[t - 1] if t else 1, problem.lengths[t])
    return alpha * checked(problem.pairwise(t), t, shape=shape)


def _maximum(values: Array, axis: int) -> Array:
    best: Array = values.max(axis=axis)
    return best
