"""The kinds of pools by name: each is a function from a task to its rounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.tuning.mert.mert import CONSTANT, unit_norm
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.pools.sentence_pools import conditional_pools, one_pool
from rerank.tuning.rounds import BestRound, Round, Rounds, tune_in_rounds
from rerank.tuning.task import Task


def sentences(task: Task) -> Rounds:
    """One pool, in the context of the first candidates, as for tuners of single sentences.

    For features of order 0 it is complete: what it predicts is what is decoded.
    """
    pool, tune = task.pool(task.corpus.first), task.pool_tuner(task.notices)
    start = task.start[task.tuned]
    if not task.contextual:
        return one_pool(start, pool, pool.decode, tune, "the pool is complete")
    return one_pool(start, pool, lambda w: task.decode(w)[1], tune, "one pool was asked for")


def conditional(task: Task) -> Rounds:
    """A pool for each context that was decoded; one pool for features of order 0."""
    if not task.contextual:
        return sentences(task)
    start, tune = task.start[task.tuned], task.pool_tuner(task.notices)
    return conditional_pools(start, task.corpus.first, task.pool, task.decode, tune)


def refuse_orders(orders: Sequence[int | None]) -> None:
    """UsageError for scorers of order 2 or more, whose paths exact line search cannot see."""
    if any(order is None or order > 1 for order in orders):
        raise UsageError(
            "--pools exact: a feature looks further back than one sentence, so that a line search "
            "cannot see all paths; take --pools conditional"
        )


def exact(task: Task) -> Rounds:
    """Line searches over all paths of all documents; one pool for features of order 0."""
    if not task.contextual:
        return sentences(task)
    from rerank.tuning.exact.ascent import document_ascent
    from rerank.tuning.exact.documents import document_rounds

    refuse_orders(task.orders)
    chains, tuned, start = task.corpus.chains(), task.tuned, task.start
    spreads = chains.spreads[tuned]
    if constant := [task.names[g] for g in np.flatnonzero(spreads == 0)]:
        task.notices.add(CONSTANT, names=constant)
    shrinkage = task.goal.shrinkage
    goal = SearchGoal(task.goal.objective, shrinkage and shrinkage.among(tuned, len(start)))
    tune = task.pool_tuner(Notices())  # a feature may be constant on the first pool alone

    def climb(weights: NDArray[np.float64]) -> Optimum:
        full, bounds = task.full(weights), task.features.bounds(task.space)
        found = task.saved.optimum(
            (chains.chains, chains.gaps, full, goal, tuned, bounds),
            lambda: document_ascent(
                chains, full, goal, features=tuned, notices=task.notices, bounds=bounds
            ),
        )
        moved = found.weights[tuned]
        if not task.fixed and task.bounds.free_of_scale:
            moved = unit_norm(moved, start=start[tuned], varying=np.flatnonzero(spreads))
        return replace(found, weights=moved)

    return document_rounds(
        start[tuned],
        lambda weights: tune(task.pool(task.corpus.first), weights),
        climb,
        lambda weights: chains.decode(task.full(weights)),
        spreads=spreads,
        seed=task.plan.settings.seed,
        value=task.goal.value,
        bounds=task.bounds,
    )


KINDS: Mapping[str, tuple[Callable[[Task], Rounds], int]] = {
    "auto": (conditional, 2),
    "sentences": (sentences, 2),
    "conditional": (conditional, 2),
    "exact": (exact, 3),
}
"""The rounds of each kind, and how many of them in a row may end without a gain."""


def best_round(task: Task, report: Callable[[Round], None] = lambda done: None) -> BestRound:
    """The best round on pools of the kind that the plan names; `report` is called with each."""
    rounds, patience = KINDS[task.plan.pools]
    return tune_in_rounds(
        rounds(task), patience, fixed=task.fixed, value=task.goal.value, report=report
    )
