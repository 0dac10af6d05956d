"""Rounds of tuning: weights from a pool, decoded, until further rounds do not gain.

The value of a contextual feature exists only with the choices around a candidate. Where features
depend on context, a pool therefore belongs to a path, and holds not all that decoding could choose:
the BLEU that it predicts and the BLEU of the decoded path differ, and only the second one counts.
Each round scores all candidates under the path decoded last; rows of earlier pools are not kept,
since no neighbour chooses their context any more. Features of order 0 need one pool.

S lists with n candidates, F features of which G are tuned, W statistics, D units that statistics
are summed by: documents, or blocks of lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.goal import goal_of
from rerank.tuning.objective import Objective, Sums, bleu_of, free_length, length_of
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Choices, Pool, TuningSet
from rerank.tuning.pool_search import PoolSearch, SavedSearches
from rerank.tuning.tables import tabular
from rerank.tuning.tuners.ascent import Axes, Bounds, Optimum

MOST_ROUNDS = 15
PATIENCE = 2  # rounds in a row without a gain, after which no further round is made
STILL = 1e-5  # largest change of a weight after which no further round is made
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Selected: TypeAlias = NDArray[np.bool_]
Decode: TypeAlias = Callable[[Sequence[DocumentFeatures], Floats, bool], Sequence[tuple[int, ...]]]
"""Choices of documents, decoded together under weights (F,) of all features; whether narrowly."""
Optimise: TypeAlias = Callable[[Pool, Floats, Sequence[Floats]], Optimum]
"""The optimum on a pool, from start weights and weights of earlier rounds, (G,) each."""
Value: TypeAlias = Callable[[Sums, Floats], float]
"""The value of summed statistics (D, W) of what weights (G,) decode to, to be maximised."""
NONE: Indices = np.zeros(0, np.int64)


# Lists


@dataclass(frozen=True, slots=True, eq=False)
class TuningLists:
    """Lists whose scores do not depend on the path, so that one pool serves all paths.

    A path is what `choose` returns.

    contextual: (C,) those of the G features that depend on context: none
    at_hand: whether all scores are, so that a search computes none
    """

    pool: Pool
    contextual: Indices = field(default_factory=NONE.copy)
    at_hand: bool = True

    def part(self, lists: Selected) -> TuningLists:
        """Some of the lists (S,)."""
        return TuningLists(self.pool.take(lists))

    def without(self, features: Indices) -> TuningLists:
        """These lists, with some features constant."""
        return replace(self, pool=_constant(self.pool, features))

    def narrowed(self) -> TuningLists:
        """These lists, searched with a narrow beam where a search asks scorers for scores."""
        return self

    def beginnings(self, path: Any) -> list[Any]:
        """Paths after which rounds of tuning begin, that of the start weights first."""
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
    constant: features, of the G, that are 0 in pools; narrow: whether a beam is narrow
    """

    task: Task = field(kw_only=True)
    corpus: TuningSet = field(kw_only=True)
    counted: Selected = field(kw_only=True)
    constant: Indices = field(default_factory=NONE.copy, kw_only=True)
    narrow: bool = field(default=False, kw_only=True)

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
        pool = _constant(self.pool, features)
        if np.isin(self.contextual, features).all():
            return TuningLists(pool)
        return replace(self, pool=pool, constant=features)

    def narrowed(self) -> ContextualLists:
        """These lists, searched with a narrow beam where a search asks scorers for scores."""
        return replace(self, narrow=not self.at_hand)

    def beginnings(self, path: Choices) -> list[Choices]:
        """The path, and the same with the best candidate of each list that is counted.

        These are contexts that a feature is right about.
        """
        best, start = self.corpus.chosen(self.corpus.best), self.corpus.chosen(path)
        mixed = np.where(self.counted, best, start)
        ends = np.cumsum([len(choices) for choices in path])
        parts = np.split(mixed[: ends[-1]], ends[:-1])
        return [path, tuple(tuple(choices.tolist()) for choices in parts)]

    def after(self, path: Choices) -> Pool:
        """All candidates, with contextual features as after a path."""
        pool = self.corpus.pool(path, self.task.columns, self.task.full_start)
        pool = pool if self.counted.all() else pool.take(self.counted)
        pool = replace(pool, documents=self.pool.documents)
        return _constant(pool, self.constant) if len(self.constant) else pool

    def choose(self, weights: Floats) -> Choices:
        """The path on which a search of the documents by weights (G,) ends."""
        return self.task.search_path(self.corpus, weights, narrow=self.narrow)

    def sums(self, path: Choices) -> Sums:
        """Summed statistics (D, W) of the counted lists on a path."""
        return self.pool.sums(self.pool.offsets[:-1] + self.corpus.chosen(path)[self.counted])


