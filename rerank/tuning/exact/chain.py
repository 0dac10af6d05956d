"""A document as a chain of sentences, in which features score every path, without a pool.

A path takes one candidate of each of S sentences. Its score is linear in the weights:

    score(k) = Σ_t (fixed + static · weights)[k_t] + Σ_t Σ_c weight_c · pairs_c[t][k_{t−1}, k_t].

Static features are those of a candidate alone; a contextual feature c looks at the candidate before
as well (order 1). So along a direction each path is a line, and there are ∏ K_t of them.

A candidate is dominated if no best path takes it, in any context. In any context candidate k adds
between lower(k) and upper(k) to the score: its own score, the means of its pairs, and their least
or greatest deviation (`DocumentChain`). If upper(k) < lower(k′) for some k′ of the same sentence, a
path through k gains by k′. Along a direction lower is concave and upper convex in the step, so on
an interval their chords are bounds: k is dominated if its chord lies below the chord of a k′
everywhere, or below the higher one of two such chords. This costs O(n) for each interval, while the
pairs, a hundred times as many, are not touched.

Shapes: S ≥ 1 sentences with candidates, K_t of each, n in all, F features, C contextual ones of
them, W statistics. Pairs of sentence t come after those of sentence t−1, rows are candidates
before; the first sentence has one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit
from rerank.errors import RerankError
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.objective import Sums
from rerank.tuning.pool import NOT_FINITE

Floats = NDArray[np.floating[Any]]
Affine: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Values at step 0, and what a step of 1 adds."""
_MARGIN = 2.0**-40  # relative to the scores; for nearer candidates the difference may be rounding


@dataclass(frozen=True, slots=True, eq=False)
class DocumentChain:
    """The candidates of a document as numbers, their pairs with those before, their statistics.

    offsets: (S+1,) int64, sentence t is rows offsets[t]:offsets[t+1], at least one
    columns: (F, n) float64, finite; rows of the contextual features are ignored
    fixed: (n,) float64, finite; score of what is not tuned
    statistics: (n, W) numbers that add up over sentences, as in `Pool`
    contextual: (C,) int64, which features look at the candidate before
    pairs: for each of them all its values (Σ K_{t−1} K_t,), float32 or float64, finite
    (RerankError for scores that are not)

    Bounds on how much the neighbouring candidates change what a candidate adds to the score: pairs
    are split as p[j, k] = mean of column k + (mean of row j − mean of all) + r[j, k]. What
    candidate k of sentence t adds, as against another one of t in the same surroundings, is
    centre[k] (means where k is the column, and where it is the row in sentence t+1) and two r.
    centre: (C, n); low ≤ 0 ≤ high: (C, n), bounds on the sum of the two r
    pair_squares: (C,) summed squared distances of pairs from the mean of their matrix
    """

    offsets: NDArray[np.int64]
    columns: NDArray[np.float64]
    fixed: NDArray[np.float64]
    statistics: Sums
    contextual: NDArray[np.int64]
    pairs: tuple[Floats, ...]
    centre: NDArray[np.float64] = field(init=False, repr=False)
    low: NDArray[np.float64] = field(init=False, repr=False)
    high: NDArray[np.float64] = field(init=False, repr=False)
    pair_squares: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        static = np.setdiff1d(np.arange(len(self.columns)), self.contextual)
        sums = [self.fixed, *(self.columns[f] for f in static), *self.pairs]
        if not all(np.isfinite(values).all() for values in sums):
            raise RerankError(NOT_FINITE)
        centre, low, high = np.zeros((3, len(self.pairs), int(self.offsets[-1])))
        squares = [
            _couplings(self.offsets, flat, centre[c], low[c], high[c])
            for c, flat in enumerate(self.pairs)
        ]
        made = {"centre": centre, "low": low, "high": high, "pair_squares": np.array(squares)}
        for name, value in made.items():
            object.__setattr__(self, name, value)

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
        squares[self.contextual] = self.pair_squares
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


class CandidateSubset(NamedTuple):
    """Some rows (m,) of a document, ascending; sentence t has those of offsets[t]:offsets[t+1]."""

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where the pairs of each sentence begin, one after another, (S+1,)."""
        sizes = np.diff(self.offsets)
        return np.concatenate([[0], np.cumsum(sizes * np.concatenate([[1], sizes])[:-1])])


def undominated(
    chain: DocumentChain,
    candidates: CandidateSubset,
    unary: Affine,
    pair: Affine,
    box: tuple[float, float],
) -> CandidateSubset:
    """Those of the candidates that a best path may take for some step in the box.

    unary: scores (n,) of the candidates alone at step 0, and what a step of 1 adds; pair: weights
    (C,) of the contextual features at step 0, and what a step of 1 adds. Of every sentence with
    candidates one stays; of equal ones all do. O(m C) for m candidates.
    """
    rows, offsets = np.empty_like(candidates.rows), np.zeros_like(candidates.offsets)
    ranges = (chain.centre, chain.low, chain.high)
    _undominated(candidates, unary, pair, ranges, box, (rows, offsets))
    return CandidateSubset(rows[: offsets[-1]], offsets)


@njit(cache=True, nogil=True)
def _undominated(
    candidates: CandidateSubset,
    unary: Affine,
    pair: Affine,
    ranges: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    box: tuple[float, float],
    kept: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> None:
    """Fill in `kept` = (rows, offsets)."""
    longest, offsets = 0, candidates.offsets
    for t in range(len(offsets) - 1):
        longest = max(longest, offsets[t + 1] - offsets[t])
    lower, upper, m = np.empty((2, longest)), np.empty((2, longest)), 0
    for t in range(len(offsets) - 1):
        rows = candidates.rows[offsets[t] : offsets[t + 1]]
        for side in range(2):
            for i in range(len(rows)):
                lower[side, i] = unary[0][rows[i]] + box[side] * unary[1][rows[i]]
                upper[side, i] = lower[side, i]
            for c in range(len(pair[0])):
                weight = pair[0][c] + box[side] * pair[1][c]
                least, most = ranges[1][c], ranges[2][c]
                if weight < 0:
                    least, most = most, least
                for i in range(len(rows)):
                    lower[side, i] += weight * (ranges[0][c, rows[i]] + least[rows[i]])
                    upper[side, i] += weight * (ranges[0][c, rows[i]] + most[rows[i]])
        if len(rows):
            m = _above(lower[:, : len(rows)], upper[:, : len(rows)], rows, kept[0], m)
        kept[1][t + 1] = m


@njit(cache=True, nogil=True)
def _above(
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    rows: NDArray[np.int64],
    kept: NDArray[np.int64],
    m: int,
) -> int:
    """Append rows whose upper chord reaches the two best lower chords; the number of rows then.

    The higher of the two chords less a third is convex with a corner where they cross, so its
    least value is there or at an end.
    """
    first, last = lower[0].argmax(), lower[1].argmax()
    falls = lower[0, first] - lower[0, last]
    rises = lower[1, last] - lower[1, first]
    share = falls / (falls + rises) if falls + rises > 0 else 0.0
    corner = (1 - share) * lower[0, first] + share * lower[1, first]
    for i in range(lower.shape[1]):
        middle = (1 - share) * upper[0, i] + share * upper[1, i]
        margin = _MARGIN * (abs(upper[0, i]) + abs(upper[1, i]) + abs(corner))
        kept[m] = rows[i]
        m += (
            upper[0, i] + margin >= lower[0, first]
            or upper[1, i] + margin >= lower[1, last]
            or middle + margin >= corner
        )
    return m
