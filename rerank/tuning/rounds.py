"""Rounds of tuning: weights from a pool, decoded, until further rounds do not gain.

Where features depend on context, no pool holds all that decoding could choose. The BLEU predicted
by the pool and the BLEU of the decoded path then differ, and only the second one counts. The value
of a contextual feature exists only given the choices around a candidate: each round scores all
candidates under the path decoded last, and rows of earlier pools are not kept, since no neighbour
chooses their context any more. Features of order 0 need one pool, and where scores look back one
sentence at most, exact line searches over all paths need none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.tuning.goal import SearchGoal
from rerank.tuning.objective import Sums, bleu_of, length_of
from rerank.tuning.task import Task
from rerank.tuning.tuners.ascent import Optimum
from rerank.tuning.tuners.mert import CONSTANT, kicked, unit_norm

MOST_ROUNDS = 15
STILL = 1e-5  # largest change of a weight after which no further round is made


def describe_bleu(what: str, sums: Sums) -> str:
    """BLEU and length ratio of decoded documents, for people."""
    return f"{what} BLEU {bleu_of(sums):.2f}, length ratio {length_of(sums):.3f}"


@dataclass(frozen=True, slots=True, eq=False)
class DecodedWeights:
    """Weights (F,) and the summed statistics (D, W) of what they decode to.

    predicted: the optimum on the pool that gave the weights; None for the start weights
    """

    weights: NDArray[np.float64]
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
    value: Callable[[Sums, NDArray[np.float64]], float],
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
    pool, tune = task.pool(task.corpus.first), task.pool_tuner(task.notices)

    def decode(weights: NDArray[np.float64]) -> Sums:
        return task.decode(weights)[1] if task.contextual else pool.decode(weights)

    yield DecodedWeights(task.start, decode(task.start))
    found = tune(pool, task.start)
    yield DecodedWeights(found.weights, decode(found.weights), found)
    return "one pool was asked for" if task.contextual else "the pool is complete"


def conditional(task: Task) -> Rounds:
    """The start weights (G,), and rounds until no weight moves, with a pool for each.

    The first pool is scored under the path of the first candidates, each later one under the path
    that the newest weights decode. One pool for features of order 0.
    """
    if not task.contextual:
        return (yield from sentences(task))
    tune, path, weights = task.pool_tuner(task.notices), task.corpus.first, task.start
    yield DecodedWeights(weights, task.decode(weights)[1])
    moved = np.inf
    while moved >= STILL:
        found = tune(task.pool(path), weights)
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
    """Line searches over all paths of all documents; one pool for features of order 0.

    No pool stands between search and decoder: the predicted value is what decoding gives. Ascents
    end in local optima: the first begins at the better of the start weights and the optimum of the
    pool under the first candidates' path, later ones at kicks of the best weights.
    """
    if not task.contextual:
        return (yield from sentences(task))
    from rerank.tuning.exact.ascent import ChainSet, document_ascent

    refuse_orders([problem.order for problem in task.corpus.documents[0].problems])
    chains = ChainSet.of_documents(task.corpus)
    columns, goal, bounds = task.columns, task.goal, task.features.bounds(task.space)
    spreads = chains.spreads[columns]
    if constant := [task.names[g] for g in np.flatnonzero(spreads == 0)]:
        task.notices.add(CONSTANT, names=constant)
    shrinkage = goal.shrinkage and goal.shrinkage.among(columns, task.space.width)
    full_goal = SearchGoal(goal.objective, shrinkage)
    tune = task.pool_tuner(Notices())  # a feature may be constant on the first pool alone

    def on_pool(weights: NDArray[np.float64]) -> Optimum:
        return tune(task.pool(task.corpus.first), weights)

    def climb(weights: NDArray[np.float64]) -> Optimum:
        full = task.full(weights)
        found = task.saved.optimum(
            (chains.chains, chains.gaps, full, full_goal, columns, bounds),
            lambda: document_ascent(
                chains, full, full_goal, features=columns, notices=task.notices, bounds=bounds
            ),
        )
        moved = found.weights[columns]
        if not task.fixed and task.bounds.free_of_scale:
            moved = unit_norm(moved, start=task.start, varying=np.flatnonzero(spreads))
        return replace(found, weights=moved)

    def decoded(weights: NDArray[np.float64], found: Optimum | None = None) -> DecodedWeights:
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
            weights = task.bounds.clipped(kicked(weights, spreads, kick))
        search = climb


KINDS: Mapping[str, tuple[Callable[[Task], Rounds], int]] = {
    "auto": (conditional, 2),
    "sentences": (sentences, 2),
    "conditional": (conditional, 2),
    "exact": (exact, 3),
}
"""The rounds of each kind of pools, and how many of them in a row may end without a gain."""
