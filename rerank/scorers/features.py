"""The features of a document's candidates: those of the list and those of scorers.

Columns: the list's dense values, `total` if requested, then for each scorer its contextual feature
and its static ones. A contextual feature exists only given a path: `under(choices)` fills it in.
`without_context` and `after_texts` give it in contexts that no path has; they cost one pass over
the lists for each scorer that is not of order 0, or none from a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary, WeightedSum
from decoders.problem import DocumentProblem, ScoreError
from decoders.reversal import own_scores
from rerank.corpus.columns import Label, column_names
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, RerankError
from rerank.files.arrays import ArrayStore
from rerank.scorers import FeatureSource

TOTAL = "total"


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSpace:
    """The feature columns of a run: labels in order, and where the scorers' columns lie."""

    labels: tuple[Label, ...]
    contextual: tuple[int, ...]
    list_width: int
    total: bool

    @classmethod
    def of(
        cls, labels: Sequence[Label], scorers: Sequence[FeatureSource], *, total: bool
    ) -> FeatureSpace:
        """Columns of a list with these labels and of scorers, in this order."""
        own = (*labels, *([Label(TOTAL, 1)] if total else []))
        width = sum(label.width for label in own)
        added: list[Label] = []
        contextual: list[int] = []
        for scorer in scorers:
            contextual.append(width + len(added))
            added += [Label(name, 1) for name in (scorer.name, *scorer.columns)]
        return cls((*own, *added), tuple(contextual), width, total)

    @property
    def width(self) -> int:
        """F, number of columns."""
        return sum(label.width for label in self.labels)


@dataclass(frozen=True, slots=True, eq=False)
class DocumentFeatures:
    """One document ready for search: n candidates over its sentences that have any.

    static: (n, F) with zeros in the contextual columns; sparse: (n,) weighted sum of the
    sparse features; offsets: (S + 1,) rows of the S sentences with candidates; present:
    (S,) their numbers among the document's T sentences; keepers: the scorers' `keep`.
    """

    name: str
    space: FeatureSpace
    static: NDArray[np.float64]
    sparse: NDArray[np.float64]
    problems: tuple[DocumentProblem, ...]
    offsets: NDArray[np.int64]
    present: NDArray[np.int64]
    keepers: tuple[Callable[[], None], ...] = ()

    def stored(self, store: ArrayStore) -> DocumentFeatures:
        """These features, with arrays that `store` keeps, in memory or in files."""
        return replace(self, static=store.kept(self.static), sparse=store.kept(self.sparse))

    def keep(self) -> None:
        """Let the scorers write to the cache what the search has made them compute."""
        for keep in self.keepers:
            keep()

    def problem(self, weights: NDArray[np.float64]) -> WeightedSum:
        """The search problem under weights (F,)."""
        scores = self.static @ weights + self.sparse
        lists = [scores[a:b] for a, b in zip(self.offsets, self.offsets[1:], strict=False)]
        parts: list[tuple[float, DocumentProblem]] = [(1.0, Unary(lists))]
        for column, problem in zip(self.space.contextual, self.problems, strict=True):
            parts.append((float(weights[column]), problem))
        return WeightedSum(parts)

    def located(self, fault: ScoreError) -> RerankError:
        """An error in a search problem of this document, with scorer and sentence."""
        where = f"document {self.name!r}, sentence {self.present[fault.sentence]}"
        if fault.part:  # 0 are the static features
            column = self.space.contextual[fault.part - 1]
            where = f"scorer {column_names(self.space.labels)[column]!r}, {where}"
        where += "" if fault.candidate is None else f", candidate {fault.candidate}"
        return RerankError(f"{where} (counted from 0): {fault.fault}")

    def under(self, choices: Sequence[int]) -> NDArray[np.float64]:
        """All features (n, F) of all candidates, given the path `choices` (S,)."""
        full = self.static.copy()
        for column, problem in zip(self.space.contextual, self.problems, strict=True):
            scores = own_scores(problem, choices)
            full[:, column] = np.concatenate(scores) if scores else 0.0
        return full

    def first(self) -> tuple[int, ...]:
        """The path of first candidates."""
        return (0,) * len(self.present)

    def rows(self, choices: Sequence[int]) -> NDArray[np.int64]:
        """Row of the chosen candidate of each sentence that has candidates, (S,)."""
        return self.offsets[:-1] + np.asarray(choices, dtype=np.int64)