def search_of_tuned(
    plan: Plan,
    features: TunedFeatures,
    space: FeatureSpace,
    objective: Objective,
    *,
    first: Sums,
    settled: bool,
    lists: Callable[[], TuningLists],
    saved: SavedSearches,
) -> PoolSearch:
    """The search for the weights of the tuned columns of a space, from their start weights.

    first: (W,) summed statistics of the first candidates; settled: whether a part of the scores is
    not tuned; lists: of which a price of direction or a held length needs to know
    """
    columns, ranges = features.columns(space), features.bounds(space)
    names, start = column_names(space.labels), features.start(space)[columns]
    goal = goal_of(
        plan.objective_options,
        objective,
        first,
        start,
        settled=settled,
        scale=lambda: Axes.of(lists().pool).scale,
    )
    if plan.holds_length:
        goal = goal.held(lists().decode(start))
    bounds = Bounds(ranges.low[columns], ranges.high[columns])
    return PoolSearch(plan, goal, bounds, [names[column] for column in columns], saved)


def _constant(pool: Pool, features: Indices) -> Pool:
    """The pool with some features constant, 0. O(n G)."""
    columns = pool.store.large(pool.features.T.shape, np.float64)
    columns[:] = pool.features.T
    columns[features] = 0.0
    return replace(pool, features=columns.T)


@dataclass(eq=False)
class Task:
    """A tuning set, how it is decoded, which weights are tuned, and for which goal.

    columns: (G,) those that are tuned; start: (G,) their start weights, of all (F,) full_start;
    fixed: whether a part of the scores is not tuned, which settles the scale of the weights. A
    length that the plan holds is that of what the start weights choose of these documents.
    """

    corpus: TuningSet
    features: TunedFeatures
    objective: Objective
    plan: Plan
    decoder: Decode
    notices: Notices
    saved: SavedSearches

    def __post_init__(self) -> None:
        corpus, features, plan = self.corpus, self.features, self.plan
        self.space = corpus.space
        self.columns, self.full_start = features.columns(self.space), features.start(self.space)
        self.start = self.full_start[self.columns]
        held = np.delete(self.full_start, self.columns).any()
        self.fixed = bool(held) or any(document.sparse.any() for document in corpus.documents)
        self.search = search_of_tuned(
            plan,
            features,
            self.space,
            self.objective,
            first=corpus.sums(corpus.first).sum(axis=0),
            settled=self.fixed,
            lists=lambda: self.lists,
            saved=self.saved,
        )
        self.goal, self.names = self.search.goal, self.search.names

    @property
    def free_objective(self) -> Objective:
        """The objective without a held length, which is that of one start, not of several."""
        return free_length(self.goal.objective)

    def on(self, numbers: Sequence[int], seed: int) -> Task:
        """The task on some of the documents, with another seed."""
        return replace(self, corpus=self.corpus.take(numbers), plan=self.plan.seeded(seed))

    def full(self, weights: Floats) -> Floats:
        """All weights (F,), of which the tuned ones (G,) are these."""
        full = self.full_start.copy()
        full[self.columns] = weights
        return full

    def norm(self, weights: Floats) -> float:
        """L1 norm of weights (G,), by which they are divided; 1 where their scale is settled."""
        free = not self.fixed and self.search.bounds.free_of_scale and weights.any()
        return float(np.linalg.norm(weights, 1)) if free else 1.0

    def pool(self, path: Choices) -> Pool:
        """All candidates under a path."""
        return self.corpus.pool(path, self.columns, self.full_start)

    @cached_property
    def lists(self) -> TuningLists:
        """The lists of these documents."""
        corpus, problems = self.corpus, self.corpus.documents[0].problems
        pool, contextual = self.pool(corpus.first), [problem.order != 0 for problem in problems]
        if not any(contextual):
            return TuningLists(pool)
        owners = np.array(self.space.contextual, np.int64)[contextual]
        return ContextualLists(
            pool,
            np.flatnonzero(np.isin(self.columns, owners)),
            all(tabular(p) for document in corpus.documents for p in document.problems),
            task=self,
            corpus=corpus,
            counted=np.ones(len(corpus.documents_of_lists), np.bool_),
        )

    def search_path(self, corpus: TuningSet, weights: Floats, *, narrow: bool = False) -> Choices:
        """The path that weights (G,) choose in documents; narrow: by a search of little effort."""
        full, decode = self.full(weights), self.decoder
        return tuple(path for group in corpus.groups for path in decode(group, full, narrow))

    def decode(self, weights: Floats) -> tuple[Choices, Sums]:
        """The path that weights (G,) choose, and its summed statistics (D, W)."""
        path = self.search_path(self.corpus, weights)
        return path, self.corpus.sums(path)


