"""Sums of probabilities held as natural logarithms, draws from them, and marginals of paths.

Messages between neighbours, forward and backward, give sums and maxima over all paths of a document
of order 0 or 1: L. R. Rabiner, "A tutorial on hidden Markov models and selected applications in
speech recognition", 1989, §III, https://doi.org/10.1109/5.18626.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from decoders.problem import Array, DocumentProblem, Indices, UnsuitedDecoder, checked
from decoders.result import check_scale

Combine: TypeAlias = Callable[[Array, int], Array]  # reduces one axis: a sum or a maximum


def log_sum_exp(logs: Array, axis: int = -1) -> Array:
    """Log Σ exp(logs) along an axis, which is not empty; −inf where all are −inf."""
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(top == -np.inf, 0.0, top)
    with np.errstate(divide="ignore"):
        sums: Array = np.log(np.exp(logs - top).sum(axis=axis))
    return sums + top.squeeze(axis)


def softmax(logs: Array) -> Array:
    """exp(logs) normalised along the last axis; 0 in rows that are all −inf."""
    totals = log_sum_exp(logs)[..., None]
    normalised: Array = np.exp(logs - np.where(totals == -np.inf, 0.0, totals))
    return normalised


def effective_size(log_weights: Array, counts: Indices) -> float:
    """Effective number of particles, (Σ w)² / Σ w², where row m holds `counts[m]` equal particles.

    `log_weights: (M,)` of whole rows. 0 where all are −inf. Kong, Liu and Wong (1994), "Sequential
    imputations and Bayesian missing data problems", https://doi.org/10.1080/01621459.1994.10476469.
    """
    weights = softmax(log_weights)
    squares = float((weights**2 / counts).sum())
    return 0.0 if squares == 0 else 1 / squares


def draw(logs: Array, rng: np.random.Generator) -> Indices:
    """A column index for each row of `logs: (M, K)`, drawn with probability ∝ exp(logs[m, k]).

    By Gumbel maxima, O(M K): columns of −inf are never drawn. Rows that are all −inf give 0.
    """
    choices: Indices = (logs + rng.gumbel(size=logs.shape)).argmax(axis=-1)
    return choices


def rng_for(seed: int, document: str) -> np.random.Generator:
    """The random generator of one document, independent of the other documents of a run."""
    digest = hashlib.sha256(document.encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng([seed, *words])


def is_chain(problem: DocumentProblem) -> bool:
    """Whether the order is 0 or 1, so that sums over all paths are exact and cheap."""
    return problem.order in (0, 1) and not problem.on_demand


def marginals(problem: DocumentProblem, alpha: float) -> tuple[tuple[Array, ...], float]:
    """Probabilities (K_t,) of the candidates of each sentence, and log Z.

    Under p(path) ∝ exp(α · score), exact. O(Σ K_{t-1} K_t) time at order 1, where each matrix is
    asked for twice, O(Σ K_t) at order 0; O(Σ K_t) memory beside a matrix. Zeros where every path is
    impossible. Errors: ValueError for an invalid α, UnsuitedDecoder above order 1, ScoreError.
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
    # each row sums to Z but for rounding, and to 1 divided by its sum
    return tuple(np.exp(row - log_sum_exp(row)) for row in logs), log_z


def max_marginals(problem: DocumentProblem) -> tuple[Array, ...]:
    """Score (K_t,) of the best path through each candidate; else as `marginals`."""
    pairs = zip(forward(problem, np.max), backward(problem, np.max), strict=True)
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
        messages.append(np.resize(sums, lengths[t - 1]))  # at order 0 equal for all candidates
    return messages[::-1]


def _scaled(problem: DocumentProblem, t: int, alpha: float) -> Array:
    """α times the scores (K_{t-1}, K_t) of sentence t; (1, K_t) at order 0."""
    if not is_chain(problem):
        raise UnsuitedDecoder("sums over all paths need scores of order 0 or 1")
    if problem.order == 0:
        return alpha * checked(problem.unary(t), t, shape=(problem.lengths[t],))[None]
    shape = (problem.lengths[t - 1] if t else 1, problem.lengths[t])
    return alpha * checked(problem.pairwise(t), t, shape=shape)
