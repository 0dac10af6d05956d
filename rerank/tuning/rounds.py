"""Rounds of tuning: weights from a pool, decoded, until further rounds do not gain.

Where features depend on context, no pool holds all that decoding could choose. The BLEU predicted
by the pool and the BLEU of the decoded path then differ, and only the second one counts. The value
of a contextual feature exists only given the choices around a candidate: each round scores all
candidates under the path decoded last, and rows of earlier pools are not kept, since no neighbour
chooses their context any more. Features of order 0 need one pool, and where scores look back one
sentence at most, exact line searches over all paths need none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.scorers.features import DocumentFeatures
from rerank.tuning.features import TunedFeatures
from rerank.tuning.goal import Shrinkage, goal_of
from rerank.tuning.objective import Objective, Sums, bleu_of, free_length, length_of
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Choices, Pool, TuningSet
from rerank.tuning.pool_search import CONSTANT, PoolSearch, SavedSearches
from rerank.tuning.tuners.ascent import Axes, Optimum, coordinates
from rerank.tuning.tuners.mert import kicked, unit_norm

MOST_ROUNDS = 15
STILL = 1e-5  # largest change of a weight after which no further round is made
Floats = NDArray[np.float64]
Decode = Callable[[Sequence[DocumentFeatures], Floats], Sequence[tuple[int, ...]]]
"""Decodes documents together under weights (F,) of all features; returns their choices."""


@dataclass(eq=False)
class Task:
    """A tuning set, how it is decoded, which weights are tuned, and for which goal.

    Of F columns the weights of G are tuned; `goal` is a function of weights (G,).

    columns: (G,) those that are tuned; start: (G,) their start weights, of all (F,) full_start;
    contextual: whether a feature depends on earlier choices; fixed: whether a part of the scores is
    not tuned, which settles the scale of the weights. The goal's length is that of the first
    candidates of these documents, or, where the plan holds it, of what the start weights choose.
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
            chosen = corpus.sums(corpus.first)
            if self.start.any() and not self.contextual:
                chosen = self.pool(corpus.first).decode(self.start)
            self.goal = self.goal.held(chosen)
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

    def decode(self, weights: Floats) -> tuple[Choices, Sums]:
        """The path that weights (G,) choose, and its summed statistics (D, W)."""
        full, path = self.full(weights), list[tuple[int, ...]]()
        for group in self.corpus.groups:
            path += self.decoder(group, full)
        return tuple(path), self.corpus.sums(tuple(path))


def describe_bleu(what: str, sums: Sums) -> str:
    """BLEU and length ratio of decoded documents, for people."""
    return f"{what} BLEU {bleu_of(sums):.2f}, length ratio {length_of(sums):.3f}"


@dataclass(frozen=True, slots=True, eq=False)
class DecodedWeights:
    """Weights (F,) and the summed statistics (D, W) of what they decode to.

    predicted: the optimum on the pool that gave the weights; None for the start weights
    """

    weights: Floats
    statistics: Sums
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
    value: Callable[[Sums, Floats], float],
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


def sentences(task: Task) -> Rounds:
    """The start weights (G,), and one round on the pool in the context of the first candidates.

    As for tuners of single sentences. For features of order 0 the pool is complete: what it
    predicts is what is decoded.
    """
    pool = task.pool(task.corpus.first)

    def decode(weights: Floats) -> Sums:
        return task.decode(weights)[1] if task.contextual else pool.decode(weights)

    yield DecodedWeights(task.start, decode(task.start))
    found = task.search.best(pool, task.start, task.notices)
    yield DecodedWeights(found.weights, decode(found.weights), found)
    return "one pool was asked for" if task.contextual else "the pool is complete"


