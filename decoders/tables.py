"""A problem written out: a score of each candidate after every history that counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from decoders.problem import DocumentProblem, Floats, Indices, checked, expect_shape


@dataclass(frozen=True, slots=True, eq=False)
class HistoryTable(DocumentProblem):
    """Any order, written out: `tables[t]: (K_s, …, K_t)`, s = t − order, or 0 where that is less.

    Order None: s = 0, a score after every history. The state is the position of the choices
    before t in the table of sentence t, its last axis left out. O(Σ Π K) memory.
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
            expect_shape(bool(fits), t, f"({expected})", table)
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
        """Positions of the longer histories, their oldest choice forgotten where it must be."""
        states, t = successors
        positions: Indices = states[parents] * self.lengths[t] + choices
        return positions % math.prod(self.lengths[self._first(t + 1) : t + 1])

    def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
        """Sums (N,) along each path (`DocumentProblem`), O(N horizon) rows."""
        totals, rows = np.zeros(len(paths)), np.arange(len(paths))
        for s in range(t, min(t + horizon + 1, len(self.lengths))):
            histories = tuple(paths[:, self._first(s) : s].T)
            scores = np.broadcast_to(self.tables[s][histories], (len(paths), self.lengths[s]))
            totals += checked(scores, s, shape=scores.shape)[rows, paths[:, s]]
        return totals

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
