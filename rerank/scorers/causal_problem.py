"""A document under a causal language model: scores after each history that a search reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Answer, DocumentProblem, Indices
from lm.causal.engine import CausalContext, CausalEngine, Tree
from rerank.scorers.cached_scores import CachedScores, ScorerCache
from rerank.scorers.causal_texts import CausalTexts, Choices
from rerank.scorers.histories import digest
from rerank.scorers.history_scores import HistoryScores

Sums = NDArray[np.float64]
Histories: TypeAlias = list[Choices]  # of each, its choices within the window
Request: TypeAlias = tuple[CausalContext, Sequence[Tree]]
_REMEMBERED = 1 << 12  # contexts of a document


class CausalProblem(DocumentProblem):
    """Log-probabilities of a document's candidates in context.

    Histories whose contexts are equal texts are scored once: in this run and, with a cache, in
    later ones. order: that of the window, or None to have pairs scored as they are asked for.
    """

    lengths: tuple[int, ...] = ()
    order: int | None = None

    def __init__(
        self,
        engine: CausalEngine,
        texts: CausalTexts,
        kept: CachedScores,
        memory: ScorerCache,
        *,
        order: int | None,
    ) -> None:
        self.engine, self.texts, self.order = engine, texts, order
        self.lengths = tuple(kept.requested.counts.tolist())
        self._kept, self._memory, self._table = kept, memory, HistoryScores(kept)
        self._single: dict[tuple[int, bytes, int], float] = {}
        self._contexts: dict[tuple[int, Choices], tuple[CausalContext, bytes]] = {}

    def initial(self) -> Histories:
        """The empty history."""
        return [()]

    def select(
        self, successors: tuple[Histories, int], parents: Indices, choices: Indices
    ) -> Histories:
        """The histories after the chosen candidates."""
        before, _ = successors
        pairs = zip(parents.tolist(), choices.tolist(), strict=True)
        return [self._recent((*before[p], c)) for p, c in pairs]

    def extend(self, states: Histories, t: int) -> Answer:
        """Scores (N, K_t) after each history; a pass over the list for each new context."""
        return self.extend_together([(self, states, t)])[0]

    @classmethod
    def extend_together(cls, requests: Sequence[tuple[Any, Histories, int]]) -> list[Answer]:
        """Scores for histories of many documents, in one batch for each model."""
        complete([(problem, t, one) for problem, states, t in requests for one in states])
        return [(problem._rows(states, t), (states, t)) for problem, states, t in requests]

    def rescore(self, paths: Indices, t: int, horizon: int) -> Sums:
        """Sums (N,) along each path: a list for each context of sentence t, then single sentences.

        Each after each of its distinct contexts.
        """
        return self.rescore_together([(self, paths, t, horizon)])[0]

    @classmethod
    def rescore_together(cls, requests: Sequence[tuple[Any, Indices, int, int]]) -> list[Sums]:
        """Sums along paths of many documents, all their sentences in one batch for each model."""
        lists, singles = [], []
        for problem, paths, t, horizon in requests:
            lists += [(problem, t, problem._recent(tuple(path[:t].tolist()))) for path in paths]
            for s in problem._later(t, horizon):
                for path in map(tuple, paths[:, : s + 1].tolist()):
                    singles.append((problem, s, problem._recent(path[:s]), path[s]))
        complete([one for one in lists if one[1] < len(one[0].lengths)])
        _complete_single(singles)
        return [problem._sums(paths, t, horizon) for problem, paths, t, horizon in requests]

    def unary(self, t: int) -> NDArray[np.float32]:
        """Scores (K_t,) of sentence t; order 0 only."""
        if self.order != 0:
            return super().unary(t)
        scores: NDArray[np.float32] = self._list([()], t)[0]
        return scores

    def pairwise(self, t: int) -> NDArray[np.float32]:
        """Scores (K_{t-1}, K_t) after each candidate of sentence t−1; order 0 and 1."""
        if self.order != 1:
            return self.unary(t)[None]
        before: Histories = [(k,) for k in range(self.lengths[t - 1])] if t else [()]
        return self._list(before, t)

    def _list(self, histories: Histories, t: int) -> NDArray[np.float32]:
        """Scores (N, K_t), computed where they are not known."""
        complete([(self, t, one) for one in histories])
        return self._rows(histories, t)

    def keep(self) -> None:
        """Put what was scored since the last call into the cache."""
        if not self._table.grown:
            return
        self._memory.keep(self._kept.cached, {**self._kept.arrays, **self._table.arrays()})
        self._table.grown = False  # not before: a signal may end the writing

    def context(self, t: int, history: Choices) -> tuple[CausalContext, bytes]:
        """The context of sentence t after a history, and its key."""
        if (t, history) not in self._contexts:
            if len(self._contexts) >= _REMEMBERED:
                self._contexts.clear()
            found = self.texts.context(t, history)
            self._contexts[t, history] = found, digest(found.key)
        return self._contexts[t, history]

    def _recent(self, choices: Choices) -> Choices:
        """The choices that contexts depend on."""
        window = self.texts.options.sentences
        return choices if window is None else choices[max(0, len(choices) - window) :]

    def _later(self, t: int, horizon: int) -> range:
        """The sentences after t within a horizon."""
        return range(t + 1, min(t + horizon + 1, len(self.lengths)))

    def _rows(self, histories: Histories, t: int) -> NDArray[np.float32]:
        """Scores (N, K_t), all of them known."""
        return self._table.stacked(t, [self.context(t, one)[1] for one in histories])

    def _score(self, s: int, history: Choices, k: int) -> float:
        """A score that is known."""
        _, key = self.context(s, history)
        if self._table.has(s, key):
            return float(self._table.stacked(s, [key])[0, k])
        return self._single[s, key, k]

    def _sums(self, paths: Indices, t: int, horizon: int) -> Sums:
        """Sums (N,) of known scores of sentences t … t + horizon."""
        sums = np.zeros(len(paths))
        for n, path in enumerate(map(tuple, paths.tolist())):
            for s in range(t, min(t + horizon + 1, len(self.lengths))):
                sums[n] += self._score(s, self._recent(path[:s]), path[s])
        return sums


def complete(wanted: Sequence[tuple[CausalProblem, int, Choices]]) -> None:
    """Have the scores of whole lists t after histories in the problems' tables."""
    places: dict[tuple[int, int, bytes], tuple[CausalProblem, CausalContext]] = {}
    for problem, t, history in wanted:
        context, key = problem.context(t, history)
        if not problem._table.has(t, key):
            places[id(problem), t, key] = problem, context
    requests = [
        (problem, (context, problem.texts.trees(t, context)))
        for (_, t, _), (problem, context) in places.items()
    ]
    scores = _scored(requests)
    for ((_, t, key), (problem, _)), own in zip(places.items(), scores, strict=True):
        problem._table.enter(t, [key], [own.astype(np.float32)])