# Rounds


@dataclass(frozen=True, slots=True, eq=False)
class DecodedWeights:
    """Weights (G,), statistics (D, W) of what they decode to, the path, the pool's prediction."""

    weights: Floats
    statistics: Sums
    path: Any
    predicted: Optimum | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """A round with its number and value; round 0 is decoding with the start weights."""

    number: int
    result: DecodedWeights
    value: float

    def to_text(self) -> str:
        """One line for people."""
        predicted = self.result.predicted
        parts = [describe_bleu("decoded", self.result.statistics)]
        if predicted is not None:
            parts.insert(0, f"predicted BLEU {predicted.bleu:.2f}")
        if bleu_of(self.result.statistics) != self.value:
            before = "" if predicted is None else f"predicted {predicted.value:.3f}, "
            parts.append(f"objective {before}decoded {self.value:.3f}")
        return f"round {self.number}: {', '.join(parts)}"


def describe_bleu(what: str, sums: Sums) -> str:
    """BLEU and length ratio of decoded documents, for people."""
    return f"{what} BLEU {bleu_of(sums):.2f}, length ratio {length_of(sums):.3f}"


def tune_in_rounds(
    lists: TuningLists,
    start: DecodedWeights,
    optimise: Optimise,
    patience: int,
    *,
    settled: bool,
    value: Value,
    most: int = MOST_ROUNDS,
    report: Callable[[Round], None] = lambda done: None,
) -> tuple[Round, str]:
    """The round with the best value, the first of equal ones, and why the rounds ended.

    The first pool is scored after the path of the start, each later one after the path that the
    newest weights decode. All rounds draw the same random points, so that rounds on equal pools end
    alike. Rounds end after `patience` in a row that do not gain, and after `most`.

    settled: whether all-zero weights are a tuning result, because a part of the scores is not tuned
    """

    def valid(result: DecodedWeights) -> bool:
        return settled or bool(result.weights.any())

    best = last = Round(0, start, value(start.statistics, start.weights))
    report(best)
    optima, moved = list[Floats](), np.inf
    while True:
        if last.number - best.number >= patience:
            return best, f"{patience} rounds without gain"
        if last.number == most:
            return best, f"{most} rounds"
        if last.number and not len(lists.contextual):
            return best, "the pool is complete"
        if moved < STILL:
            return best, "no weight moves"
        before = last.result
        optimum = optimise(lists.after(before.path), before.weights, optima)
        optima.append(optimum.weights)
        path = lists.choose(optimum.weights)
        result = DecodedWeights(optimum.weights, lists.sums(path), path, optimum)
        last = Round(last.number + 1, result, value(result.statistics, result.weights))
        report(last)
        replaces = not valid(best.result) and bleu_of(result.statistics) > 0
        if valid(result) and (last.value > best.value or replaces):
            best = last
        moved = float(np.abs(optimum.weights - before.weights).max(initial=0.0))
