"""A source of features that reads documents from the last sentence to the first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from decoders.reversal import reversed_problem
from rerank.corpus.columns import reversed_lists
from rerank.corpus.kbest import KBest
from rerank.notices import Notices
from rerank.scorers import FeatureSource, ScoredDocument


class ReversedDocuments(FeatureSource):
    """The features of another source, which is given the lists of each document in reverse order.

    The context of a sentence is then what the source makes of the sentences after it; a document's
    last sentence has the start context. `decoders.reversal.reversed_problem` turns the scores back.
    """

    given_later = True

    def __init__(self, source: FeatureSource) -> None:
        super().__init__(source.name)
        self.columns, self.order = source.columns, source.order
        self.causal, self.kept = source.causal, source.kept
        self.side_information = source.side_information
        self.error, self.runs_on = source.error, source.runs_on
        self._source = source

    @property
    def digest(self) -> str:
        """Digest of the source, whose model says that it reads reversed documents."""
        return self._source.digest

    @property
    def seconds(self) -> float:
        """Time that the source has computed so far."""
        return self._source.seconds

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[ScoredDocument]:
        """Features of each document (name, lists), its sentences in their order."""
        turned = [(name, kbest.reversed()) for name, kbest in documents]
        return [
            ScoredDocument(reversed_problem(one.problem), _turned(one.columns, kbest), one.keep)
            for (_, kbest), one in zip(documents, self._source.score(turned), strict=True)
        ]

    def without_context(self, name: str, kbest: KBest) -> NDArray[np.floating]:
        """Scores (n,) in no context, in which the order of sentences is nothing."""
        return _turned(self._source.without_context(name, kbest.reversed()), kbest)

    def passes(self, k: float) -> float:
        """Cost of exact search with the source."""
        return self._source.passes(k)

    def lazily(self) -> None:
        """Have the source score only after the histories that a search reaches."""
        self._source.lazily()
        self.order = self._source.order

    def remembers(self, kbest: KBest) -> bool:
        """Whether some scores of these lists are in the cache."""
        return self._source.remembers(kbest.reversed())

    def forgetful(self) -> ReversedDocuments:
        """A copy for measuring time."""
        return ReversedDocuments(self._source.forgetful())

    def finish(self, source: str, notices: Notices) -> None:
        """Add the source's warnings."""
        self._source.finish(source, notices)

    def report(self) -> str:
        """What the source did, and in which order."""
        return f"{self._source.report()}; documents read from the last sentence to the first"

    def details(self) -> str:
        """Counters of the source's engine."""
        return self._source.details()


def _turned(columns: NDArray[np.floating], kbest: KBest) -> NDArray[np.float64]:
    """Values (n, …) of the candidates of reversed lists, in the order of the lists."""
    found = np.empty(columns.shape)
    found[reversed_lists(kbest.counts)] = columns
    return found
