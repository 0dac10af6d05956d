"""Transformers of others as sources of features: scores after the choices in a window.

A history is the candidates chosen in the window; histories whose contexts are equal texts are
scored once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Answer, Indices
from rerank.corpus.kbest import KBest, NamedLists
from rerank.corpus.spelling import detokenised
from rerank.errors import InputError
from rerank.files.cache import Cache
from rerank.notices import Notices
from rerank.scorers.cached_scores import (
    Arrays,
    Choices,
    HistoryProblem,
    ListScores,
    ListTexts,
    ScorerCache,
    Sums,
    WindowStates,
    by_engine,
    digest,
    flat,
    in_time,
    unscored,
)
from rerank.scorers.features import ScoredDocument
from rerank.scorers.model_options import TranslationSettings, Window
from rerank.scorers.model_source import ModelSource, group_of

ERRORS = {"float32": 1e-3, "tf32": 0.25, "bfloat16": 2.0}  # in nats a sentence
_REMEMBERED = 1 << 12  # contexts of a document


@dataclass(slots=True)
class LengthCounts:
    """How many contexts were longer than a model's positions, and which texts.

    texts: label of the problem, list and candidate; a document may have several problems, of its
    scores and of null scores, which count a text once.
    """

    contexts: int = 0
    texts: set[tuple[str, int, int]] = field(default_factory=set)


class WindowProblem(WindowStates, HistoryProblem):
    """A document of S lists whose states are lists of the choices in a window.

    source: whose scores these are; null: whether each sentence is scored without the others.
    """

    def __init__(
        self,
        source: WindowSource,
        name: str,
        texts: ListTexts,
        known: ListScores | None,
        *,
        cache: ScorerCache,
        null: bool,
    ) -> None:
        scores = known or ListScores(texts, texts, {})
        super().__init__(scores, cache, order=source.order)
        self.source = source
        self.label, self.name, self.counts = source.place(name), name, source.lengths
        self.null, self.window = null, source.null_window if null else source.window
        self.sentences = self.window.order
        language = self.window.detokenize
        self._lines = [read_by_people(part, language) for part in texts.lists()]
        self._kbest = source.lists.get(name)
        self._single: dict[tuple[int, bytes, int], float] = {}
        self._contexts: dict[tuple[int, Choices], tuple[Any, bytes]] = {}

    @property
    def engine(self) -> Any:
        """That of the source, which is opened when it is first asked for."""
        return self.source.engine

    @abstractmethod
    def read(self, t: int, choices: Choices) -> tuple[Any, bytes]:
        """The context of sentence t after the choices of the sentences just before it.

        And its key, bytes that are equal where scores are.
        """

    @abstractmethod
    def request(self, t: int, context: Any, chosen: Sequence[int] | None = None) -> Any:
        """What the engine scores: the candidates of list t, or those chosen, after a context."""

    @abstractmethod
    def n_tokens(self, t: int) -> int:
        """Tokens of the candidates of list t, for showing how far scoring is."""

    def long_scores(self, t: int) -> NDArray[np.float64]:
        """(K_t,) what candidates of list t that are scored by parts add to their scores of 0."""
        return np.zeros(self.lengths[t])

    def place(self, t: int, k: int) -> str:
        """Where candidate k of list t stands: file and line, where these are known."""
        if self._kbest is not None:
            row = self._kbest.rows(int(np.flatnonzero(self._kbest.counts)[t]))[k]
            if line := self._kbest.line_number(row):
                return f"{self._kbest.source}:{line}"
        return f"{self.label}, sentence {t}, candidate {k} (from 0)"

    def too_long(self, t: int, k: int, message: str) -> InputError:
        """An error about candidate k of list t."""
        return InputError(message, source=self.place(t, k))

    def chosen_texts(self, t: int, choices: Choices) -> list[str]:
        """The texts of the choices of the sentences just before sentence t."""
        return [self._lines[t - len(choices) + i][k] for i, k in enumerate(choices)]

    def context(self, t: int, history: Choices) -> tuple[Any, bytes]:
        """The context of sentence t after a history, and the digest of its key."""
        if (t, history) not in self._contexts:
            if len(self._contexts) >= _REMEMBERED:
                self._contexts.clear()
            context, key = self.read(t, history)
            self._contexts[t, history] = context, digest(key)
        return self._contexts[t, history]

    def score_key(self, t: int, history: Choices) -> bytes:
        """Digest of the context."""
        return self.context(t, history)[1]

    # Scores

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, list[Choices], int]]) -> list[Answer]:
        """Scores for histories of many documents, in batches for each model; kept on the way."""
        wanted = [
            (problem, t, key, problem.context(t, history)[0])
            for problem, t, histories in unscored(requests)
            for key, history in histories.items()
        ]
        for part in in_time(wanted):
            scores = _scored([(p, p.request(t, context)) for p, t, _, context in part])
            for (problem, t, key, _), of_list in zip(part, scores, strict=True):
                total = of_list + problem.long_scores(t)
                problem.enter(t, [key], total.astype(np.float32)[None])
                problem.keep()
        return [
            (problem.scores_after(t, (problem.score_key(t, x) for x in states)), states)
            for problem, states, t in requests
        ]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Sums]:
        """Sums along paths of many documents, all their sentences in one batch for each model.

        A list for each context of sentence t, then single sentences, each after each of its
        distinct contexts.
        """
        lists, singles = [], []
        spans = [
            (problem, paths, t, min(t + horizon + 1, len(problem.lengths)))
            for problem, paths, t, horizon in requests
        ]
        for problem, paths, t, end in spans:
            if t < end:
                histories = [problem.recent(tuple(path)) for path in paths[:, :t].tolist()]
                lists.append((problem, histories, t))
            for s in range(t + 1, end):
                for *before, choice in paths[:, : s + 1].tolist():
                    singles.append((problem, s, problem.recent(tuple(before)), choice))
        cls.extend_together(lists)
        _complete_single(singles)
        return [problem.sums(paths, t, end) for problem, paths, t, end in spans]

    def all_histories(self, t: int) -> list[Choices]:
        """Every history of sentence t in a window of at most one sentence."""
        return [(k,) for k in range(self.lengths[t - 1])] if t and self.sentences else [()]

    def add_pairs(self, known: ListScores) -> None:
        """Add the scores of all pairs of neighbours, in a window of a sentence."""
        for t, block in enumerate(known.blocks(1)):
            keys = ((t, self.score_key(t, history)) for history in self.all_histories(t))
            self._scores.update(zip(keys, block, strict=True))

    def sums(self, paths: Indices, first: int, end: int) -> Sums:
        """Sums (N,) of known scores of sentences first … end − 1."""
        sums = np.zeros(len(paths))
        for n, path in enumerate(map(tuple, paths.tolist())):
            for s in range(first, end):
                key = self.score_key(s, self.recent(path[:s]))
                if self.has_scores(s, key):
                    sums[n] += float(self.scores_after(s, [key])[0, path[s]])
                else:
                    sums[n] += self._single[s, key, path[s]]
        return sums


def _complete_single(wanted: Sequence[tuple[Any, int, Choices, int]]) -> None:
    """Have the scores of single candidates k of lists t after histories, as float32."""
    places: dict[tuple[int, int, bytes], tuple[Any, Any, set[int]]] = {}
    for problem, t, history, k in wanted:
        context, key = problem.context(t, history)
        if not problem.has_scores(t, key) and (t, key, k) not in problem._single:
            place = id(problem), t, key
            places.setdefault(place, (problem, context, set()))[2].add(k)
    scores = _scored(
        [
            (problem, problem.request(t, context, sorted(chosen)))
            for (_, t, _), (problem, context, chosen) in places.items()
        ]
    )
    for ((_, t, key), (problem, _, chosen)), of_chosen in zip(places.items(), scores, strict=True):
        names = [(t, key, k) for k in sorted(chosen)]
        total = of_chosen + problem.long_scores(t)[sorted(chosen)]
        problem._single.update(zip(names, total.astype(np.float32).tolist(), strict=True))


def _scored(requests: Sequence[tuple[Any, Any]]) -> list[Sums]:
    """Scores of the request of each problem, those of one model in one call."""
    return by_engine(
        [problem.engine for problem, _ in requests],
        lambda engine, numbers: engine.scores([requests[n][1] for n in numbers]),
    )


def read_by_people(lines: bytes, language: str | None = None) -> list[str]:
    """The texts of LF-ended lines, detokenised if a language is given."""
    texts = lines.split(b"\n")[:-1]
    if language is not None:
        texts = detokenised(texts, language)
    return [line.decode() for line in texts]


class WindowSource(ModelSource):
    """The feature of one transformer, in nats.

    Order 0 and 1: all scores at once; else after each history that a decoder keeps. window: what
    scores depend on; model: its tokenizer and positions, where it is on this machine; lists: those
    that are being scored, by document; problem_of: class of the problems; shortened: what becomes
    of texts that are too long; unit: of what progress counts.
    """

    cacheable = True
    model: Any
    problem_of: type[WindowProblem]
    shortened: str
    unit = "tokens"
    slow_unit = "texts"

    def __init__(
        self,
        name: str,
        open_engine: Callable[[], Any],
        window: Window | TranslationSettings,
        cache: Cache | None,
        *,
        arithmetic: tuple[str, bool],
        pmi: bool,
    ) -> None:
        super().__init__(name, open_engine, cache, ERRORS, arithmetic=arithmetic, pmi=pmi)
        self.window: Any = window
        self.null_window: Any = window.without_context()
        self.order = window.order
        self.lists: Mapping[str, KBest] = {}
        self.lengths = LengthCounts()

    @abstractmethod
    def facts(self, *, null: bool) -> tuple[object, ...]:
        """What scores depend on; null: those without context."""

    def _identity(self, *, null: bool) -> tuple[object, ...]:
        return (*self.facts(null=null), *(("lazy",) if self.on_demand and not null else ()))

    def _problem(
        self,
        name: str,
        texts: ListTexts,
        known: ListScores | None,
        *,
        cache: ScorerCache | None = None,
        null: bool = False,
    ) -> WindowProblem:
        stored = cache or self._score_cache
        return self.problem_of(self, name, texts, known, cache=stored, null=null)

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document (name, lists)."""
        self.lists = dict(documents)
        return super().score(documents)

    def _scored(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """As of all models; pairs that another search had scored are not scored again."""
        scored = super()._scored(documents)
        for (_, kbest), features in zip(documents, scored, strict=True):
            known = self._all_pairs.look_up(self._texts(kbest)) if self.on_demand else None
            if known is not None:
                problem = cast(WindowProblem, features.problem)
                self.cached += "history" not in problem.known.arrays  # else it was counted
                problem.add_pairs(known)
        return scored

    def _computed(
        self, documents: Sequence[tuple[str, ListTexts]], *, null: bool
    ) -> Iterator[Arrays]:
        """Scores of whole documents, in batches, kept by history until a document is complete."""
        # searches that score on demand read the cache of documents that are not complete
        group, known = group_of((*self._identity(null=null), "lazy")), self._score_cache
        cache = ScorerCache(known.cache, group, known.whole, None, (), -np.inf)
        problems = [
            self._problem(name, texts, cache.look_up(texts), null=null, cache=cache)
            for name, texts in documents
        ]
        requests = [(p, p.all_histories(t), t) for p in problems for t in range(len(p.lengths))]
        answers: list[Answer] = []

        def tokens(part: Sequence[tuple[WindowProblem, Sequence[Choices], int]]) -> int:
            return sum(len(histories) * p.n_tokens(t) for p, histories, t in part)

        try:
            parts, total = in_time(requests), tokens(requests)
            named = {"label": self.label, "unit": self.unit, "total": total}
            for part in self.progress(parts, size=tokens, **named):
                answers += WindowProblem.extend_together(part)
        except BaseException:  # a signal, or a fault of a later document
            for problem in problems:
                problem.save()
            raise
        scores = iter([of_list for of_list, _ in answers])
        for problem in problems:
            yield {"scores": flat([*islice(scores, len(problem.lengths))])}

    def finish(self, source: str, notices: Notices) -> None:
        """Warnings: of memory, and of contexts and texts longer than the model's positions."""
        super().finish(source, notices)
        counts, self.lengths = self.lengths, LengthCounts()
        if not (counts.contexts or counts.texts):
            return
        positions = f"{self.model.positions:,}"
        model: dict[str, Any] = {"positions": positions, "name": self.label}
        if counts.contexts:
            notices.add("long-context", source=source, count=counts.contexts, **model)
        if counts.texts:
            notices.add(
                "long-text",
                source=source,
                count=len(counts.texts),
                asked=True,
                shortened=self.shortened,
                **model,
            )

    def details(self) -> str:
        """Tokens that the transformer read for those that were scored."""
        if not self.opened or not (work := self.engine.counts).nodes:
            return ""
        share = work.tokens / work.nodes
        return f"{self.label}: {work.nodes:,} tokens read ({share:.2f} scored for each)"
