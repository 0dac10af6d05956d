"""The loop of every command that goes through documents: read, prepare, search, hand on, keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.result import NO_CANDIDATES, SearchResult
from rerank.corpus.kbest import KBest
from rerank.formats.weights import Weights, vector
from rerank.notices import Notices
from rerank.pipeline.searching import Search, search_documents
from rerank.pipeline.sources import DocumentSource, NamedLists
from rerank.scorers.features import TOTAL, DocumentFeatures, FeatureSpace

Weigh: TypeAlias = Callable[[FeatureSpace], NDArray[np.float64] | None]
NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})
_IMPOSSIBLE = "document in which no possible path was found, left with its first candidates"


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Documents that were scored and searched together.

    documents, results: features and search results of those that have candidates; weights: (F,),
    of the feature columns. Without a search, no results and no weights.
    """

    lists: Sequence[NamedLists]
    documents: Sequence[DocumentFeatures]
    results: Sequence[SearchResult]
    weights: NDArray[np.float64]

    def each(self) -> Iterator[tuple[str, KBest, DocumentFeatures | None, SearchResult]]:
        """(id, lists, features, result) of every document.

        No features without candidates; an empty result without candidates or without a search.
        """
        results = self.results or [NO_CANDIDATES] * len(self.documents)
        found = iter(zip(self.documents, results, strict=True))
        for name, kbest in self.lists:
            document, result = next(found) if kbest.n else (None, NO_CANDIDATES)
            yield name, kbest, document, result


@dataclass(frozen=True, slots=True)
class LinearModel:
    """Weights, the name of their source for messages, and the weight of features that lack one."""

    weights: Weights
    source: str
    default: float | None = None

    def run(self, source: DocumentSource, search: Search) -> Iterator[Batch]:
        """Batches of a source's documents, scored and searched under the weights."""
        search.check_weights(self.weights, self.source)
        return self._loop(source, search)

    def prepared(self, source: DocumentSource) -> Iterator[Batch]:
        """Batches of a source's documents, scored and not searched, with the weights."""
        return self._loop(source, None)

    def vector(self, space: FeatureSpace, notices: Notices) -> NDArray[np.float64]:
        """Weights (F,) of feature columns; errors as `rerank.formats.weights.vector`."""
        return vector(
            self.weights, space.labels, default=self.default, notices=notices, source=self.source
        )

    def _loop(self, source: DocumentSource, search: Search | None) -> Iterator[Batch]:
        return run_loop(
            source,
            lambda space: self.vector(space, source.notices),
            search,
            total=TOTAL in self.weights.dense,
            sparse=self.weights.sparse,
        )


def run_loop(
    source: DocumentSource,
    weigh: Weigh,
    search: Search | None = None,
    *,
    total: bool = False,
    sparse: Mapping[str, float] = NO_WEIGHTS,
    keep: bool = True,
) -> Iterator[Batch]:
    """Batches of a source's documents, scored and, where `weigh` gives weights, searched.

    weigh: weights (F,) of the feature columns, or None; called once, before anything is scored;
    total: whether the list's total is a feature; sparse: weights of sparse features. When the
    caller asks for the next batch, scores that the search computed go to the cache; not to `keep`
    them is for callers who search the documents later. Memory: a
    batch (`DocumentSource.batches`).
    """
    space: FeatureSpace | None = None
    weights: NDArray[np.float64] | None = None
    for batch in source.batches():
        filled = [(name, kbest) for name, kbest in batch if kbest.n]
        documents: list[DocumentFeatures] = []
        results: list[SearchResult] = []
        if filled:
            if space is None:  # all documents have the same labels
                space = source.space(filled[0][1], total=total)
                weights = weigh(space)
            documents = source.prepared(filled, space, sparse)
            if search is not None and weights is not None:
                with source.searching():
                    lists = [kbest for _, kbest in filled]
                    results = search_documents(documents, weights, search, lists)
                for result in results:
                    extinct = result.posterior is not None and result.posterior.extinct
                    if extinct or result.score == -np.inf:
                        source.notices.add(_IMPOSSIBLE, source=source.name)
        yield Batch(batch, documents, results, np.zeros(0) if weights is None else weights)
        if keep:
            source.finish(documents)