def _complete_single(wanted: Sequence[tuple[CausalProblem, int, Choices, int]]) -> None:
    """Have the scores of single candidates k of lists t after histories, as float32."""
    places: dict[tuple[int, int, bytes], tuple[CausalProblem, CausalContext, set[int]]] = {}
    for problem, t, history, k in wanted:
        context, key = problem.context(t, history)
        if not problem._table.has(t, key) and (t, key, k) not in problem._single:
            place = id(problem), t, key
            places.setdefault(place, (problem, context, set()))[2].add(k)
    requests = []
    for (_, t, _), (problem, context, chosen) in places.items():
        lists = problem.texts.forms(t, context)
        rows = sorted(chosen)
        own = type(lists).of([[lists.one(0, k).tokens.tolist() for k in rows]])
        requests.append((problem, (context, [Tree.of(own, np.arange(len(rows)))])))
    for ((_, t, key), (problem, _, chosen)), own_scores in zip(
        places.items(), _scored(requests), strict=True
    ):
        for k, score in zip(sorted(chosen), own_scores.astype(np.float32).tolist(), strict=True):
            problem._single[t, key, k] = score


def _scored(requests: Sequence[tuple[CausalProblem, Request]]) -> list[Sums]:
    """Scores of each request, those of one model in one call."""
    found: dict[int, Sums] = {}
    engines = {id(problem.engine): problem.engine for problem, _ in requests}
    for name, engine in engines.items():
        own = [n for n, (problem, _) in enumerate(requests) if id(problem.engine) == name]
        found.update(zip(own, engine.scores([requests[n][1] for n in own]), strict=True))
    return [found[n] for n in range(len(requests))]
