"""The features of a document's candidates: those of the list, and those of scorers, their sources.

Columns: the list's dense values, `total` if requested, then for each scorer its contextual feature
and its static ones. A contextual feature exists only given a path: `under(choices)` fills it in.
`without_context` and `after_texts` give it in contexts that no path has; they cost one pass over
the lists for each scorer that is not of order 0, or none from a cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary, WeightedSum
from decoders.problem import DocumentProblem, ScoreError
from decoders.reversal import own_scores
from rerank.corpus.columns import Label, column_names, offsets_of
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import InputError, RerankError
from rerank.files.arrays import ArrayStore
from rerank.notices import Notices
from rerank.scorers import TOTAL


@dataclass(frozen=True, slots=True, eq=False)
class ScoredDocument:
    """Scores of one document's n candidates by one source of features.

    problem: scores over the sentences that have candidates; columns: (n, C) static features, in
    the order of the source's `columns`; save: writes to the cache what a search has computed.
    """

    problem: DocumentProblem
    columns: NDArray[np.float64]
    save: Callable[[], None] = lambda: None


class FeatureSource:
    """One contextual feature of a run, called `name`, and static features `columns` beside it.

    side_information: kinds that it needs of every sentence (`rerank.formats.translations`);
    order: number of earlier sentences that the contextual feature depends on, None if unbounded;
    error: largest error of the score of one sentence, in nats; runs_on: where scores are computed,
    `cpu`, `cuda`, `mps`, or `file` if only read; given_later: whether the contextual feature
    depends on later sentences in place of earlier ones; causal: whether it depends on those of one
    side only; on_demand: whether a search has scores after the histories that it visits alone, at
    order 1; scores_without_context: whether it has these; cacheable: whether its scores go
    to the score cache, if there is one; digest: hexadecimal digest of what the scores come from;
    slow_unit: what a slow scorer scores one by one, a plural noun, '' for fast scorers; chosen:
    settings that `choose` found, and the like, for weights files; preset: weight of the contextual
    feature where neither a weights file nor a tuning gives one, None for none; progress: yields
    items of long work and shows how far it is, as `rerank.files.terminal.progress`.

    A class for scores of one kind has these facts, and `score`, or `problem` where documents are
    scored one by one and there are no columns. All else has defaults for scores that cost nothing.
    """

    side_information: Sequence[str] = ()
    error: float = 0.0
    runs_on: str = "cpu"
    given_later: bool = False
    causal: bool = True
    on_demand: bool = False
    scores_without_context: bool = True
    cacheable: bool = False
    slow_unit: str = ""
    digest: str = ""
    chosen: Mapping[str, object] = MappingProxyType({})
    preset: float | None = None
    progress: Callable[..., Iterable[Any]] = staticmethod(lambda items, **how: items)

    def __init__(self, name: str, columns: Sequence[str] = (), order: int | None = 0) -> None:
        self.name, self.columns, self.order = name, columns, order

    @property
    def seconds(self) -> float:
        """Time spent on computing scores so far, including time inside searches."""
        return 0.0

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists)."""
        return [
            ScoredDocument(self.problem(*named), np.zeros((named[1].n, len(self.columns))))
            for named in documents
        ]

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """Scores of one document's candidates; the name is for messages."""
        raise NotImplementedError(f"{type(self).__name__} defines neither score nor problem")

    def without_context(self, name: str, kbest: KBest) -> NDArray[np.floating]:
        """Scores (n,) of a document's candidates, each as if its sentence were all of it.

        Not for sources of order 0, whose scores need no context, nor for those that are not
        `scores_without_context`.
        """
        alone = [(name, kbest.sentence(int(t))) for t in np.flatnonzero(kbest.counts)]
        return np.concatenate([own_scores(x.problem, (0,))[0] for x in self.score(alone)])

    def choose(self, lists: Iterable[KBest]) -> str:
        """Set by the first lists what the options leave open; a line about the choice, or ''."""
        return ""

    def passes(self, k: float) -> float:
        """Cost of exact search, in passes over lists of k candidates."""
        return 1.0

    def score_on_demand(self) -> None:
        """Score only after the histories that a search visits, if that saves passes."""
        return None

    def n_asked(self, counts: Sequence[int], most: float) -> float:
        """Most scores after histories that lists of `counts` candidates need.

        most: histories that a search visits, with that of the first candidates.
        """
        order = len(counts) if self.order is None else self.order
        return sum(
            k * min(most, math.prod(counts[max(0, t - order) : t])) for t, k in enumerate(counts)
        )

    def price(self, n: float, documents: Iterable[NamedLists]) -> str:
        """What n scores are about to cost, in words behind a comma, by the first documents."""
        return ""

    def finish(self, source: str, notices: Notices) -> None:
        """Add warnings that need the whole run; `source` is the name of the list."""
        return None

    def report(self) -> str:
        """What was done, in a line: `codclm: 12 documents from the cache`."""
        return f"{self.name}: nothing to report"

    def details(self) -> str:
        """Counters of the scoring engine, in a line; '' if there are none."""
        return ""

    def count(self, kbest: KBest, choices: Sequence[int]) -> Mapping[str, Sequence[object]]:
        """Count what the choices of a document have of the feature, for the report.

        What traces say of it, by key, for each sentence that has candidates.
        """
        return {}

    def explain(self, kbest: KBest) -> Mapping[str, Sequence[object]]:
        """What traces say of the feature beside what `count` does; asked for traces alone."""
        return {}

    def summary(self) -> Mapping[str, object]:
        """What a summary of the run has beside the report, by key."""
        return {}

    def provenance(self) -> Mapping[str, object]:
        """What weights files state of a feature that no option of models or scorers names."""
        return {}


