"""The kinds of pools by name: each is a function from a task to its pools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.tuning.exact.ascent import document_ascent
from rerank.tuning.exact.documents import ExactDocuments
from rerank.tuning.mert.mert import unit_norm
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.pools.sentence_pools import ConditionalPools, SinglePool, choose
from rerank.tuning.rounds import Pools
from rerank.tuning.task import Task


def complete_pool(task: Task) -> SinglePool:
    """One pool, for features of order 0: what it predicts is what is decoded."""
    pool = task.pool(task.corpus.first)
    tune = task.pool_tuner(task.notices)
    return SinglePool(pool, partial(choose, pool), tune, "the pool is complete")


def first_pool(task: Task) -> Pools:
    """One pool, in the context of the first candidates, as for tuners of single sentences."""
    if not task.contextual:
        return complete_pool(task)
    return SinglePool(
        task.pool(task.corpus.first),
        lambda weights: task.decode(weights)[1],
        task.pool_tuner(task.notices),
        "one pool was asked for",
    )


def conditional_pools(task: Task) -> Pools:
    """A pool for each context that was decoded; one pool for features of order 0."""
    if not task.contextual:
        return complete_pool(task)
    tune = task.pool_tuner(task.notices)
    return ConditionalPools(task.corpus.first, task.pool, task.decode, tune)


def refuse_orders(orders: Sequence[int | None]) -> None:
    """UsageError for scorers of order 2 or more, whose paths exact line search cannot see."""
    if any(order is None or order > 1 for order in orders):
        raise UsageError(
            "--pools exact: a feature looks further back than one sentence, so that a line search "
            "cannot see all paths; take --pools conditional"
        )


def exact_pools(task: Task) -> Pools:
    """Line searches over all paths of all documents; one pool for features of order 0."""
    if not task.contextual:
        return complete_pool(task)
    refuse_orders(task.orders)
    chains, tuned = task.corpus.chains(), task.tuned
    for g in np.flatnonzero(chains.spreads[tuned] == 0):
        task.notices.add(f"constant feature {task.names[g]}: its weight stays as given")
    shrinkage = task.goal.shrinkage
    goal = SearchGoal(task.goal.objective, shrinkage and shrinkage.among(tuned, len(task.start)))
    varying = np.flatnonzero(chains.spreads[tuned] > 0)

    def climb(weights: NDArray[np.float64]) -> Optimum:
        found = document_ascent(
            chains,
            task.full(weights),
            goal,
            features=tuned,
            notices=task.notices,
            bounds=task.features.bounds(task.space),
        )
        moved = found.weights[tuned]
        if not task.fixed and task.bounds.free_of_scale:
            moved = unit_norm(moved, start=task.start[tuned], varying=varying)
        return replace(found, weights=moved)

    return ExactDocuments(
        lambda: task.pool(task.corpus.first),
        task.pool_tuner(Notices()),  # a feature may be constant on the first pool alone
        climb,
        lambda weights: chains.decode(task.full(weights)),
        chains.spreads[tuned],
        task.plan.settings.seed,
        task.value,
        bounds=task.bounds,
    )


KINDS: Mapping[str, Callable[[Task], Pools]] = {
    "auto": conditional_pools,
    "sentences": first_pool,
    "conditional": conditional_pools,
    "exact": exact_pools,
}


def make_pools(task: Task) -> Pools:
    """Pools of the kind that the plan names."""
    return KINDS[task.plan.pools](task)
