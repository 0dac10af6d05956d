"""A tuning set in memory: documents with their features, and the statistics of all candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of
from rerank.files.arrays import IN_MEMORY, ArrayStore
from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool, narrow
from rerank.tuning.scale import Scale, bleu_quality, fit_scale

if TYPE_CHECKING:
    from rerank.tuning.exact.line_search import ChainSet

Choices: TypeAlias = tuple[tuple[int, ...], ...]
"""The choices of each document."""


@dataclass(frozen=True, slots=True, eq=False)
class TuningSet:
    """Documents in groups that are decoded together, and the statistics of their candidates.

    statistics: (n, W) of each document: BLEU's nine, then those of other metrics
    gaps: (D, W) summed statistics of the sentences without candidates, which count as empty lines;
    one more row is that of all documents without any candidate, which are not decoded
    store: where the arrays of pools lie

    Bytes per candidate: 16 F + 88 here and in the pool, and 4 K more at order 1; at unbounded
    order the text, and 4 for each history that was scored.
    """

    groups: tuple[tuple[DocumentFeatures, ...], ...]
    statistics: tuple[Sums, ...]
    gaps: Sums
    store: ArrayStore = IN_MEMORY
    _pools: dict[tuple[bytes, bytes], Pool] = field(default_factory=dict, init=False, repr=False)

    def take(self, numbers: Sequence[int]) -> TuningSet:
        """The documents with these numbers, in their order here, repeated as often as named.

        Documents without any candidate are left out.
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
        return TuningSet(tuple(groups), statistics, self.gaps[kept], self.store)

    @property
    def documents(self) -> tuple[DocumentFeatures, ...]:
        """All documents, in order."""
        return tuple(document for group in self.groups for document in group)

    @property
    def first(self) -> Choices:
        """The path of the first candidates."""
        return tuple(document.first() for document in self.documents)

    def sums(self, path: Choices) -> Sums:
        """Summed statistics (D, W) of a path, with one row for each of `gaps`."""
        sums = self.gaps.copy()
        rows = zip(self.documents, self.statistics, path, strict=True)
        for d, (document, statistics, choices) in enumerate(rows):
            sums[d] += statistics[document.rows(choices)].sum(axis=0)
        return sums

    def pool(self, path: Choices, tuned: NDArray[np.int64], start: NDArray[np.float64]) -> Pool:
        """All candidates under a path; columns that are not tuned go into the fixed scores.

        The gaps of each document are one more list, with a single candidate without features. A
        pool that does not depend on the path is made once.
        """
        if any(document.problems for document in self.documents):
            return self._pool(path, tuned, start)
        key = tuned.tobytes(), start.tobytes()
        if key not in self._pools:
            self._pools[key] = self._pool(path, tuned, start)
        return self._pools[key]

    def _pool(self, path: Choices, tuned: NDArray[np.int64], start: NDArray[np.float64]) -> Pool:
        held = np.setdiff1d(np.arange(len(start)), tuned)
        counts = [np.diff(document.offsets) for document in self.documents]
        more, lists = len(self.gaps), [len(count) for count in counts]
        n = sum(len(document.static) for document in self.documents) + more
        columns = self.store.large((len(tuned), n), np.float64)
        fixed = self.store.large((n,), np.float64)
        gaps = narrow(self.gaps)
        kind = np.result_type(gaps.dtype, *{rows.dtype for rows in self.statistics})
        statistics = self.store.large((n, gaps.shape[1]), kind)
        end = 0
        for document, rows, choices in zip(self.documents, self.statistics, path, strict=True):
            begin, end = end, end + len(rows)
            full = document.under(choices)
            columns[:, begin:end] = full.T[tuned]
            with np.errstate(over="ignore", invalid="ignore"):  # the pool refuses such scores
                fixed[begin:end] = document.sparse + full[:, held] @ start[held]
            statistics[begin:end] = rows
        columns[:, end:], fixed[end:], statistics[end:] = 0.0, 0.0, gaps
        self.store.release()
        return Pool(
            offsets_of(np.concatenate([*counts, np.ones(more, dtype=np.int64)])),
            columns.T,
            statistics,
            fixed,
            np.concatenate([np.repeat(np.arange(len(lists)), lists), np.arange(more)]),
            self.store,
        )

    def chains(self) -> ChainSet:
        """The documents for exact line searches, of scorers of order 0 or 1."""
        from rerank.tuning.exact.chain import DocumentChain
        from rerank.tuning.exact.line_search import ChainSet

        wide = (rows.astype(np.result_type(rows, np.int64)) for rows in self.statistics)
        pairs = zip(self.documents, wide, strict=True)
        return ChainSet.of([DocumentChain.of(*pair) for pair in pairs], self.gaps)

    def scale(self, path: Choices, weights: NDArray[np.float64], notices: Notices) -> Scale | None:
        """The scale of full weights (F,), fitted to the candidates of best BLEU under a path."""
        counts = [np.diff(document.offsets) for document in self.documents]
        offsets = offsets_of(np.concatenate(counts))
        scores, quality = (self.store.working((offsets[-1],), np.float64) for _ in range(2))
        end = 0
        for document, rows, choices in zip(self.documents, self.statistics, path, strict=True):
            begin, end = end, end + len(rows)
            scores[begin:end] = document.under(choices) @ weights + document.sparse
            quality[begin:end] = bleu_quality(rows)
        self.store.release()
        return fit_scale(scores, quality, offsets, notices, self.store)
