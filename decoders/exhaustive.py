"""Every path of a very small document: its scores written out, and search by enumeration.

The definition of the search problem, against which the other decoders are checked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from decoders.problem import (
    DocumentProblem,
    Floats,
    Indices,
    Path,
    ScoreError,
    UnsuitedDecoder,
    checked,
)

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
            f"10^{magnitude}; use viterbi on order 0 and 1, beam on any order"
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
    return [Path(_choices(n, lengths), float(totals[n])) for n in positions]


def _choices(position: int, lengths: Sequence[int]) -> tuple[int, ...]:
    """The path at a position of the flat (K_{T-1}, …, K_0) array, whose last axis is sentence 0."""
    choices = []
    for length in lengths:
        position, choice = divmod(position, length)
        choices.append(choice)
    return tuple(choices)


@dataclass(frozen=True, slots=True, eq=False)
class HistoryTable(DocumentProblem):
    """Unbounded order, written out: `tables[t]: (K_0, …, K_t)`, a score after every history.

    The state is the position of the history in its table.
    """

    tables: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: None = field(init=False, default=None)

    def __post_init__(self) -> None:
        shape: tuple[int, ...] = ()
        for t, table in enumerate(self.tables):
            if table.ndim != t + 1 or table.shape[:-1] != shape or not table.size:
                fault = f"expected scores of shape {(*shape, 'K_t')}, found {table.shape}"
                raise ScoreError(fault, sentence=t)
            shape = table.shape
        object.__setattr__(self, "lengths", shape)

    def initial(self) -> Indices:
        """The empty history."""
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Floats, tuple[Indices, int]]:
        """Rows of the table of sentence t, O(N K_t)."""
        rows = self.tables[t].reshape(-1, self.lengths[t])
        return rows[states], (states, self.lengths[t])

    def select(
        self, successors: tuple[Indices, int], parents: Indices, choices: Indices
    ) -> Indices:
        """Positions of the longer histories."""
        states, length = successors
        return states[parents] * length + choices
