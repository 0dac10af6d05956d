"""Problems whose scores are given as arrays: order 0, order 1, or any order.

`Unary` has a vector per sentence, `Pairwise` a matrix per pair of neighbours, `HistoryTable` an
array with an axis for each sentence of the history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from decoders.problem import Array, DocumentProblem, Floats, Indices, ScoreError, checked


class Chain(DocumentProblem):
    """A problem of order 0 or 1; the state is the last choice, so it merges equal histories.

    Subclasses give `lengths`, `order` and one of `unary` and `pairwise`.
    """

    def initial(self) -> Indices:
        """The state before the first sentence: row 0 of `pairwise(0)`."""
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Floats, None]:
        """Rows of `pairwise(t)`, O(N K_t)."""
        return self.pairwise(t)[states], None

    def select(self, successors: None, parents: Indices, choices: Indices) -> Indices:
        """The choices themselves."""
        return choices

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) along each path (`DocumentProblem`), O(N horizon) beside the matrices."""
        totals, before = np.zeros(len(paths)), self.lengths[t - 1] if t else 1
        rows = paths[:, t - 1] if t else np.zeros(len(paths), dtype=np.intp)
        for s in range(t, min(t + horizon + 1, len(self.lengths))):
            shape = (before, self.lengths[s])
            totals += checked(self.pairwise(s), s, shape=shape)[rows, paths[:, s]]
            rows, before = paths[:, s], self.lengths[s]
        return totals

    def average(self, successors: None, weights: Array) -> Indices:
        """The candidates: all histories that end in a candidate share its state."""
        return np.arange(weights.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Chain):
    """A problem of order 0: `scores[t]: (K_t,)`, independent of the other sentences."""

    scores: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        for t, scores in enumerate(self.scores):
            _check_shape(scores.ndim == 1 and scores.size > 0, t, "(K_t,)", scores)
        object.__setattr__(self, "lengths", tuple(len(scores) for scores in self.scores))

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t."""
        return self.scores[t]


@dataclass(frozen=True, slots=True, eq=False)
class Pairwise(Chain):
    """A problem of order 1: `matrices[t]: (K_{t-1}, K_t)`, the first of them (1, K_0)."""

    matrices: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        before = 1
        for t, matrix in enumerate(self.matrices):
            fits = matrix.ndim == 2 and len(matrix) == before and matrix.size > 0
            _check_shape(fits, t, f"({before}, K_t)", matrix)
            before = matrix.shape[1]
        object.__setattr__(self, "lengths", tuple(m.shape[1] for m in self.matrices))

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of sentence t."""
        return self.matrices[t]


@dataclass(frozen=True, slots=True, eq=False)
class HistoryTable(DocumentProblem):
    """A problem of any order: `tables[t]: (K_s, …, K_t)` with s = max(0, t − order).

    With order None s is 0: a score after every history. The state is the position of the choices
    before t in the table of sentence t, without its last axis. O(Σ Π K) memory.
    """

    tables: Sequence[Floats]
    order: int | None = None
    lengths: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        lengths: tuple[int, ...] = ()
        for t, table in enumerate(self.tables):
            window = lengths[self._first(t) :]
            fits = table.ndim == len(window) + 1 and table.shape[:-1] == window and table.size
            expected = ", ".join((*map(str, window), "K_t"))
            _check_shape(bool(fits), t, f"({expected})", table)
            lengths += table.shape[-1:]
        object.__setattr__(self, "lengths", lengths)

    def initial(self) -> Indices:
        """The empty history."""
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Floats, tuple[Indices, int]]:
        """Rows of the table of sentence t, O(N K_t)."""
        rows = self.tables[t].reshape(-1, self.lengths[t])
        return rows[states], (states, t)

    def select(
        self, successors: tuple[Indices, int], parents: Indices, choices: Indices
    ) -> Indices:
        """Positions of the longer histories, without choices beyond the order."""
        states, t = successors
        positions: Indices = states[parents] * self.lengths[t] + choices
        return positions % math.prod(self.lengths[self._first(t + 1) : t + 1])

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t; order 0 only."""
        return self.tables[t] if self.order == 0 else DocumentProblem.unary(self, t)

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of sentence t; order 0 and 1 only."""
        if self.order == 1:
            return self.tables[t].reshape(-1, self.lengths[t])
        return DocumentProblem.pairwise(self, t)

    def _first(self, t: int) -> int:
        """The first sentence that the scores of sentence t depend on."""
        return 0 if self.order is None else max(0, t - self.order)


def _check_shape(fits: bool, t: int, shape: str, scores: Floats) -> None:
    """Raises ScoreError unless the array given for sentence t fits the arrays before it."""
    if not fits:
        fault = f"expected scores of shape {shape} with K_t >= 1, found {scores.shape}"
        raise ScoreError(fault, sentence=t)
