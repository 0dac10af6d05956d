"""Rounds of tuning: weights from a pool, decoded, until further rounds do not gain.

Where features depend on context, no pool holds all that decoding could choose. The BLEU predicted
by the pool and the BLEU of the decoded path then differ, and only the second one counts. The value
of a contextual feature exists only given the choices around a candidate: each round scores all
candidates under the path decoded last, and rows of earlier pools are not kept, since no neighbour
chooses their context any more. Features of order 0 need one pool.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.features import TunedFeatures
from rerank.tuning.goal import goal_of
from rerank.tuning.lists import ContextualLists, TuningLists
from rerank.tuning.objective import Objective, Sums, bleu_of, free_length, length_of
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Choices, Pool, TuningSet
from rerank.tuning.pool_search import PoolSearch, SavedSearches
from rerank.tuning.tables import tabular
from rerank.tuning.tuners.ascent import Axes, Optimum

MOST_ROUNDS = 15
PATIENCE = 2  # rounds in a row without a gain, after which no further round is made
STILL = 1e-5  # largest change of a weight after which no further round is made
Floats = NDArray[np.float64]
Decode = Callable[[Sequence[DocumentFeatures], Floats], Sequence[tuple[int, ...]]]
"""Decodes documents together under weights (F,) of all features; returns their choices."""
Optimise = Callable[[Pool, Floats, Sequence[Floats]], Optimum]
"""The optimum on a pool, from start weights and weights of a history, (G,) each."""
Value = Callable[[Sums, Floats], float]
"""The value of summed statistics (D, W) of what weights (G,) decode to, to be maximised."""


@dataclass(eq=False)
class Task:
    """A tuning set, how it is decoded, which weights are tuned, and for which goal.

    Of F columns the weights of G are tuned; `goal` is a function of weights (G,).

    columns: (G,) those that are tuned; start: (G,) their start weights, of all (F,) full_start;
    contextual: whether a feature depends on earlier choices; fixed: whether a part of the scores is
    not tuned, which settles the scale of the weights. A length that the plan holds is that of what
    the start weights choose of these documents, all-zero ones the first candidates.
    """

    corpus: TuningSet
    features: TunedFeatures
    objective: Objective
    plan: Plan
    decoder: Decode
    notices: Notices
    saved: SavedSearches

    def __post_init__(self) -> None:
        corpus, features = self.corpus, self.features
        self.space = corpus.space
        self.columns, self.full_start = features.columns(self.space), features.start(self.space)
        self.start = self.full_start[self.columns]
        held = np.delete(self.full_start, self.columns).any()
        self.fixed = bool(held) or any(one.sparse.any() for one in corpus.documents)
        self.contextual = any(problem.order != 0 for problem in corpus.documents[0].problems)
        self.goal = goal_of(
            self.plan.objective_options,
            self.objective,
            corpus.sums(corpus.first).sum(axis=0),
            self.start,
            settled=self.fixed,
            scale=lambda: Axes.of(self.pool(corpus.first)).scale,
        )
        if self.plan.holds_length:
            self.goal = self.goal.held(self.lists.decode(self.start))
        self.search = PoolSearch.of(self.plan, self.goal, features, self.space, self.saved)
        self.names = self.search.names
        self.free_of_scale = not self.fixed and self.search.bounds.free_of_scale

    @property
    def free_objective(self) -> Objective:
        """The objective without a held length, which is that of one start, not of several."""
        return free_length(self.goal.objective)

    def on(self, numbers: Sequence[int], seed: int) -> Task:
        """The task on some of the documents, with another seed."""
        return replace(self, corpus=self.corpus.take(numbers), plan=self.plan.seeded(seed))

    def full(self, weights: Floats) -> Floats:
        """All weights (F,), given the tuned ones (G,)."""
        full = self.full_start.copy()
        full[self.columns] = weights
        return full

    def norm(self, weights: Floats) -> float:
        """L1 norm of weights (G,), by which they are divided; 1 where their scale is settled."""
        free = self.free_of_scale and weights.any()
        return float(np.linalg.norm(weights, 1)) if free else 1.0

    def pool(self, path: Choices) -> Pool:
        """All candidates under a path."""
        return self.corpus.pool(path, self.columns, self.full_start)

    @cached_property
    def lists(self) -> TuningLists:
        """The lists of these documents."""
        if not self.contextual:
            return TuningLists(self.pool(self.corpus.first))
        corpus, problems = self.corpus, self.corpus.documents[0].problems
        owners = np.array(self.space.contextual, np.int64)[[p.order != 0 for p in problems]]
        return ContextualLists(
            self.pool(corpus.first),
            np.flatnonzero(np.isin(self.columns, owners)),
            all(tabular(p) for one in corpus.documents for p in one.problems),
            corpus=corpus,
            columns=self.columns,
            start=self.full_start,
            search=self.search_path,
            counted=np.ones(len(corpus.documents_of_lists), np.bool_),
        )

    def search_path(self, corpus: TuningSet, weights: Floats) -> Choices:
        """The path that weights (G,) choose in documents."""
        full, path = self.full(weights), list[tuple[int, ...]]()
        for group in corpus.groups:
            path += self.decoder(group, full)
        return tuple(path)

    def decode(self, weights: Floats) -> tuple[Choices, Sums]:
        """The path that weights (G,) choose, and its summed statistics (D, W)."""
        path = self.search_path(self.corpus, weights)
        return path, self.corpus.sums(path)


def describe_bleu(what: str, sums: Sums) -> str:
    """BLEU and length ratio of decoded documents, for people."""
    return f"{what} BLEU {bleu_of(sums):.2f}, length ratio {length_of(sums):.3f}"


@dataclass(frozen=True, slots=True, eq=False)
class DecodedWeights:
    """Weights (F,), the summed statistics (D, W) of what they decode to, and the path.

    predicted: the optimum on the pool that gave the weights; None for the start weights
    """

    weights: Floats
    statistics: Sums
    path: Any
    predicted: Optimum | None = None


Rounds: TypeAlias = Generator[DecodedWeights, None, str]
"""The start weights, then the weights of each round, all decoded; returns why it ends."""


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


class BestRound(NamedTuple):
    """The round with the best value, the first of equal ones, and why the rounds ended."""

    best: Round
    reason: str


def tune_in_rounds(
    rounds: Rounds,
    patience: int,
    *,
    fixed: bool,
    value: Value,
    report: Callable[[Round], None] = lambda done: None,
) -> BestRound:
    """The best of the rounds; they end after `patience` in a row that do not gain, and after 15.

    fixed: whether a part of the scores is not tuned; without it all-zero weights are not a tuning
    result. value: of summed statistics (D, W) and weights (F,), to be maximised; report: called
    with each round, 0 first.
    """
    best: Round | None = None
    for number in range(MOST_ROUNDS + 1):
        try:
            result = next(rounds)
        except StopIteration as end:
            reason = end.value
            break
        last = Round(number, result, value(result.statistics, result.weights))
        report(last)
        best = best or last
        valid, best_valid = (fixed or bool(one.result.weights.any()) for one in (last, best))
        gains = last.value > best.value
        if valid and (gains or (not best_valid and bleu_of(result.statistics) > 0)):
            best = last
        if number - best.number >= patience:
            reason = f"{patience} rounds without gain"
            break
    else:
        reason = f"{MOST_ROUNDS} rounds"
    if best is None:
        raise ValueError("expected the start weights, found no round")
    return BestRound(best, reason)


def conditional(lists: TuningLists, start: DecodedWeights, optimise: Optimise) -> Rounds:
    """The start weights, and rounds until no weight moves, with a pool for each.

    The first pool is scored after the path of the start, each later one after the path that the
    newest weights decode; where scores do not depend on the path there is one. All rounds draw the
    same random points, so that rounds on equal pools end alike. Optima of earlier rounds are starts
    of later ones.
    """
    yield start
    weights, path = start.weights, start.path
    optima = list[Floats]()
    for _ in range(MOST_ROUNDS):
        optimum = optimise(lists.after(path), weights, optima)
        optima.append(optimum.weights)
        path = lists.choose(optimum.weights)
        moved = float(np.abs(optimum.weights - weights).max(initial=0.0))
        weights = optimum.weights
        yield DecodedWeights(weights, lists.sums(path), path, optimum)
        if not len(lists.contextual):
            return "the pool is complete"
        if moved < STILL:
            return "no weight moves"
    return f"{MOST_ROUNDS} rounds"


def rounds_of(task: Task) -> Rounds:
    """The rounds of a task from its start weights; notices are of the first pool alone."""
    lists, notices = task.lists, [task.notices]
    path = lists.choose(task.start)

    def optimise(pool: Pool, weights: Floats, history: Sequence[Floats]) -> Optimum:
        return task.search.best(pool, weights, notices.pop() if notices else Notices(), history)

    return conditional(lists, DecodedWeights(task.start, lists.sums(path), path), optimise)