def conditional(task: Task) -> Rounds:
    """The start weights (G,), and rounds until no weight moves, with a pool for each.

    The first pool is scored under the path of the first candidates, each later one under the path
    that the newest weights decode. All rounds draw the same random points, so that rounds on equal
    pools end alike. Optima of earlier rounds are starts of later ones. Constant features are
    reported for the first pool.
    """
    path, weights, optima = task.corpus.first, task.start, list[Floats]()
    yield DecodedWeights(weights, task.decode(weights)[1])
    moved = np.inf
    while moved >= STILL:
        notices = Notices() if optima else task.notices
        found = task.search.best(task.pool(path), weights, notices, optima)
        optima.append(found.weights)
        path, statistics = task.decode(found.weights)
        moved = float(np.abs(found.weights - weights).max(initial=0.0))
        weights = found.weights
        yield DecodedWeights(weights, statistics, found)
    return "no weight moves"


def refuse_orders(orders: Sequence[int | None]) -> None:
    """UsageError for scorers of order 2 or more, whose paths exact line search cannot see."""
    if any(order is None or order > 1 for order in orders):
        raise UsageError(
            "--pools exact: a feature looks further back than one sentence, so that a line search "
            "cannot see all paths; take --pools conditional"
        )


def exact(task: Task) -> Rounds:
    """Line searches over all paths of all documents.

    No pool stands between search and decoder: the predicted value is what decoding gives. Ascents
    end in local optima: the first begins at the better of the start weights and the optimum of the
    pool under the first candidates' path, later ones at kicks of the best weights.
    """
    from rerank.tuning.exact.ascent import ChainSet, DocumentPoint

    refuse_orders([problem.order for problem in task.corpus.documents[0].problems])
    chains = ChainSet.of_documents(task.corpus)
    columns, goal, bounds = task.columns, task.goal, task.features.bounds(task.space)
    spreads = chains.spreads[columns]
    if constant := [task.names[g] for g in np.flatnonzero(spreads == 0).tolist()]:
        task.notices.add(CONSTANT, names=constant)
    full_goal = goal
    if goal.shrinkage:  # of all features only the tuned ones count
        anchor, scale = np.zeros((2, task.space.width))
        anchor[columns], scale[columns] = goal.shrinkage.anchor, goal.shrinkage.scale
        full_goal = replace(goal, shrinkage=Shrinkage(anchor, scale, goal.shrinkage.price))

    def on_pool(weights: Floats) -> Optimum:
        # without notices: a feature may be constant on the first pool alone
        return task.search.best(task.pool(task.corpus.first), weights, Notices())

    def climb(weights: Floats) -> Optimum:
        full = task.full(weights)
        found = task.saved.optimum(
            len(full),
            (chains.chains, chains.gaps, full, full_goal, columns, bounds),
            lambda: coordinates(
                DocumentPoint(
                    chains, full, full_goal, features=columns, notices=task.notices, bounds=bounds
                )
            ),
        )
        moved = found.weights[columns]
        if task.free_of_scale:
            moved = unit_norm(moved, start=task.start, varying=np.flatnonzero(spreads))
        return replace(found, weights=moved)

    def decoded(weights: Floats, found: Optimum | None = None) -> DecodedWeights:
        return DecodedWeights(weights, chains.decode(task.full(weights)), found)

    def rank(result: DecodedWeights) -> float:
        """The value; all-zero weights, which no kick can move, come last."""
        return goal.value(result.statistics, result.weights) if result.weights.any() else -np.inf

    rng = np.random.default_rng([task.plan.settings.seed, 2])  # a stream of its own
    best = decoded(task.start)
    yield best
    weights, search = task.start, on_pool
    while True:
        found = search(weights)
        reached = decoded(found.weights, found)
        yield reached
        if not spreads.any():
            return "no feature varies"
        best = max(best, reached, key=rank)
        weights = best.weights
        if search is climb:
            kick = rng.standard_normal(int((spreads > 0).sum()))
            weights = task.search.bounds.clipped(kicked(weights, spreads, kick))
        search = climb


def rounds_of(task: Task) -> tuple[Rounds, int]:
    """The rounds of a task, and how many of them in a row may end without a gain.

    For features of order 0 one pool holds all that decoding can choose.
    """
    if task.plan.pools == "sentences" or not task.contextual:
        return sentences(task), 2
    return (exact(task), 3) if task.plan.pools == "exact" else (conditional(task), 2)
