"""A tuning set: documents with their features, and the statistics of all candidates, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from decoders.result import SearchResult
from rerank.corpus.columns import offsets_of
from rerank.metrics.bleu import WIDTH
from rerank.notices import Notices
from rerank.pipeline.searching import Search, search_documents
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.document_chain import DocumentChain
from rerank.tuning.document_line_search import ChainSet
from rerank.tuning.objectives import Sums
from rerank.tuning.path_pool import Paths
from rerank.tuning.pool import Pool
from rerank.tuning.scale import Scale, fit_scale_to_bleu

Choices = tuple[tuple[int, ...], ...]  # the choices for each document


@dataclass(frozen=True, slots=True, eq=False)
class TuningSet:
    """A tuning set in memory: documents, in groups searched together, and their statistics.

    statistics: per document (n, W): BLEU's nine, then those of other metrics; gaps: (D, W) summed
    statistics of the sentences without candidates, which count as empty lines. Documents without
    any candidate are not searched: one more row of `gaps` is theirs, as of one document. Bytes a
    candidate: 16 F + 104 here and in the pool, and 4 K more at order 1; at unbounded order its
    text, and 4 for each history scored.
    """

    groups: tuple[tuple[DocumentFeatures, ...], ...]
    statistics: tuple[Sums, ...]
    gaps: Sums

    def of(self, numbers: Sequence[int]) -> TuningSet:
        """The documents of these numbers, in their order here, as often as they are named.

        Nothing is computed again. Documents without any candidate are left out.
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
        return TuningSet(tuple(groups), statistics, self.gaps[kept])

    @property
    def documents(self) -> tuple[DocumentFeatures, ...]:
        """All documents, in order."""
        return tuple(document for group in self.groups for document in group)

    @property
    def first(self) -> Choices:
        """The path of first candidates."""
        return tuple(document.first() for document in self.documents)

    def sums(self, path: Choices) -> Sums:
        """Summed statistics (D, W) of a path, one row for each of `gaps`."""
        sums = self.gaps.copy()
        rows = zip(self.documents, self.statistics, path, strict=True)
        for d, (document, statistics, choices) in enumerate(rows):
            sums[d] += statistics[document.rows(choices)].sum(axis=0)
        return sums

    def pool(self, path: Choices, tuned: NDArray[np.int64], start: NDArray[np.float64]) -> Pool:
        """All candidates under a path; columns that are not tuned count with their weight.

        The gaps of each document are one more list, of one candidate without features.
        """
        held = np.setdiff1d(np.arange(len(start)), tuned)
        features, fixed, counts = [], [], []
        for document, choices in zip(self.documents, path, strict=True):
            full = document.under(choices)
            features.append(full[:, tuned])
            fixed.append(document.sparse + full[:, held] @ start[held])
            counts.append(np.diff(document.offsets))
        more, lists = len(self.gaps), [len(count) for count in counts]
        return Pool(
            offsets_of(np.concatenate([*counts, np.ones(more, dtype=np.int64)])),
            np.concatenate([*features, np.zeros((more, len(tuned)))]),
            np.concatenate([*self.statistics, self.gaps]),
            np.concatenate([*fixed, np.zeros(more)]),
            np.concatenate([np.repeat(np.arange(len(lists)), lists), np.arange(more)]),
        )

    def chains(self) -> ChainSet:
        """The documents for a search that sees all their paths; ValueError above order 1."""
        pairs = zip(self.documents, self.statistics, strict=True)
        return ChainSet.of([DocumentChain.of(*pair) for pair in pairs], self.gaps)

    def paths(
        self,
        listed: Sequence[Sequence[Sequence[int]]],
        tuned: NDArray[np.int64],
        start: NDArray[np.float64],
    ) -> tuple[Paths, ...]:
        """Features and statistics of paths of each document, summed over its sentences."""
        held = np.setdiff1d(np.arange(len(start)), tuned)
        found = []
        for document, rows, choices in zip(self.documents, self.statistics, listed, strict=True):
            paths = np.asarray(choices, dtype=np.intp)
            full = document.along(paths)
            places = document.offsets[:-1] + paths
            fixed = document.sparse[places].sum(axis=1) + full[:, held] @ start[held]
            summed = rows[places].sum(axis=1)
            found.append(Paths(paths, full[:, tuned], summed, fixed))
        return tuple(found)

    def scale(self, path: Choices, weights: NDArray[np.float64], notices: Notices) -> Scale | None:
        """The scale of full weights (F,): all candidates scored under a path, the best by BLEU."""
        scores, sizes = [], []
        for document, choices in zip(self.documents, path, strict=True):
            scores.append(document.under(choices) @ weights + document.sparse)
            sizes.append(np.diff(document.offsets))
        offsets = offsets_of(np.concatenate(sizes))
        counts = np.concatenate([rows[:, :WIDTH] for rows in self.statistics])
        return fit_scale_to_bleu(np.concatenate(scores), counts, offsets, notices)

    def decode(self, weights: NDArray[np.float64], how: Search) -> tuple[Choices, Sums]:
        """The path that full weights (F,) choose, and its summed statistics (D, W)."""
        path = tuple(one.choices for one in self._searched(weights, how))
        return path, self.sums(path)

    def list_paths(
        self, weights: NDArray[np.float64], how: Search
    ) -> list[tuple[tuple[int, ...], ...]]:
        """The paths of each document that full weights (F,) choose, best first."""
        return [
            (one.choices, *(path.choices for path in one.paths[1:]))
            for one in self._searched(weights, how)
        ]

    def _searched(self, weights: NDArray[np.float64], how: Search) -> list[SearchResult]:
        """What a search finds in all documents; what it made the scorers compute is kept."""
        found: list[SearchResult] = []
        for group in self.groups:
            found += search_documents(group, weights, how)
            for document in group:
                document.keep()
        return found
