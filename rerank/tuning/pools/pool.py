"""A pool: the candidates of the tuning lists as numbers, the input of a search for weights.

Shapes: S lists, n candidates in all of them, F features.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of
from rerank.errors import RerankError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.tuning.objectives.objective import Sums

NOT_FINITE = (
    "expected finite scores to tune on, found another; give a low number in place of −inf, and "
    "smaller weights to features that are not tuned"
)


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Pool:
    """Candidates of S lists: linear features, statistics that add up, and a part that is not tuned.

    offsets: (S+1,) int64, list s is rows offsets[s]:offsets[s+1]; empty lists contribute nothing
    features: (n, F) float64, finite; searches share them where they are stored by columns
    statistics: (n, W) numbers: the nine of `rerank.metrics.bleu`, then those of other metrics
    fixed: (n,) float64, finite; score of what is not tuned (sparse features), 0 where there is none
    documents: (S,) int64, any number that identifies the document of each list; None: one document
    for all. Documents without candidates are not among the D documents
    store: where arrays made of this pool lie; no part of its value

    The score of a candidate is fixed + features · weights; of equal scores in a list the first
    candidate wins, as at decoding. A candidate takes 8 F + 44 bytes here (`narrow`,
    W = 9); the searches of `rerank.tuning.mert.ascent` add 34, and 24 for each thread.
    """

    offsets: NDArray[np.int64]
    features: NDArray[np.float64]
    statistics: Sums
    fixed: NDArray[np.float64]
    documents: NDArray[np.int64] | None = None
    store: ArrayStore = field(default=IN_MEMORY, repr=False, compare=False)
    _places: NDArray[np.int64] = field(init=False, repr=False)
    """(S,) int64, which of the D documents each list belongs to; 0 for empty lists."""
    _n_documents: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        row = _first_infinite(self.features, self.fixed)
        if row < len(self.features):
            raise RerankError(f"candidate {row} of all lists, counted from 0: {NOT_FINITE}")
        places = np.zeros(len(self.offsets) - 1, dtype=np.int64)
        if self.documents is not None:
            filled = np.diff(self.offsets) > 0
            places[filled] = np.unique(self.documents[filled], return_inverse=True)[1]
        object.__setattr__(self, "_places", places)
        object.__setattr__(self, "_n_documents", int(places.max(initial=0)) + 1)

    @property
    def n_documents(self) -> int:
        """D, at least 1."""
        return self._n_documents

    @property
    def first(self) -> Sums:
        """Summed statistics (W,) of the first candidate of every list: the baseline."""
        rows = np.where(np.diff(self.offsets) > 0, self.offsets[:-1], -1)
        return np.asarray(self.sums(rows).sum(axis=0))

    @property
    def places(self) -> NDArray[np.int64]:
        """(S,) which of the D documents each list belongs to; 0 for empty lists."""
        return self._places

    def take(self, lists: NDArray[np.bool_]) -> Pool:
        """The pool of some of the lists (S,), in their order. O(n F) time and memory."""
        sizes = np.diff(self.offsets)
        n = int(sizes[lists].sum())
        columns = self.store.large((self.features.shape[1], n), np.float64)
        statistics = self.store.large((n, self.statistics.shape[1]), self.statistics.dtype)
        fixed = self.store.large((n,), np.float64)
        for column, whole in zip(columns, self.features.T, strict=True):
            _take_lists(self.offsets, lists, whole[:, None], column[:, None])
        _take_lists(self.offsets, lists, self.statistics, statistics)
        _take_lists(self.offsets, lists, self.fixed[:, None], fixed[:, None])
        documents = None if self.documents is None else self.documents[lists]
        return Pool(offsets_of(sizes[lists]), columns.T, statistics, fixed, documents, self.store)

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (n,) under weights (F,), summed in the order of the features."""
        scores = self.store.working(self.fixed.shape, np.float64)
        scores[:] = self.fixed
        _add_products(self.features, weights, scores)
        return scores

    def choices(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The best row of every list, (S,); of equal ones the first; −1 for an empty list."""
        chosen = np.empty(len(self.offsets) - 1, dtype=np.int64)
        _choose(self.offsets, scores, chosen)
        return chosen

    def decode(self, weights: NDArray[np.float64]) -> Sums:
        """Summed statistics (D, W) of what weights (F,) choose. O(n F)."""
        return self.sums(self.choices(self.scores(weights)))

    def sums(self, choices: NDArray[np.int64]) -> Sums:
        """Summed statistics (D, W) of the chosen rows of each document, ascending. O(S W)."""
        wide = np.float64 if self.statistics.dtype.kind == "f" else np.int64
        sums = np.zeros((self._n_documents, self.statistics.shape[1]), dtype=wide)
        _add_rows(self.statistics, choices, self._places, sums)
        return sums

    def documents_of(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Document, from 0 to D − 1, of each of m things, (m,).

        Those of list s lie at offsets[s]:offsets[s + 1]; only lists with candidates have any.
        """
        if self._n_documents == 1:
            return np.zeros(int(offsets[-1]), dtype=np.int64)
        return self._places.repeat(offsets[1:] - offsets[:-1])


def narrow(statistics: Sums) -> Sums:
    """Counts in 32 bits where they fit, to save memory; other statistics as they are."""
    most = np.iinfo(np.int32).max
    if statistics.dtype.kind == "f" or np.abs(statistics).max(initial=0) > most:
        return statistics
    return statistics.astype(np.int32)


@njit(cache=True, nogil=True)
def _first_infinite(features: NDArray[np.float64], fixed: NDArray[np.float64]) -> int:
    """The first of the n rows with a number that is not finite, n if there is none."""
    first = len(fixed)
    for row in range(len(fixed)):
        if not np.isfinite(fixed[row]):
            first = row
            break
    for f in range(features.shape[1]):  # a column after the other, as they are stored
        for row in range(first):
            if not np.isfinite(features[row, f]):
                first = row
                break
    return first


@njit(cache=True, nogil=True)
def _take_lists(
    offsets: NDArray[np.int64], lists: NDArray[np.bool_], rows: Sums, taken: Sums
) -> None:
    """Fill in the rows (n, k) of some of the lists (S,), one after the other."""
    place = 0
    for s in range(len(lists)):
        if lists[s]:
            for row in range(offsets[s], offsets[s + 1]):
                for k in range(rows.shape[1]):
                    taken[place, k] = rows[row, k]
                place += 1


@njit(cache=True, nogil=True)
def _add_products(
    features: NDArray[np.float64], weights: NDArray[np.float64], scores: NDArray[np.float64]
) -> None:
    for row in range(len(scores)):
        score = scores[row]
        for f in range(len(weights)):
            score += features[row, f] * weights[f]
        scores[row] = score


@njit(cache=True, nogil=True)
def _choose(
    offsets: NDArray[np.int64], scores: NDArray[np.float64], chosen: NDArray[np.int64]
) -> None:
    for s in range(len(offsets) - 1):
        best = offsets[s]
        for row in range(offsets[s] + 1, offsets[s + 1]):
            if scores[row] > scores[best]:
                best = row
        chosen[s] = best if offsets[s] < offsets[s + 1] else -1


@njit(cache=True, nogil=True)
def _add_rows(
    statistics: Sums, choices: NDArray[np.int64], places: NDArray[np.int64], sums: Sums
) -> None:
    """Add the chosen rows (n, W) of lists to the rows of `sums` (D, W) at their places (S,)."""
    for s in range(len(choices)):
        if choices[s] >= 0:
            for k in range(statistics.shape[1]):
                sums[places[s], k] += statistics[choices[s], k]
