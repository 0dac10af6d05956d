"""Pools, what a search for weights sees of k-best lists, and tuning sets, from which they are made.

A pool is arrays: each candidate's features, and its statistics, whose sums over the chosen
candidates are what a metric needs. A tuning set is documents with features and statistics; where
features depend on the choices before a sentence, it gives another pool under each path.

Shapes: S lists, n candidates in all of them, F features, W statistics, D documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of
from rerank.errors import RerankError
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.files.compilation import njit
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.objective import Sums, sentence_bleu

NOT_FINITE = (
    "expected finite scores to tune on, found another; give a low number in place of −inf, and "
    "smaller weights to features that are not tuned"
)
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


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
    W = 9); the searches of `rerank.tuning.tuners.ascent` add 34, and 24 for each thread.
    """

    offsets: Integers
    features: Floats
    statistics: Sums
    fixed: Floats
    documents: Integers | None = None
    store: ArrayStore = field(default=IN_MEMORY, repr=False, compare=False)
    places: Integers = field(init=False, repr=False)
    """(S,) which of the D documents each list belongs to; 0 for empty lists."""
    n_documents: int = field(init=False, repr=False)
    """D, at least 1."""

    def __post_init__(self) -> None:
        finite = np.isfinite(self.fixed)
        for column in self.features.T:
            finite &= np.isfinite(column)
        if not finite.all():
            row = int(finite.argmin())
            raise RerankError(f"candidate {row} of all lists, counted from 0: {NOT_FINITE}")
        places = np.zeros(len(self.offsets) - 1, dtype=np.int64)
        if self.documents is not None:
            filled = np.diff(self.offsets) > 0
            places[filled] = np.unique(self.documents[filled], return_inverse=True)[1]
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "n_documents", int(places.max(initial=0)) + 1)

    def scores(self, weights: Floats) -> Floats:
        """Scores (n,) under weights (F,), summed in the order of the features."""
        scores = self.store.working(self.fixed.shape, np.float64)
        scores[:] = self.fixed
        add_columns(self.offsets, self.features.T, weights, scores)
        return scores

    def choices(self, scores: Floats) -> Integers:
        """The best row of every list, (S,); of equal ones the first; −1 for an empty list."""
        chosen = np.empty(len(self.offsets) - 1, dtype=np.int64)
        _choose(self.offsets, scores, chosen)
        return chosen

    def sums(self, choices: Integers) -> Sums:
        """Summed statistics (D, W) of the chosen rows of each document, ascending. O(S W)."""
        shape = (self.n_documents, self.statistics.shape[1])
        sums = np.zeros(shape, np.result_type(self.statistics, np.int64))
        _add_rows(self.statistics, choices, self.places, sums)
        return sums

    def decode(self, weights: Floats) -> Sums:
        """Summed statistics (D, W) of what weights (F,) choose. O(n F)."""
        return self.sums(self.choices(self.scores(weights)))

    @property
    def first(self) -> Sums:
        """Summed statistics (D, W) of the first candidate of every list: the baseline."""
        return self.sums(np.where(np.diff(self.offsets) > 0, self.offsets[:-1], -1))

    def take(self, lists: NDArray[np.bool_]) -> Pool:
        """The pool of some of the lists (S,), in their order. O(n F) time and memory."""
        sizes = np.diff(self.offsets)
        rows = np.flatnonzero(np.repeat(lists, sizes))
        columns = self.store.large((self.features.shape[1], len(rows)), np.float64)
        statistics = self.store.large((len(rows), self.statistics.shape[1]), self.statistics.dtype)
        fixed = self.store.large((len(rows),), np.float64)
        for column, whole in zip((*columns, fixed), (*self.features.T, self.fixed), strict=True):
            np.take(whole, rows, out=column, mode="clip")  # "raise" would make a copy first
        np.take(self.statistics, rows, axis=0, out=statistics, mode="clip")
        documents = None if self.documents is None else self.documents[lists]
        return Pool(offsets_of(sizes[lists]), columns.T, statistics, fixed, documents, self.store)


def narrow(statistics: Sums) -> Sums:
    """Counts in 32 bits where they fit, to save memory; other statistics as they are."""
    most = np.iinfo(np.int32).max
    if statistics.dtype.kind == "f" or np.abs(statistics).max(initial=0) > most:
        return statistics
    return statistics.astype(np.int32)


Choices: TypeAlias = tuple[tuple[int, ...], ...]
"""A path: the choices of each document."""


