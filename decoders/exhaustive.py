"""Search that enumerates every path of a very small document.

The definition of the search problem, against which the other decoders are checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from decoders.problem import DocumentProblem, Path, UnsuitedDecoder, checked

MAX_PATHS = 10**6


def exhaustive(problem: DocumentProblem, *, n_best: int = 1) -> list[Path]:
    """The `n_best` highest-scoring paths of all (fewer if the document has fewer).

    Exact on every order. O(Π K_t) time, memory and states. Ties: the rule of `decoders.problem`;
    totals are kept in its order, (K_t, …, K_0) row by row, and sorted stably. Deterministic.
    Errors: UnsuitedDecoder above MAX_PATHS paths, ScoreError naming the sentence.
    """
    lengths = problem.lengths
    if n_best < 1:
        raise ValueError(f"expected n_best >= 1, found {n_best}")
    if math.prod(lengths) > MAX_PATHS:
        magnitude = int(sum(map(math.log10, lengths)))
        raise UnsuitedDecoder(
            f"exhaustive takes documents of at most {MAX_PATHS:,} paths, this one has about "
            f"10^{magnitude}; use viterbi on finite orders, beam on any"
        )
    states = problem.initial()
    totals = np.zeros(1)  # (N,) scores of all N = K_0 ⋯ K_{t-1} prefixes
    for t, length in enumerate(lengths):
        scores, successors = problem.extend(states, t)
        scores = checked(scores, t, shape=(totals.size, length))
        choices, parents = np.divmod(np.arange(scores.size), totals.size)
        totals = np.add(scores.T, totals, order="C").ravel()
        if t + 1 < len(lengths):
            states = problem.select(successors, parents, choices)
    positions = np.argsort(-totals, kind="stable")[:n_best].tolist()
    return [Path(path_at(n, lengths), float(totals[n])) for n in positions]


def path_at(position: int, lengths: Sequence[int]) -> tuple[int, ...]:
    """The path at a position of all Π K_t, in the order of the tie rule (`decoders.problem`).

    That is the flat (K_{T-1}, …, K_0) array, whose last axis is sentence 0.
    """
    choices = []
    for length in lengths:
        position, choice = divmod(position, length)
        choices.append(choice)
    return tuple(choices)
