"""Exact search: where a score depends on the last few sentences only, and of very small documents.

The recursion of `viterbi` is equations (16)–(17) of J. Eisenstein, "The Document Context Language
Model" (memo, §3.1); the algorithm is A. J. Viterbi, "Error bounds for convolutional codes", 1967,
https://doi.org/10.1109/TIT.1967.1054010. On order n > 1 its states are the last n choices.
`exhaustive` enumerates every path: the definition of the search problem, against which the other
decoders are checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import numpy as np
from numpy.typing import NDArray

from decoders.batching import Steps, batchable
from decoders.beam import backtrack, beam, full_width, greedy
from decoders.problem import DocumentProblem, Path, UnsuitedDecoder, checked, path_at

MAX_PATHS = 10**6
MAX_EXTENSIONS = 10**7  # histories × candidates at one sentence: 80 MB an array of them


def most_extensions(lengths: Sequence[int], order: int, n_best: int = 1) -> int:
    """Most histories × candidates of a sentence, `n_best` histories of the last `order` choices."""
    spans = (math.prod(lengths[max(0, t - order) : t]) for t in range(len(lengths)))
    held = map(min, (span * n_best for span in spans), accumulate(lengths, mul, initial=1))
    return max(map(mul, held, lengths), default=0)


@batchable
def viterbi(problem: DocumentProblem, *, n_best: int = 1) -> Steps[list[Path]]:
    """The `n_best` highest-scoring paths of a problem of finite order.

    Exact, also in float64: rounding keeps the order of sums. A single path up to order 1 needs no
    request: on order 1 O(Σ K_{t-1} K_t) time, O(Σ K_t) memory (4 bytes each) beside a matrix, each
    `pairwise(t)` asked for once; on order 0 O(Σ K_t). Else it is a beam search without pruning:
    `n_best` backpointers in each of the tuples of n choices, O(Σ K_{t-n} ⋯ K_t n_best) by
    partition. Ties: the rule of `decoders.problem`. Deterministic. Errors: UnsuitedDecoder where
    the order is unbounded or the cost too high; ScoreError naming the sentence.
    """
    if problem.order is None:
        raise UnsuitedDecoder(
            "viterbi needs scores that depend on the last few sentences, these depend on all "
            "earlier sentences; use beam, or exhaustive for a very small document"
        )
    if (extensions := most_extensions(problem.lengths, problem.order, n_best)) > MAX_EXTENSIONS:
        states = full_width(problem.lengths, problem.order)
        paths = f" of {n_best:,} paths each" if n_best > 1 else ""
        raise UnsuitedDecoder(
            f"viterbi on order {problem.order} would hold up to {states:,} states{paths}, and "
            f"{extensions:,} scores of a sentence (at most {MAX_EXTENSIONS:,}); keep fewer "
            "candidates, or use beam"
        )
    if n_best == 1 and problem.order == 0:
        return [greedy(problem)]
    if n_best == 1 and problem.order == 1:
        return [_first_order(problem)]
    return (yield from beam.steps(problem, width=None, n_best=n_best))


def affordable(problem: DocumentProblem, n_best: int = 1) -> bool:
    """Whether `viterbi` serves a problem: its order is finite and the cost not too high."""
    if problem.order is None or problem.on_demand:
        return False
    return most_extensions(problem.lengths, problem.order, n_best) <= MAX_EXTENSIONS


def _first_order(problem: DocumentProblem) -> Path:
    """The best path of a problem of order 1."""
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
    score = float(best[choice])
    if score == -np.inf:  # then every path scores −inf: the rule of ties
        return Path((0,) * len(lengths), score)
    return Path(tuple(backtrack(backpointers, np.array([choice]))[0].tolist()), score)


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
            f"exhaustive takes documents of at most {MAX_PATHS:,} paths, this has about "
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
