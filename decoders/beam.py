"""Search that keeps the best few document-level hypotheses at each sentence.

Equation (18) of J. Eisenstein, "The Document Context Language Model" (memo, §3.2), with ⊕ = the
`width` best; the method is B. Lowerre, "The HARPY speech recognition system", Carnegie Mellon
University, 1976.

Hypotheses are held in the order of the tie rule (`decoders.problem`), not of their scores. Then the
(K_t, N) array of extensions, one row per candidate and one column per hypothesis, is in that order
too when read row by row: the last choice first, earlier choices after it. Selection by position is
the tie rule, and no history is ever compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decoders.lockstep import Steps, alone
from decoders.problem import DocumentProblem, Indices, Path, checked


def beam(problem: DocumentProblem, *, width: int, n_best: int = 1) -> list[Path]:
    """The `n_best` highest-scoring paths among those whose prefixes all stayed in the beam.

    Serves every order. Exact on order 0 and wherever `width` covers all prefixes (`full_width`);
    no guarantee otherwise, and fewer paths than `n_best` only if the document has fewer.
    O(Σ B K_t) time beside the problem's own, O(T B) memory, B = width. Ties: the rule of
    `decoders.problem`, applied to prefixes when the beam is cut and to paths at the end.
    Deterministic. Errors: ValueError unless 1 <= n_best <= width, ScoreError naming the sentence.
    """
    return alone(problem, beam_steps(problem, width=width, n_best=n_best))


def beam_steps(problem: DocumentProblem, *, width: int, n_best: int = 1) -> Steps:
    """The search of `beam`, a step for each sentence (`decoders.lockstep`)."""
    if not 1 <= n_best <= width:
        raise ValueError(f"expected 1 <= n_best <= width, found n_best {n_best}, width {width}")
    states = problem.initial()
    totals = np.zeros(1)  # (N,) scores of the hypotheses, N <= B, in the order of the tie rule
    history: list[tuple[Indices, Indices]] = []  # of each sentence: parents (N,), choices (N,)
    for t, length in enumerate(problem.lengths):
        scores, successors = yield states, t
        scores = checked(scores, t, shape=(totals.size, length))
        extensions = np.add(scores.T, totals, order="C").ravel()  # of (K_t, N)
        kept = survivors(extensions, width)
        choices, parents = np.divmod(kept, totals.size)
        totals = extensions[kept]
        history.append((parents, choices))
        if t + 1 < len(problem.lengths):
            states = problem.select(successors, parents, choices)
    ranked = np.argsort(-totals, kind="stable")[:n_best]
    rows = _read_back(history, ranked).tolist()
    return [Path(tuple(r), s) for r, s in zip(rows, totals[ranked].tolist(), strict=True)]


def survivors(scores: NDArray[np.float64], width: int) -> Indices:
    """Ascending positions of the `width` highest scores; of equal scores the first ones.

    O(n) for `scores: (n,)` without NaN, by partition: no sort.
    """
    if scores.size <= width:
        return np.arange(scores.size)
    threshold = np.partition(scores, -width)[-width]
    kept = np.flatnonzero(scores >= threshold)
    if kept.size > width:  # too many equal the threshold: drop the last of those
        equal = np.flatnonzero(scores[kept] == threshold)
        kept = np.delete(kept, equal[width - kept.size :])
    return kept


def full_width(lengths: Sequence[int]) -> int:
    """Smallest width that makes the beam exact on any order: the number of longest prefixes."""
    return math.prod(lengths[:-1])


def _read_back(history: list[tuple[Indices, Indices]], rows: Indices) -> Indices:
    """Choices (n, T) of the hypotheses at positions `rows: (n,)` of the last sentence."""
    paths = np.empty((rows.size, len(history)), dtype=np.intp)
    for t in reversed(range(len(history))):
        parents, choices = history[t]
        paths[:, t] = choices[rows]
        rows = parents[rows]
    return paths
