"""Problems of order 0 and 1, written out: scores of each sentence, or after each candidate before.

The state is the last choice, so histories that end alike are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from decoders.problem import DocumentProblem, Floats, Indices, checked, expect_shape


class Chain(DocumentProblem):
    """A problem of order 0 or 1: the state is the last choice.

    Subclasses give `lengths`, `order` and one of `unary` and `pairwise`.
    """

    def initial(self) -> Indices:
        """Row 0 of `pairwise(0)`."""
        return np.zeros(1, dtype=np.intp)

    def extend(self, states: Indices, t: int) -> tuple[Floats, None]:
        """Rows of `pairwise(t)`, O(N K_t)."""
        return self.pairwise(t)[states], None

    def select(self, successors: None, parents: Indices, choices: Indices) -> Indices:
        """The choices themselves."""
        return choices

    def rescore(self, paths: Indices, t: int, horizon: int) -> NDArray[np.float64]:
        """Sums (N,) along each path (`DocumentProblem`), O(N horizon) beside the matrices."""
        totals, before = np.zeros(len(paths)), self.lengths[t - 1] if t else 1
        rows = paths[:, t - 1] if t else np.zeros(len(paths), dtype=np.intp)
        for s in range(t, min(t + horizon + 1, len(self.lengths))):
            shape = (before, self.lengths[s])
            totals += checked(self.pairwise(s), s, shape=shape)[rows, paths[:, s]]
            rows, before = paths[:, s], self.lengths[s]
        return totals

    def average(self, successors: None, weights: NDArray[np.float64]) -> Indices:
        """The candidates: histories that end alike are one, so their mean is themselves."""
        return np.arange(weights.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Chain):
    """Order 0: `scores[t]: (K_t,)`, whatever the other sentences say."""

    scores: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        for t, scores in enumerate(self.scores):
            expect_shape(scores.ndim == 1 and scores.size > 0, t, "(K_t,)", scores)
        object.__setattr__(self, "lengths", tuple(len(scores) for scores in self.scores))

    def unary(self, t: int) -> Floats:
        """Scores (K_t,) of sentence t."""
        return self.scores[t]


@dataclass(frozen=True, slots=True, eq=False)
class Pairwise(Chain):
    """Order 1: `matrices[t]: (K_{t-1}, K_t)`, the first of them (1, K_0)."""

    matrices: Sequence[Floats]
    lengths: tuple[int, ...] = field(init=False)
    order: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        before = 1
        for t, matrix in enumerate(self.matrices):
            fits = matrix.ndim == 2 and len(matrix) == before and matrix.size > 0
            expect_shape(fits, t, f"({before}, K_t)", matrix)
            before = matrix.shape[1]
        object.__setattr__(self, "lengths", tuple(m.shape[1] for m in self.matrices))

    def pairwise(self, t: int) -> Floats:
        """Scores (K_{t-1}, K_t) of sentence t."""
        return self.matrices[t]