@dataclass(frozen=True, slots=True, eq=False)
class TuningSet:
    """Documents in groups that are decoded together, and the statistics of their candidates.

    statistics: (n, W) of each document: BLEU's nine, then those of other metrics
    gaps: (D, W) summed statistics of the sentences without candidates, which count as empty lines;
    one more row is that of all documents without any candidate, which are not decoded
    totals: (n,) of each document, as its list has them; NaN where it has none
    store: where the arrays of pools lie

    Bytes per candidate: 16 F + 96 here and in the pool, and 4 K more at order 1; at unbounded
    order the text, and 4 for each history that was scored.
    """

    groups: tuple[tuple[DocumentFeatures, ...], ...]
    statistics: tuple[Sums, ...]
    gaps: Sums
    totals: tuple[Floats, ...]
    store: ArrayStore = IN_MEMORY
    _pools: dict[tuple[bytes, bytes], Pool] = field(default_factory=dict, init=False, repr=False)

    @property
    def documents(self) -> tuple[DocumentFeatures, ...]:
        """All documents, in order."""
        return tuple(document for group in self.groups for document in group)

    @property
    def space(self) -> FeatureSpace:
        """The features of all documents."""
        return self.groups[0][0].space

    @property
    def first(self) -> Choices:
        """The path of the first candidates."""
        return tuple(document.first() for document in self.documents)

    @property
    def best(self) -> Choices:
        """The path of the candidates of best sentence BLEU, the first of equal ones."""
        qualities = zip(self.documents, map(sentence_bleu, self.statistics), strict=True)
        return tuple(
            tuple(int(quality[a:b].argmax()) for a, b in pairwise(document.offsets.tolist()))
            for document, quality in qualities
        )

    def take(self, numbers: Sequence[int]) -> TuningSet:
        """The documents with these numbers, in their order here, repeated as often as named.

        Those without any candidate together have the number behind the last.
        """
        times = Counter(numbers)
        groups, kept, d = [], [], 0
        for group in self.groups:
            places = [d + i for i in range(len(group)) for _ in range(times[d + i])]
            if places:
                groups.append(tuple(group[place - d] for place in places))
            kept += places
            d += len(group)
        statistics = tuple(self.statistics[place] for place in kept)
        totals = tuple(self.totals[place] for place in kept)
        gaps = self.gaps[[*kept, *([d] * times[d])]]
        return TuningSet(tuple(groups), statistics, gaps, totals, self.store)

    def sums(self, path: Choices) -> Sums:
        """Summed statistics (D, W) of a path, with one row for each of `gaps`."""
        sums = self.gaps.copy()
        rows = zip(self.documents, self.statistics, path, strict=True)
        for d, (document, statistics, choices) in enumerate(rows):
            sums[d] += statistics[document.chosen_rows(choices)].sum(axis=0)
        return sums

    @property
    def documents_of_lists(self) -> Integers:
        """Number of the document of each list of a pool, (S,): those of `gaps` come last."""
        lists = [len(document.present) for document in self.documents]
        return np.concatenate([np.repeat(np.arange(len(lists)), lists), np.arange(len(self.gaps))])

    def chosen(self, path: Choices) -> Integers:
        """Candidate of each list of a pool that is on a path, (S,)."""
        return np.concatenate([*map(np.array, path), np.zeros(len(self.gaps))]).astype(np.int64)

    def pool(self, path: Choices, tuned: Integers, start: Floats) -> Pool:
        """All candidates under a path; columns that are not tuned go into the fixed scores.

        The gaps of each document are one more list, with a single candidate without features. A
        pool of features that do not depend on the path is made once.
        """
        key = tuned.tobytes(), start.tobytes()
        if key in self._pools:
            return self._pools[key]
        held = np.setdiff1d(np.arange(len(start)), tuned)
        counts = [np.diff(document.offsets) for document in self.documents]
        n = sum(len(document.static) for document in self.documents) + len(self.gaps)
        columns = self.store.large((len(tuned), n), np.float64)
        fixed = self.store.large((n,), np.float64)
        gaps = narrow(self.gaps)
        kind = np.result_type(gaps.dtype, *{rows.dtype for rows in self.statistics})
        statistics = self.store.large((n, gaps.shape[1]), kind)
        end = 0
        for document, rows, choices in zip(self.documents, self.statistics, path, strict=True):
            begin, end = end, end + len(rows)
            features = document.under(choices)
            columns[:, begin:end] = features.T[tuned]
            with np.errstate(over="ignore", invalid="ignore"):  # the pool refuses such scores
                fixed[begin:end] = document.sparse + features[:, held] @ start[held]
            statistics[begin:end] = rows
        columns[:, end:], fixed[end:], statistics[end:] = 0.0, 0.0, gaps
        self.store.release()
        pool = Pool(
            offsets_of(np.concatenate([*counts, np.ones(len(gaps), dtype=np.int64)])),
            columns.T,
            statistics,
            fixed,
            self.documents_of_lists,
            self.store,
        )
        if all(problem.order == 0 for document in self.documents for problem in document.problems):
            self._pools[key] = pool
        return pool


@njit(cache=True, nogil=True)
def add_columns(offsets: Integers, columns: Floats, weights: Floats, scores: Floats) -> None:
    """Add weights (G,) · columns (G, n) to scores (n,), list by list: one pass through memory."""
    for s in range(len(offsets) - 1):
        for g in range(len(weights)):
            if weights[g] != 0:
                for row in range(offsets[s], offsets[s + 1]):
                    scores[row] += weights[g] * columns[g, row]


@njit(cache=True, nogil=True)
def _choose(offsets: Integers, scores: Floats, chosen: Integers) -> None:
    """Fill in the first of the best rows of each list, −1 for an empty list."""
    for s in range(len(offsets) - 1):
        best = offsets[s]
        for row in range(offsets[s] + 1, offsets[s + 1]):
            if scores[row] > scores[best]:
                best = row
        chosen[s] = best if offsets[s] < offsets[s + 1] else -1


@njit(cache=True, nogil=True)
def _add_rows(statistics: Sums, choices: Integers, places: Integers, sums: Sums) -> None:
    """Add the chosen rows (n, W) of lists to the rows of `sums` (D, W) at their places (S,)."""
    for s in range(len(choices)):
        if choices[s] >= 0:
            for k in range(statistics.shape[1]):
                sums[places[s], k] += statistics[choices[s], k]