@dataclass(frozen=True, slots=True, eq=False)
class FeatureSpace:
    """The feature columns of a run: labels in order, and where the scorers' columns lie.

    presets: weights that features have of themselves, by name (`FeatureSource.preset`).
    """

    labels: tuple[Label, ...]
    contextual: tuple[int, ...]
    list_width: int
    total: bool
    presets: Mapping[str, float]

    @classmethod
    def of(
        cls, labels: Sequence[Label], scorers: Sequence[FeatureSource], *, total: bool
    ) -> FeatureSpace:
        """Columns of a list with these labels and of scorers, in this order."""
        of_list = (*labels, *([Label(TOTAL, 1)] if total else []))
        width = sum(label.width for label in of_list)
        added: list[Label] = []
        contextual: list[int] = []
        for scorer in scorers:
            contextual.append(width + len(added))
            added += [Label(name, 1) for name in (scorer.name, *scorer.columns)]
        presets = {x.name: x.preset for x in scorers if x.preset is not None}
        return cls((*of_list, *added), tuple(contextual), width, total, presets)

    @property
    def width(self) -> int:
        """F, number of columns."""
        return sum(label.width for label in self.labels)


@dataclass(frozen=True, slots=True, eq=False)
class DocumentFeatures:
    """One document ready for search: n candidates over its sentences that have any.

    static: (n, F) with zeros in the contextual columns; sparse: (n,) weighted sum of the
    sparse features; offsets: (S + 1,) rows of the S sentences with candidates; present:
    (S,) their numbers among the document's T sentences; savers: the scorers' `save`.
    """

    name: str
    space: FeatureSpace
    static: NDArray[np.float64]
    sparse: NDArray[np.float64]
    problems: tuple[DocumentProblem, ...]
    offsets: NDArray[np.int64]
    present: NDArray[np.int64]
    savers: tuple[Callable[[], None], ...] = ()

    def stored(self, store: ArrayStore) -> DocumentFeatures:
        """These features, with arrays that `store` keeps, in memory or in files."""
        return replace(self, static=store.kept(self.static), sparse=store.kept(self.sparse))

    def save(self) -> None:
        """Let the scorers write to the cache what the search has made them compute."""
        for save in self.savers:
            save()

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

    def depending(
        self, choices: Sequence[int], weights: NDArray[np.float64], columns: Sequence[int]
    ) -> NDArray[np.int64]:
        """For each column: in how many sentences another candidate would be the best without it."""
        weighted = self.under(choices) * weights
        with np.errstate(over="ignore", invalid="ignore"):
            totals = weighted.sum(axis=1) + self.sparse
            rest = [totals, *(totals - weighted[:, column] for column in columns)]
        spans = list(zip(self.offsets, self.offsets[1:], strict=False))
        best, *others = (np.array([values[a:b].argmax() for a, b in spans]) for values in rest)
        return np.array([np.count_nonzero(best != other) for other in others], np.int64)

    def first(self) -> tuple[int, ...]:
        """The path of first candidates."""
        return (0,) * len(self.present)

    def chosen_rows(self, choices: Sequence[int]) -> NDArray[np.int64]:
        """Row of the chosen candidate of each sentence that has candidates, (S,)."""
        return self.offsets[:-1] + np.asarray(choices, dtype=np.int64)


