"""A document as a chain of sentences, in which features score every path, without a pool.

A path takes one candidate of each of T sentences. Its score is linear in the weights:

    score(k) = Σ_t (fixed + static · weights)[k_t] + Σ_t Σ_c weight_c · pairs_c[t][k_{t−1}, k_t].

Static features are those of a candidate alone; a contextual feature c looks at the candidate before
as well (order 1). So along a direction each path is a line, and there are ∏ K_t of them.

Shapes: T ≥ 1 sentences with candidates, K_t of each, n in all, F features, C contextual ones of
them, W statistics. Pairs of sentence t come after those of sentence t−1, rows are candidates
before; the first sentence has one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.errors import RerankError
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import NOT_FINITE

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class DocumentChain:
    """The candidates of a document as numbers, their pairs with those before, their statistics.

    offsets: (T+1,) int64, sentence t is rows offsets[t]:offsets[t+1], at least one
    columns: (F, n) float64, finite; rows of the contextual features are ignored
    fixed: (n,) float64, finite; score of what is not tuned
    statistics: (n, W) numbers that add up over sentences, as in `Pool`
    contextual: (C,) int64, which features look at the candidate before
    pairs: for each of them all its values (Σ K_{t−1} K_t,), float32 or float64, finite
    (RerankError for scores that are not)
    """

    offsets: NDArray[np.int64]
    columns: NDArray[np.float64]
    fixed: NDArray[np.float64]
    statistics: Sums
    contextual: NDArray[np.int64]
    pairs: tuple[Floats, ...]
    couplings: Couplings = field(init=False, repr=False)

    def __post_init__(self) -> None:
        static = np.setdiff1d(np.arange(len(self.columns)), self.contextual)
        sums = [self.fixed, *(self.columns[f] for f in static), *self.pairs]
        if not all(np.isfinite(values).all() for values in sums):
            raise RerankError(NOT_FINITE)
        object.__setattr__(self, "couplings", Couplings.of(self.offsets, self.pairs))

    @classmethod
    def of(cls, document: DocumentFeatures, statistics: Sums) -> DocumentChain:
        """A document whose scorers are of order 0 or 1, and the statistics (n, W) of its rows.

        Pairs that are contiguous in memory are not copied.
        """
        columns = np.ascontiguousarray(document.static.T)
        contextual, pairs, lengths = [], [], np.diff(document.offsets)
        for column, problem in zip(document.space.contextual, document.problems, strict=True):
            if problem.order == 0:
                columns[column] = np.concatenate([problem.unary(t) for t in range(len(lengths))])
            else:
                contextual.append(column)
                pairs.append(flattened([problem.pairwise(t) for t in range(len(lengths))]))
        which = np.array(contextual, dtype=np.int64)
        offsets = document.offsets.astype(np.int64)
        return cls(offsets, columns, document.sparse, statistics, which, tuple(pairs))

    def unary(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n,) of the candidates alone under weights (F,), `fixed` included. O(n F)."""
        return self.fixed + self.slopes(weights)

    def slopes(self, direction: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a step of 1 along a direction (F,) adds to `unary`, (n,). O(n) a feature in it."""
        total = np.zeros(len(self.fixed))
        for f in np.setdiff1d(np.flatnonzero(direction), self.contextual):
            total += direction[f] * self.columns[f]
        return total

    def squares(self) -> NDArray[np.float64]:
        """Summed squared distances (F,) of values from the mean of their sentence.

        The pairs of a contextual feature have a total weight of K_t, whatever their number.
        """
        sizes, squares = np.diff(self.offsets), np.zeros(len(self.columns))
        for f, column in enumerate(self.columns):
            away = column - np.repeat(column[self.offsets[:-1]], sizes)  # equal values: 0
            mean = np.add.reduceat(away, self.offsets[:-1]) / sizes
            squares[f] = ((away - np.repeat(mean, sizes)) ** 2).sum()
        squares[self.contextual] = self.couplings.squares
        return squares


def flattened(matrices: Sequence[Floats]) -> Floats:
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


@dataclass(frozen=True, slots=True, eq=False)
class Couplings:
    """Bounds on how much the neighbouring candidates change what a candidate adds to the score.

    Pairs are split as p[j, k] = mean of column k + (mean of row j − mean of all) + r[j, k]. What
    candidate k of sentence t adds, as against another one of t in the same surroundings, is
    centre[k] (means where k is the column, and where it is the row in sentence t+1) and two r.

    centre: (C, n); low ≤ 0 ≤ high: (C, n), bounds on the sum of the two r
    squares: (C,) summed squared distances of pairs from the mean of their matrix
    """

    centre: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    squares: NDArray[np.float64]

    @classmethod
    def of(cls, offsets: NDArray[np.int64], pairs: Sequence[Floats]) -> Couplings:
        """Couplings of each feature's pairs. O(C Σ K_{t−1} K_t)."""
        shape = (len(pairs), int(offsets[-1]))
        centre, low, high = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        squares = np.array(
            [_couplings(offsets, flat, centre[c], low[c], high[c]) for c, flat in enumerate(pairs)]
        )
        return cls(centre, low, high, squares)


@njit(cache=True, nogil=True)
def _couplings(
    offsets: NDArray[np.int64],
    pairs: Floats,
    centre: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> float:
    """Fill in the couplings of one feature (they come as zeros); return its squares."""
    squares, begin = 0.0, 0
    for t in range(len(offsets) - 1):
        before = offsets[t] - offsets[t - 1] if t else 1
        size = offsets[t + 1] - offsets[t]
        block = pairs[begin : begin + before * size].reshape((before, size))
        begin += before * size
        columns, rows = np.zeros(size), np.zeros(before)
        for j in range(before):
            for k in range(size):
                columns[k] += block[j, k]
                rows[j] += block[j, k]
        columns /= before
        rows /= size
        mean = rows.sum() / before
        least, most, square = np.zeros(size), np.zeros(size), 0.0
        for j in range(before):
            row_least = row_most = 0.0
            for k in range(size):
                r = block[j, k] - columns[k] - (rows[j] - mean)
                least[k], most[k] = min(least[k], r), max(most[k], r)
                row_least, row_most = min(row_least, r), max(row_most, r)
                square += (block[j, k] - mean) ** 2
            if t:
                row = offsets[t - 1] + j
                centre[row] += rows[j] - mean
                low[row] += row_least
                high[row] += row_most
        for k in range(size):
            centre[offsets[t] + k] += columns[k]
            low[offsets[t] + k] += least[k]
            high[offsets[t] + k] += most[k]
        squares += square / before
    return squares
