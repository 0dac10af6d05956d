"""Exact search of documents whose scores are tabulated, in compiled code.

The recursion of `decoders.viterbi`, for the many searches of a tuning, over tables that are laid
out once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.problem import DocumentProblem
from decoders.viterbi import affordable
from rerank.files.compilation import njit
from rerank.scorers.features import DocumentFeatures

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Table: TypeAlias = NDArray[np.floating[Any]]
LARGEST = 10**6  # scores of a document beyond order 1 that are tabulated: 8 MB of a scorer


def tabular(problem: DocumentProblem) -> bool:
    """Whether a problem's scores after every history are at hand, or few enough to tabulate."""
    if not (problem.causal and affordable(problem)):
        return False
    order, lengths = problem.order or 0, problem.lengths
    if order < 2:
        return True
    return (
        sum(math.prod(lengths[max(0, t - order) : t + 1]) for t in range(len(lengths))) <= LARGEST
    )


@dataclass(frozen=True, slots=True, eq=False)
class DocumentTables:
    """A document's scores after every history of N ≥ 1 choices, beside those of candidates alone.

    static: (n, F) features of order 0, with zeros in the columns (C,) of those of higher order
    tables: (P,) of each of these, the tables (K_{t−N}, …, K_t) one after another, all of one type
    """

    document: DocumentFeatures
    order: int
    static: Floats
    columns: Integers
    tables: tuple[Table, ...]

    @classmethod
    def of(cls, document: DocumentFeatures) -> DocumentTables | None:
        """The tables of a document; None if a score is of another kind, or not finite.

        Matrices of order 1 that are contiguous in memory are not copied, if no order is higher.
        """
        if not all(map(tabular, document.problems)):
            return None
        order = max((problem.order or 0 for problem in document.problems), default=0)
        columns, tables, static = [], list[Table](), document.static
        for column, problem in zip(document.space.contextual, document.problems, strict=True):
            if problem.order:
                columns.append(column)
                tables.append(flattened(_tabulated(problem, order)))
            else:
                static = static.copy() if static is document.static else static
                static[:, column] = np.concatenate(
                    [problem.unary(t) for t in range(len(problem.lengths))]
                )
        kind = np.result_type(*tables) if tables else np.float64
        same = tuple(np.ascontiguousarray(values, kind) for values in tables)
        if not tables or not all(np.isfinite(values).all() for values in (static, *same)):
            return None
        return cls(document, order, static, np.array(columns, np.int64), same)

    def best(self, weights: Floats) -> tuple[int, ...]:
        """The path of highest score under weights (F,), by the rule of ties of `decoders.problem`.

        O(Σ K_{t−N} ⋯ K_t) time for each feature.
        """
        document = self.document
        scores = self.static @ weights + document.sparse
        kept = np.flatnonzero(weights[self.columns])
        if not len(kept):
            tables, factors = self.tables[:1], np.zeros(1)
        else:
            tables = tuple(self.tables[c] for c in kept)
            factors = weights[self.columns[kept]]
        path = np.empty(len(document.present), np.int64)
        offsets = document.offsets.astype(np.int64)
        _best_path(np.diff(offsets), self.order, scores, tables, factors, path)
        return tuple(path.tolist())


def _tabulated(problem: DocumentProblem, order: int) -> list[Table]:
    """Scores (H_t, K_t) of each sentence after the H_t histories of `order` choices, last fastest.

    Histories that a problem of lower order cannot tell apart have equal rows.
    """
    own, lengths = problem.order or 0, problem.lengths
    spans = [math.prod(lengths[max(0, t - order) : t]) for t in range(len(lengths))]
    if own == 1:
        pairs = [problem.pairwise(t) for t in range(len(lengths))]
        if order == 1:
            return pairs
        return [np.resize(values, (spans[t], lengths[t])) for t, values in enumerate(pairs)]
    rows, states = [], problem.initial()
    for t, length in enumerate(lengths):
        scores, successors = problem.extend(states, t)
        rows.append(np.resize(scores, (spans[t], length)))
        if t + 1 < len(lengths):
            # of histories that differ in the choice that is too old now, the first
            kept = len(scores) // (lengths[t - own] if t >= own else 1)
            parents, choices = np.divmod(np.arange(kept * length), length)
            states = problem.select(successors, parents, choices)
    return rows


def flattened(matrices: Sequence[Table]) -> Table:
    """The values of matrices one after another; a view where they are contiguous in memory."""
    base, begin = matrices[0].base, matrices[0].ctypes.data
    ends = begin + np.cumsum([m.nbytes for m in matrices])
    in_place = (
        isinstance(base, np.ndarray)
        and base.ndim == 1
        and base.flags.c_contiguous
        and base.dtype == matrices[0].dtype
        and all(m.base is base and m.flags.c_contiguous for m in matrices)
        and [m.ctypes.data for m in matrices[1:]] == ends[:-1].tolist()
    )
    if in_place and isinstance(base, np.ndarray):
        first = (begin - base.ctypes.data) // base.itemsize
        return base[first : first + sum(m.size for m in matrices)]
    return np.concatenate([m.reshape(-1) for m in matrices])


@njit(cache=True, nogil=True)
def _best_path(
    lengths: Integers,
    order: int,
    scores: Floats,
    tables: tuple[Table, ...],
    weights: Floats,
    path: Integers,
) -> None:
    """Fill in the best path (S,); scores: (n,) of the candidates alone.

    A state is the last choices, the last one fastest. Each sentence adds a choice and decides the
    oldest one; after the last sentence the others are decided, the oldest first.
    """
    n, spans = len(lengths), np.ones(len(lengths) + order + 1, np.int64)
    for t in range(1, n + order + 1):
        for s in range(max(0, t - order), min(t, n)):
            spans[t] *= lengths[s]
    begins = np.zeros(n + order + 1, np.int64)
    begins[1:] = np.cumsum(spans[1:])
    decided, reached = np.zeros(begins[-1], np.int32), np.zeros(1)
    first, row = 0, 0  # of the sentence's scores, and of its values in the tables
    for t in range(n + order):
        size = lengths[t] if t < n else 1
        kept = spans[t] // lengths[t - order] if t >= order else spans[t]
        sums = np.full(spans[t + 1], -np.inf)
        pointers = decided[begins[t] : begins[t + 1]]
        for history in range(spans[t]):
            oldest, state = history // kept, history % kept * size
            for k in range(size):
                total = 0.0
                if t < n:
                    total += scores[first + k]
                    for c in range(len(tables)):
                        values = tables[c]
                        total += values.dtype.type(weights[c]) * values[row + k]
                total += reached[history]
                if total > sums[state + k]:  # the first of equals: the rule of ties
                    sums[state + k], pointers[state + k] = total, oldest
            row += size
        first += size
        reached = sums
    state = 0
    for t in range(n + order - 1, order - 1, -1):
        size = lengths[t] if t < n else 1
        kept = spans[t] // lengths[t - order]
        path[t - order] = decided[begins[t] + state]
        state = path[t - order] * kept + state // size
