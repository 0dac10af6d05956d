"""Lists that weights are tuned on or judged by: their pool under a path, and what weights choose.

The value of a contextual feature exists only given the choices around a candidate. Where features
depend on context, a pool therefore belongs to a path, and only a search of whole documents says
what weights choose; elsewhere one pool says both.

A path is what `TuningLists.choose` returns. S lists with n candidates, G tuned features, W
statistics, D units that statistics are summed by: documents, or blocks of lines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objective import Sums
from rerank.tuning.pool import Choices, Pool, TuningSet

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Selected: TypeAlias = NDArray[np.bool_]
Search: TypeAlias = Callable[[TuningSet, Floats], Choices]
"""Searches the documents of a tuning set under weights (G,) of the tuned features."""
NONE: Indices = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class TuningLists:
    """Lists whose scores do not depend on the path, so that one pool serves all paths.

    contextual: (C,) those of the G features that depend on context: none
    at_hand: whether all scores are, so that a search computes none
    """

    pool: Pool
    contextual: Indices = field(default_factory=NONE.copy)
    at_hand: bool = True

    def part(self, lists: Selected) -> TuningLists:
        """Some of the lists (S,)."""
        return TuningLists(self.pool.take(lists))

    def by_units(self, units: Indices) -> TuningLists:
        """These lists, with the unit of each (S,) in place of its document."""
        return replace(self, pool=replace(self.pool, documents=units))

    def without(self, features: Indices) -> TuningLists:
        """These lists, with some features constant."""
        return replace(self, pool=_constant(self.pool, features))

    def beginnings(self, path: Any) -> list[Any]:
        """Paths after which rounds of tuning begin, given that of the start weights."""
        return [path]

    def after(self, path: Any) -> Pool:
        """All candidates, with contextual features as after a path."""
        return self.pool

    def choose(self, weights: Floats) -> Any:
        """The path that weights (G,) choose. O(n G) on a pool."""
        return self.pool.choices(self.pool.scores(weights))

    def sums(self, path: Any) -> Sums:
        """Summed statistics (D, W) of a path."""
        return self.pool.sums(path)

    def decode(self, weights: Floats) -> Sums:
        """Summed statistics (D, W) of what weights (G,) choose."""
        return self.sums(self.choose(weights))


@dataclass(frozen=True, slots=True, eq=False)
class ContextualLists(TuningLists):
    """Lists of documents that are searched as a whole, because features depend on context.

    pool: that of the lists `counted` (S,), under some path; the others are context alone
    corpus: the documents of all S lists; columns, start: (G,) the tuned columns, and weights (F,)
    of all; search: see `Search`; constant: features, of the G, that are 0 in pools
    """

    corpus: TuningSet = field(kw_only=True)
    columns: Indices = field(kw_only=True)
    start: Floats = field(kw_only=True)
    search: Search = field(kw_only=True)
    counted: Selected = field(kw_only=True)
    constant: Indices = field(default_factory=NONE.copy, kw_only=True)

    def part(self, lists: Selected) -> ContextualLists:
        """Some of the counted lists; documents without any of them are left out."""
        counted = self.counted.copy()
        counted[counted] = lists
        documents = self.corpus.documents_of_lists
        kept = np.unique(documents[counted])
        return replace(
            self,
            pool=self.pool.take(lists),
            corpus=self.corpus.take(kept.tolist()),
            counted=counted[np.isin(documents, kept)],
        )

    def without(self, features: Indices) -> TuningLists:
        """These lists, with some features constant: without context if no other depends on it."""
        if np.isin(self.contextual, features).all():
            return TuningLists(_constant(self.pool, features))
        return replace(self, pool=_constant(self.pool, features), constant=features)

    def beginnings(self, path: Choices) -> list[Choices]:
        """The path, and the same with the best candidate of each counted list.

        These are contexts that a feature is right about; references of other lines are not used.
        """
        best, start = self.corpus.chosen(self.corpus.best()), self.corpus.chosen(path)
        mixed = np.where(self.counted, best, start)
        ends = np.cumsum([len(choices) for choices in path])
        parts = np.split(mixed[: ends[-1]], ends[:-1])
        return [path, tuple(tuple(choices.tolist()) for choices in parts)]

    def after(self, path: Choices) -> Pool:
        """All candidates, with contextual features as after a path."""
        pool = self.corpus.pool(path, self.columns, self.start)
        pool = pool if self.counted.all() else pool.take(self.counted)
        pool = replace(pool, documents=self.pool.documents)
        return _constant(pool, self.constant) if len(self.constant) else pool

    def choose(self, weights: Floats) -> Choices:
        """The path that a search of the documents by weights (G,) finds."""
        return self.search(self.corpus, weights)

    def sums(self, path: Choices) -> Sums:
        """Summed statistics (D, W) of the counted lists on a path."""
        return self.pool.sums(self.pool.offsets[:-1] + self.corpus.chosen(path)[self.counted])


def _constant(pool: Pool, features: Indices) -> Pool:
    """The pool with some features constant, 0. O(n G)."""
    columns = pool.store.large(pool.features.T.shape, np.float64)
    columns[:] = pool.features.T
    columns[features] = 0.0
    return replace(pool, features=columns.T)
