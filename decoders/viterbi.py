"""Exact search where a score depends on the previous sentence only.

The recursion is equations (16)–(17) of J. Eisenstein, "The Document Context Language Model" (memo,
§3.1); the algorithm is A. J. Viterbi, "Error bounds for convolutional codes", 1967,
https://doi.org/10.1109/TIT.1967.1054010.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from decoders.greedy import greedy
from decoders.problem import DocumentProblem, Path, UnsuitedDecoder, checked


def viterbi(problem: DocumentProblem) -> Path:
    """Highest-scoring path of a problem of order 0 or 1.

    Exact, also in float64: rounding keeps the order of sums, so no path has a higher score. On
    order 1 O(Σ K_{t-1} K_t) time, O(Σ K_t) memory (4 bytes each) beside one matrix, each
    `pairwise(t)` asked for once; on order 0 O(Σ K_t). Ties: the rule of `decoders.problem`.
    Deterministic. Errors: UnsuitedDecoder above order 1, ScoreError naming the sentence.
    """
    if problem.order is None or problem.order > 1:
        order = "all earlier sentences" if problem.order is None else f"{problem.order} sentences"
        raise UnsuitedDecoder(
            f"viterbi needs scores that depend on at most the previous sentence, these depend on "
            f"{order}; use beam, or exhaustive for a very small document"
        )
    if problem.order == 0:
        return greedy(problem)
    lengths = problem.lengths
    pairs = zip((1, *lengths), lengths, strict=False)
    buffer = np.empty(max((before * length for before, length in pairs), default=0))
    best = np.zeros(1)  # ψ: (K_t,) score of the best path that ends in each candidate
    backpointers: list[NDArray[np.int32]] = []
    for t, length in enumerate(lengths):
        scores = checked(problem.pairwise(t), t, shape=(best.size, length))
        # transposed, so that each maximum runs over neighbours in memory
        sums = buffer[: scores.size].reshape(length, best.size)
        np.add(scores.T, best, out=sums)
        previous = sums.argmax(axis=1)  # the first of equals: the tie rule
        best = sums[np.arange(length), previous]
        backpointers.append(previous.astype(np.int32))
    choice = int(best.argmax())
    return Path(_read_back(backpointers, choice, float(best[choice])), float(best[choice]))


def _read_back(backpointers: list[NDArray[np.int32]], last: int, score: float) -> tuple[int, ...]:
    """The path that ends in candidate `last`."""
    if score == -np.inf:  # then every path scores −inf: the rule of ties
        return (0,) * len(backpointers)
    choices = []
    for previous in reversed(backpointers):
        choices.append(last)
        last = int(previous[last])
    return tuple(choices[::-1])