def prepare(
    documents: Sequence[NamedLists],
    scorers: Sequence[FeatureSource],
    space: FeatureSpace,
    sparse_weights: Mapping[str, float],
) -> list[DocumentFeatures]:
    """Features of several documents, scored in one batch.

    InputError if `total` is requested and a line has none.
    """
    lists = [_list_columns(kbest, space) for _, kbest in documents]
    scored = list(zip(*(scorer.score(documents) for scorer in scorers), strict=True))
    features = []
    for (name, kbest), columns, scores in zip(
        documents, lists, scored or [()] * len(documents), strict=True
    ):
        blocks = [columns]
        for by_scorer in scores:
            blocks += [np.zeros((kbest.n, 1)), by_scorer.columns]
        present = np.flatnonzero(kbest.counts)
        document = DocumentFeatures(
            name,
            space,
            np.concatenate(blocks, axis=1),
            kbest.sparse.dot(sparse_weights),
            tuple(by_scorer.problem for by_scorer in scores),
            offsets_of(kbest.counts[present]),
            present,
            tuple(by_scorer.save for by_scorer in scores),
        )
        features.append(document)
    return features


def _list_columns(kbest: KBest, space: FeatureSpace) -> NDArray[np.float64]:
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


def counted(
    scorers: Sequence[FeatureSource], kbest: KBest, choices: Sequence[int]
) -> dict[str, Sequence[object]]:
    """What traces say of the choices of a document, as all scorers count them.

    Lists of several scorers under one key are joined.
    """
    counts: dict[str, Sequence[Any]] = {}
    for scorer in scorers:
        new: Mapping[str, Sequence[Any]] = scorer.count(kbest, choices)
        for key in new.keys() & counts.keys():
            new = {**new, key: [[*a, *b] for a, b in zip(counts[key], new[key], strict=True)]}
        counts |= new
    return counts


# Features in contexts that no path through the lists has


def have_contexts(scorers: Sequence[FeatureSource]) -> bool:
    """Whether any score depends on other sentences."""
    return any(scorer.order != 0 for scorer in scorers)


def lacking_scores_without_context(scorers: Sequence[FeatureSource]) -> list[str]:
    """Names of the scorers that depend on other sentences and have no scores without them."""
    return [x.name for x in scorers if x.order != 0 and not x.scores_without_context]


def without_context(
    document: DocumentFeatures, scorers: Sequence[FeatureSource], kbest: KBest
) -> NDArray[np.float64]:
    """Features (n, F) with each sentence as if it were the whole document."""
    return _scored(document, scorers, lambda scorer: scorer.without_context(document.name, kbest))


def after_texts(
    document: DocumentFeatures,
    scorers: Sequence[FeatureSource],
    kbest: KBest,
    texts: Sequence[bytes],
) -> NDArray[np.float64]:
    """Features (n, F) with given texts (T,) in place of the document's other sentences.

    Each text becomes one more candidate of its sentence, and the path of these is the context.
    Scorers of order 1 score one sentence after all candidates of the one before, unless
    `on_demand`.
    """
    lists, path = kbest.with_last(texts), kbest.counts[kbest.counts > 0].tolist()

    def score(scorer: FeatureSource) -> NDArray[np.floating]:
        (scored,) = scorer.score([(document.name, lists)])
        scores = np.concatenate([of_list[:-1] for of_list in own_scores(scored.problem, path)])
        scored.save()
        return scores

    return _scored(document, scorers, score)


def _scored(
    document: DocumentFeatures,
    scorers: Sequence[FeatureSource],
    score: Callable[[FeatureSource], NDArray[np.floating]],
) -> NDArray[np.float64]:
    """Features (n, F), contextual columns of scorers that are not of order 0 by `score`."""
    features = document.static.copy()
    columns = zip(document.space.contextual, document.problems, scorers, strict=True)
    for column, problem, scorer in columns:
        if scorer.order != 0:
            features[:, column] = score(scorer)
        else:
            features[:, column] = np.concatenate(own_scores(problem, document.first()))
    return features
