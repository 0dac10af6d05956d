"""Exact search of documents whose scores look back one sentence at most, in compiled code.

The recursion of `decoders.viterbi`, for the many searches of a tuning, over matrices that are laid
out once. Its sums are those of a `WeightedSum` of the same scores but for rounding: scores of order
0 are added to those of the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.viterbi import affordable
from rerank.compilation import njit
from rerank.scorers.features import DocumentFeatures

Pairs: TypeAlias = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentChain:
    """A document's scores of order 1, beside those of its candidates alone.

    static: (n, F) features of order 0, with zeros in the columns (C,) of those of order 1
    pairs: (P,) of each of these, the values of its matrices (K_{t−1}, K_t) one after another, all
    of one type
    """

    document: DocumentFeatures
    static: NDArray[np.float64]
    columns: NDArray[np.int64]
    pairs: tuple[Pairs, ...]

    @classmethod
    def of(cls, document: DocumentFeatures) -> DocumentChain | None:
        """The chain of a document; None if a score is of another kind, or not finite.

        Matrices that are contiguous in memory are not copied.
        """
        columns, pairs, static = [], list[Pairs](), document.static
        sentences = range(len(document.present))
        for column, problem in zip(document.space.contextual, document.problems, strict=True):
            if not (problem.causal and affordable(problem) and problem.order in (0, 1)):
                return None
            if problem.order == 1:
                columns.append(column)
                pairs.append(flattened([problem.pairwise(t) for t in sentences]))
            else:
                static = static.copy() if static is document.static else static
                static[:, column] = np.concatenate([problem.unary(t) for t in sentences])
        kind = np.result_type(*pairs) if pairs else np.float64
        same = tuple(np.ascontiguousarray(values, kind) for values in pairs)
        if not pairs or not all(np.isfinite(values).all() for values in (static, *same)):
            return None
        return cls(document, static, np.array(columns, np.int64), same)

    def best(self, weights: NDArray[np.float64]) -> tuple[int, ...]:
        """The path of highest score under weights (F,), by the rule of ties of `decoders.problem`.

        O(Σ K_{t−1} K_t) time for each feature.
        """
        document = self.document
        scores = self.static @ weights + document.sparse
        kept = np.flatnonzero(weights[self.columns])
        if not len(kept):
            pairs, own = self.pairs[:1], np.zeros(1)
        else:
            pairs, own = tuple(self.pairs[c] for c in kept), weights[self.columns[kept]]
        path = np.empty(len(document.present), np.int64)
        _best_path(document.offsets.astype(np.int64), scores, pairs, own, path)
        return tuple(path.tolist())


def flattened(matrices: Sequence[Pairs]) -> Pairs:
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
    offsets: NDArray[np.int64],
    scores: NDArray[np.float64],
    pairs: tuple[Pairs, ...],
    weights: NDArray[np.float64],
    path: NDArray[np.int64],
) -> None:
    """Fill in the best path (S,); scores: (n,) of the candidates alone."""
    pointers, sums = np.zeros(len(scores), np.int32), np.empty(len(scores))
    begin = 0
    for t in range(len(offsets) - 1):
        left, right = offsets[t], offsets[t + 1]
        size = right - left
        before = left - offsets[t - 1] if t else 1
        for k in range(size):
            sums[left + k] = -np.inf
        for j in range(before):
            reached = sums[offsets[t - 1] + j] if t else 0.0
            row = begin + j * size
            for k in range(size):
                total = scores[left + k]
                for c in range(len(pairs)):
                    values = pairs[c]
                    total += values.dtype.type(weights[c]) * values[row + k]
                total += reached
                if total > sums[left + k]:  # the first of equals: the rule of ties
                    sums[left + k], pointers[left + k] = total, j
        begin += before * size
    last = len(offsets) - 2
    for t in range(last, -1, -1):
        if t == last:
            best = offsets[t]
            for row in range(offsets[t] + 1, offsets[t + 1]):
                if sums[row] > sums[best]:
                    best = row
            path[t] = best - offsets[t]
        else:
            path[t] = pointers[offsets[t + 1] + path[t + 1]]
