"""A language model on an engine as a source of features, whose scores may be cached; and its PMI.

What the context adds to a sentence's log-probability is its pointwise mutual information with the
context, PMI(s; c) = log p(s | c) − log p(s | null); the null context is the one in which documents
begin. Sugiyama & Yoshinaga 2021 rerank translations by it.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary, WeightedSum
from decoders.batching import Extend, answer_all
from decoders.reversal import reversed_problem
from rerank.corpus.columns import reversed_lists
from rerank.corpus.kbest import KBest, NamedLists
from rerank.files.cache import Cache
from rerank.notices import Notices
from rerank.scorers.cached_scores import Arrays, HistoryProblem, ListScores, ListTexts, ScorerCache
from rerank.scorers.features import FeatureSource, ScoredDocument


def group_of(identity: tuple[object, ...]) -> str:
    """Group in the cache of scores that an identity determines."""
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:32]


class ModelSource(FeatureSource):
    """A language model on an engine, whose scores may be cached.

    label: NAME of the model; open_engine: what computes scores, with its backend and its counts,
    opened for the first scores that are not in the cache, and by searches that may go beyond these;
    arithmetic: dtype of its backend, and whether that is deterministic; pmi: features `NAMEpmi` and
    `NAMEnull`, log p(s | null), in place of the feature `NAME`, which is their sum, so that tuning
    weights context and fluency separately; given_later: documents are read from the last sentence
    to the first, and their last sentence has the start context; errors: largest error of a
    sentence's score in nats, by dtype; cached: number of documents whose scores came from the
    cache; additive: whether one pass serves all candidates of a sentence before, since they only
    add to the logits; cached_columns: numbers of a candidate that are cached beside its scores.
    """

    additive = False
    cached_columns: Sequence[str] = ()

    def __init__(
        self,
        name: str,
        open_engine: Callable[[], Any],
        cache: Cache | None,
        errors: Mapping[str, float],
        *,
        arithmetic: tuple[str, bool],
        columns: Sequence[str] = (),
        pmi: bool = False,
        given_later: bool = False,
    ) -> None:
        super().__init__(f"{name}pmi" if pmi else name)
        self.columns = (f"{name}null", *columns) if pmi else tuple(columns)
        self.label, self.pmi, self.given_later = name, pmi, given_later
        self._open_engine, self._cache = open_engine, cache
        self._all_pairs = ScorerCache()  # of searches that score all pairs
        self.cached = 0
        self.arithmetic = arithmetic
        self.error = errors[arithmetic[0]] * (2 if pmi else 1)

    @cached_property
    def engine(self) -> Any:
        """What computes scores, opened when it is first asked for."""
        engine = self._open_engine()
        self.runs_on = engine.backend.device.type
        return engine

    @property
    def opened(self) -> bool:
        """Whether anything was computed, or is about to be."""
        return "engine" in vars(self)

    def _static(self, known: ListScores) -> NDArray[np.float64]:
        """Static features (n, C) of a document's candidates, but the null; none by default."""
        return np.zeros((known.requested.counts.sum(), 0))

    @abstractmethod
    def _problem(self, name: str, texts: ListTexts, known: ListScores | None) -> HistoryProblem:
        """The problem of a document that is scored as a search goes on, with its cached scores."""

    @abstractmethod
    def _computed(
        self, documents: Sequence[tuple[str, ListTexts]], *, null: bool
    ) -> Iterator[Arrays]:
        """Scores of whole documents at order 0 and 1, or without context, for the cache."""

    @abstractmethod
    def _identity(self, *, null: bool) -> tuple[object, ...]:
        """Everything that determines the scores of a text; null: the scores without context."""

    def _scorer_cache(self, *, null: bool = False) -> ScorerCache:
        """The cache under a digest of what determines scores."""
        group = group_of(self._identity(null=null))
        order = 0 if null else None if self.on_demand else self.order
        whole = self.arithmetic[1]
        return ScorerCache(self._cache, group, whole, order, self.cached_columns, -np.inf)

    @cached_property
    def _score_cache(self) -> ScorerCache:
        return self._scorer_cache()

    @property
    def seconds(self) -> float:
        """Time that the model has computed so far."""
        return float(self.engine.counts.seconds) if self.opened else 0.0

    def finish(self, source: str, notices: Notices) -> None:
        """A warning if memory ran out: batches are smaller since then, and scoring is slower."""
        if self.opened and self.engine.backend.shortages:
            notices.add("out-of-memory", source=source, names=[self.label])
            self.engine.backend.shortages = 0

    def passes(self, k: float) -> float:
        """Cost of exact search, in passes over lists of k candidates."""
        return 1.0 if self.order is None else k ** max(0, self.order - int(self.additive))

    def score_on_demand(self) -> None:
        """Score only after the histories that a search visits, if each pair would take a pass."""
        if self.order == 1 and self.passes(2) > 1 and not self.on_demand:
            self._all_pairs, self.on_demand = self._score_cache, True
            self._score_cache = self._scorer_cache()

    def _texts(self, kbest: KBest) -> ListTexts:
        """Hypotheses and side information as scores depend on them; ValueError without these."""
        if missing := [kind for kind in self.side_information if kind not in kbest.side]:
            raise ValueError(f"scorer {self.label!r} needs side information: {', '.join(missing)}")
        return ListTexts.of(kbest, self.side_information)

    def place(self, name: str) -> str:
        """Scorer and document in messages, and how sentences are counted in them."""
        counted = ", its sentences counted from the last" if self.given_later else ""
        return f"scorer {self.label!r}, document {name!r}{counted}"

    def _in_order(self, kbest: KBest) -> KBest:
        """The lists of a document in the order of reading."""
        return kbest.reversed() if self.given_later else kbest

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists)."""
        read = [(name, self._in_order(kbest)) for name, kbest in documents]
        scored = self._scored(read)
        if self.pmi:
            scored = self._with_null(read, scored)
        if not self.given_later:
            return scored
        return [
            ScoredDocument(reversed_problem(x.problem), _turned(x.columns, kbest), x.save)
            for (_, kbest), x in zip(documents, scored, strict=True)
        ]

    def _scored(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Problem of each document in the order of reading, and static features but the null."""
        if self.causal and self.order in (0, 1) and not self.on_demand:
            return [
                ScoredDocument(scores.problem(self.order), self._static(scores))
                for scores in self._whole(documents)
            ]
        scored = []
        for name, kbest in documents:
            texts = self._texts(kbest)
            known = self._score_cache.look_up(texts) if self.causal else None
            self.cached += known is not None
            problem = self._problem(name, texts, known)
            problem.on_demand = self.on_demand
            scored.append(ScoredDocument(problem, self._static(problem.known), problem.save))
        return scored

    def _with_null(
        self, documents: Sequence[NamedLists], scored: Sequence[ScoredDocument]
    ) -> list[ScoredDocument]:
        """The scores less those without context, and these as a column more.

        The null scores of a first sentence are its scores in the problem, so that its PMI is 0
        and not a rounding error.
        """
        problems, nulls = [document.problem for document in scored], self.null_scores(documents)
        firsts = answer_all(
            [[(p, Extend(p.initial(), 0))] if len(p.lengths) else [] for p in problems]
        )
        differences = []
        for document, scores, first in zip(scored, nulls, firsts, strict=True):
            null = scores.astype(np.float64)
            for at_first, _ in first:
                null[: at_first.shape[1]] = at_first[0]
            lists = np.split(null, np.cumsum(document.problem.lengths)[:-1]) if len(null) else []
            difference = WeightedSum([(1.0, document.problem), (-1.0, Unary(lists))])
            columns = np.column_stack([null, document.columns])
            differences.append(ScoredDocument(difference, columns, document.save))
        return differences

    def null_scores(self, documents: Sequence[NamedLists]) -> list[NDArray[np.float32]]:
        """Scores (n,) of each document's candidates, each as if its sentence began a document."""
        scores = self._whole(documents, null=True)
        return [of_lists.column("scores").astype(np.float32) for of_lists in scores]

    def without_context(self, name: str, kbest: KBest) -> NDArray[np.floating]:
        """Scores (n,) of a document's candidates in no context, which adds nothing to a PMI."""
        if self.pmi:
            return np.zeros(kbest.n)
        if not self.causal:
            return super().without_context(name, kbest)
        (scores,) = self.null_scores([(name, self._in_order(kbest))])
        return _turned(scores, kbest) if self.given_later else scores

    def _whole(self, documents: Sequence[NamedLists], *, null: bool = False) -> list[ListScores]:
        """Scores of whole documents at order 0 and 1, or without context.

        Cached ones, or computed in one batch.
        """
        cache = self._scorer_cache(null=True) if null else self._score_cache
        named = [(name, self._texts(kbest)) for name, kbest in documents]
        known = [cache.look_up(texts) for _, texts in named]
        new = [n for n, scores in enumerate(known) if scores is None]
        self.cached += 0 if null else len(known) - len(new)
        computed = self._computed([named[n] for n in new], null=null) if new else ()
        for n, arrays in zip(new, computed, strict=True):
            _, texts = named[n]
            cache.save(texts, arrays)
            known[n] = ListScores(texts, texts, arrays)
        return [scores for scores in known if scores is not None]

    def report(self) -> str:
        """What was computed and what was cached: `codclm: 12 documents from the cache`."""
        parts = [f"{self.cached:,} documents from the cache"] if self.cached else []
        if self.opened and (tokens := self.engine.counts.tokens):
            parts.append(f"{tokens:,} tokens scored in {self.seconds:.1f} s")
        return f"{self.label}: {', '.join(parts) or 'nothing to score'}"


def _turned(columns: NDArray[np.floating], kbest: KBest) -> NDArray[np.float64]:
    """Values (n, …) of the candidates of reversed lists, in the order of the lists."""
    turned = np.empty(columns.shape)
    turned[reversed_lists(kbest.counts)] = columns
    return turned