def prepare(
    documents: Sequence[tuple[str, KBest]],
    scorers: Sequence[FeatureSource],
    space: FeatureSpace,
    sparse_weights: Mapping[str, float],
) -> list[DocumentFeatures]:
    """Features of several documents, scored in one batch.

    InputError if `total` is requested and a line has none.
    """
    own = [_own_columns(kbest, space) for _, kbest in documents]
    scored = list(zip(*(scorer.score(documents) for scorer in scorers), strict=True))
    found = []
    for (name, kbest), columns, scores in zip(
        documents, own, scored or [()] * len(documents), strict=True
    ):
        blocks = [columns]
        for one in scores:
            blocks += [np.zeros((kbest.n, 1)), one.columns]
        present = np.flatnonzero(kbest.counts)
        features = DocumentFeatures(
            name,
            space,
            np.concatenate(blocks, axis=1),
            kbest.sparse.dot(sparse_weights),
            tuple(one.problem for one in scores),
            np.concatenate([[0], np.cumsum(kbest.counts[present])]),
            present,
            tuple(one.keep for one in scores),
        )
        found.append(features)
    return found


def _own_columns(kbest: KBest, space: FeatureSpace) -> NDArray[np.float64]:
    """The list's own features (n, …)."""
    if not space.total:
        return kbest.dense
    if kbest.totals is None:
        raise InputError(
            "expected a total on every line, because the feature 'total' is used, found none; "
            "leave it out of the features",
            source=kbest.source,
            line=kbest.line_number(0) if kbest.n else None,
        )
    return np.column_stack([kbest.dense, kbest.totals])


# Features in contexts that no path through the lists has


def have_contexts(scorers: Sequence[FeatureSource]) -> bool:
    """Whether any score depends on other sentences."""
    return any(scorer.order != 0 for scorer in scorers)


def without_null(scorers: Sequence[FeatureSource]) -> list[str]:
    """Names of the scorers that depend on other sentences and have no scores without them."""
    return [scorer.name for scorer in scorers if scorer.order != 0 and not scorer.contextless]


def without_context(
    document: DocumentFeatures, scorers: Sequence[FeatureSource], kbest: KBest
) -> NDArray[np.float64]:
    """Features (n, F) with each sentence as if it were the whole document."""
    return _scored(document, scorers, lambda one: one.without_context(document.name, kbest))


def after_texts(
    document: DocumentFeatures,
    scorers: Sequence[FeatureSource],
    kbest: KBest,
    texts: Sequence[bytes],
) -> NDArray[np.float64]:
    """Features (n, F) with given texts (T,) in place of the document's other sentences.

    Each text becomes one more candidate of its sentence, and the path of these is the context.
    Scorers of order 1 score one sentence after all candidates of the one before, unless they do so
    `lazily`.
    """
    lists, path = kbest.with_last(texts), kbest.counts[kbest.counts > 0].tolist()

    def score(scorer: FeatureSource) -> NDArray[np.floating]:
        (scored,) = scorer.score([(document.name, lists)])
        return np.concatenate([own[:-1] for own in own_scores(scored.problem, path)])

    return _scored(document, scorers, score)


def _scored(
    document: DocumentFeatures,
    scorers: Sequence[FeatureSource],
    score: Callable[[FeatureSource], NDArray[np.floating]],
) -> NDArray[np.float64]:
    """Features (n, F), contextual columns of scorers that are not of order 0 by `score`."""
    found = document.static.copy()
    columns = zip(document.space.contextual, document.problems, scorers, strict=True)
    for column, problem, scorer in columns:
        if scorer.order != 0:
            found[:, column] = score(scorer)
        else:
            found[:, column] = np.concatenate(own_scores(problem, document.first()))
    return found
