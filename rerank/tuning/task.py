"""A tuning task: a tuning set, how it is decoded, which weights are tuned, and for which goal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.features import TunedFeatures
from rerank.tuning.goal import goal_of
from rerank.tuning.objective import Objective, Sums
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Choices, Pool, TuningSet
from rerank.tuning.pool_search import PoolSearch, SavedSearches
from rerank.tuning.tuners.ascent import Axes, Bounds, Optimum

Floats = NDArray[np.float64]
Decode = Callable[[Sequence[DocumentFeatures], Floats], Sequence[tuple[int, ...]]]
"""Decodes documents together under weights (F,) of all features; returns their choices."""


class Task:
    """Of F columns the weights of G are tuned; `goal` is a function of weights (G,).

    columns: (G,) those that are tuned; start: (G,) their start weights, of all (F,) full_start;
    contextual: whether a feature depends on earlier choices; fixed: whether a part of the scores is
    not tuned, which settles the scale of the weights. The goal's length is that of the first
    candidates of these documents.
    """

    def __init__(
        self,
        corpus: TuningSet,
        features: TunedFeatures,
        objective: Objective,
        plan: Plan,
        decoder: Decode,
        *,
        notices: Notices,
        saved: SavedSearches,
    ) -> None:
        self.corpus, self.features, self.objective, self.plan = corpus, features, objective, plan
        self.decoder, self.notices, self.saved = decoder, notices, saved
        self.space = corpus.space
        self.columns = features.columns(self.space)
        self.full_start = features.start(self.space)
        self.start = self.full_start[self.columns]
        held = np.delete(self.full_start, self.columns).any()
        self.fixed = bool(held) or any(one.sparse.any() for one in corpus.documents)
        self.contextual = any(problem.order != 0 for problem in corpus.documents[0].problems)
        self.goal = goal_of(
            plan.objective_options,
            objective,
            corpus.sums(corpus.first).sum(axis=0),
            self.start,
            settled=self.fixed,
            scale=lambda: Axes.of(self.pool(corpus.first)).scale,
        )
        ranges, names = features.bounds(self.space), column_names(self.space.labels)
        self.bounds = Bounds(ranges.low[self.columns], ranges.high[self.columns])
        self.names = [names[column] for column in self.columns]
        self.search = PoolSearch(plan, self.goal, self.bounds, self.names, saved)

    def on(self, numbers: Sequence[int], seed: int) -> Task:
        """The task on some of the documents, with another seed."""
        return self._with(self.corpus.take(numbers), self.features, self.plan.seeded(seed))

    def starting(self, features: TunedFeatures) -> Task:
        """The task with other start weights."""
        return self._with(self.corpus, features, self.plan)

    def _with(self, corpus: TuningSet, features: TunedFeatures, plan: Plan) -> Task:
        return Task(
            corpus,
            features,
            self.objective,
            plan,
            self.decoder,
            notices=self.notices,
            saved=self.saved,
        )

    def full(self, weights: Floats) -> Floats:
        """All weights (F,), given the tuned ones (G,)."""
        full = self.full_start.copy()
        full[self.columns] = weights
        return full

    def norm(self, weights: Floats) -> float:
        """L1 norm of weights (G,), by which they are divided; 1 where their scale is settled."""
        free = not self.fixed and self.bounds.free_of_scale and weights.any()
        return float(np.linalg.norm(weights, 1)) if free else 1.0

    def pool(self, path: Choices) -> Pool:
        """All candidates under a path."""
        return self.corpus.pool(path, self.columns, self.full_start)

    def decode(self, weights: Floats) -> tuple[Choices, Sums]:
        """The path that weights (G,) choose, and its summed statistics (D, W)."""
        full, path = self.full(weights), list[tuple[int, ...]]()
        for group in self.corpus.groups:
            path += self.decoder(group, full)
        return tuple(path), self.corpus.sums(tuple(path))

    def pool_tuner(self, notices: Notices) -> Callable[[Pool, Floats], Optimum]:
        """The search for better weights (G,) than given ones, for the pools of several rounds.

        All rounds draw the same random points, so that rounds on equal pools end alike. Optima of
        earlier rounds are starts of later ones. Constant features are reported for the first pool.
        """
        history: list[Floats] = []

        def tune(pool: Pool, start: Floats) -> Optimum:
            reported = Notices() if history else notices
            found = self.search.best(pool, start, reported, tuple(history))
            history.append(found.weights)
            return found

        return tune
