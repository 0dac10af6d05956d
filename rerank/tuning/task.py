"""A tuning task: a tuning set, how it is decoded, which weights are tuned, and for which goal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.bounds import Bounds
from rerank.tuning.features import TunedFeatures
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.mert import report_pool
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import Objective, Sums
from rerank.tuning.plan import Plan
from rerank.tuning.pools.pool import Pool
from rerank.tuning.pools.tuning_set import Choices, TuningSet
from rerank.tuning.rounds import TunePool
from rerank.tuning.saved import SavedSearches
from rerank.tuning.tuners.pool_tuner import tune_pool

Floats = NDArray[np.float64]
Decode = Callable[[Sequence[DocumentFeatures], Floats], Sequence[tuple[int, ...]]]
"""Decodes documents together under weights (F,) of all features; returns their choices."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Of F columns the weights of G are tuned; `goal` is a function of weights (G,).

    The goal's length is that of the first candidates of these documents.
    """

    corpus: TuningSet
    features: TunedFeatures
    objective: Objective
    plan: Plan
    decoder: Decode
    notices: Notices
    saved: SavedSearches = field(default_factory=SavedSearches)
    goal: SearchGoal = field(init=False)

    def __post_init__(self) -> None:
        corpus, tuned, start = self.corpus, self.tuned, self.start
        goal = self.plan.objective_options.goal(
            self.objective,
            corpus.sums(corpus.first).sum(axis=0),
            start[tuned],
            settled=self.fixed,
            scale=lambda: Axes.of(corpus.pool(corpus.first, tuned, start)).scale,
        )
        object.__setattr__(self, "goal", goal)

    def on(self, numbers: Sequence[int], seed: int) -> Task:
        """The task on some of the documents, with another seed."""
        return replace(self, corpus=self.corpus.take(numbers), plan=self.plan.seeded(seed))

    @property
    def space(self) -> FeatureSpace:
        """The features of all documents."""
        return self.corpus.documents[0].space

    @property
    def tuned(self) -> NDArray[np.int64]:
        """Columns (G,) of the tuned weights."""
        return self.features.columns(self.space)

    @property
    def start(self) -> Floats:
        """Start weights (F,) of all columns."""
        return self.features.start(self.space)

    @property
    def bounds(self) -> Bounds:
        """Ranges of the tuned weights (G,)."""
        bounds = self.features.bounds(self.space)
        return Bounds(bounds.low[self.tuned], bounds.high[self.tuned])

    @property
    def names(self) -> list[str]:
        """Names of the tuned columns."""
        names = column_names(self.space.labels)
        return [names[column] for column in self.tuned]

    @property
    def orders(self) -> list[int | None]:
        """Orders of the features that scorers compute."""
        return [problem.order for problem in self.corpus.documents[0].problems]

    @property
    def contextual(self) -> bool:
        """Whether a feature depends on earlier choices."""
        return any(order != 0 for order in self.orders)

    @property
    def fixed(self) -> bool:
        """Whether a part of the scores is not tuned, which settles the scale of the weights."""
        held = np.delete(self.start, self.tuned).any()
        return bool(held) or any(d.sparse.any() for d in self.corpus.documents)

    def full(self, weights: Floats) -> Floats:
        """All weights (F,), given the tuned ones (G,)."""
        full = self.start
        full[self.tuned] = weights
        return full

    def norm(self, weights: Floats) -> float:
        """L1 norm of weights (G,), by which they are divided; 1 where their scale is settled."""
        free = not self.fixed and self.bounds.free_of_scale and weights.any()
        return float(np.linalg.norm(weights, 1)) if free else 1.0

    def pool(self, path: Choices) -> Pool:
        """All candidates under a path."""
        return self.corpus.pool(path, self.tuned, self.start)

    def decode(self, weights: Floats) -> tuple[Choices, Sums]:
        """The path that weights (G,) choose, and its summed statistics (D, W)."""
        full, path = self.full(weights), list[tuple[int, ...]]()
        for group in self.corpus.groups:
            path += self.decoder(group, full)
        return tuple(path), self.corpus.sums(tuple(path))

    def pool_tuner(self, notices: Notices) -> TunePool:
        """The plan's tuner, for pools of these features.

        All rounds draw the same random points, so that rounds on equal pools end alike. Optima of
        earlier rounds are starts of later ones. Constant features are reported for the first pool.
        """
        history: list[Floats] = []

        def tune(pool: Pool, start: Floats) -> Optimum:
            told = Notices() if history else notices
            found = self.saved.optimum(
                (pool, start, self.plan.searched, self.goal, self.bounds, history),
                lambda: (
                    tune_pool(
                        pool,
                        start,
                        self.plan,
                        told,
                        names=self.names,
                        goal=self.goal,
                        bounds=self.bounds,
                        history=tuple(history),
                    ).best
                ),
                lambda: report_pool(Axes.of(pool), self.names, told),
            )
            history.append(found.weights)
            return found

        return tune
