"""What a task is tuned on: each kind of pool is a function that makes it, and a line of `KINDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.notices import Notices
from rerank.pipeline.tuning_plan import Task
from rerank.tuning.ascent import Optimum
from rerank.tuning.document_ascent import document_ascent
from rerank.tuning.document_pools import DocumentPools
from rerank.tuning.envelope import Direction
from rerank.tuning.exact_documents import ExactDocuments
from rerank.tuning.goals import BleuGoal, Goal
from rerank.tuning.mert import unit_norm
from rerank.tuning.path_pool import PathPool
from rerank.tuning.rounds import Pools
from rerank.tuning.sentence_pools import CompletePool, ConditionalPools, FirstPool
from rerank.tuning.strategies import strategy


def first_pool(task: Task) -> Pools:
    """Lists of candidates in the context of the first ones, whatever is decoded."""
    find, first = task.tuner(task.notices), task.corpus.first
    if not task.contextual:
        return CompletePool(task.pool(first), find)
    return FirstPool(task.pool(first), lambda weights: task.decode(weights)[1], find)


def conditional_pools(task: Task) -> Pools:
    """Lists of candidates: one pool of them all, or one for each context that was decoded."""
    find, first = task.tuner(task.notices), task.corpus.first
    if not task.contextual:
        return CompletePool(task.pool(first), find)
    return ConditionalPools(first, task.pool, task.decode, find)


def document_pools(task: Task) -> Pools:
    """Lists of paths, from the first candidates on."""
    first = task.corpus.first
    lists = task.pool(first)
    columns = np.ascontiguousarray(lists.features.T)
    spreads = np.array([Direction.of(lists, column).spread for column in columns])
    _tell_constant(task, spreads)
    paths = task.corpus.paths([(choices,) for choices in first], task.tuned, task.start)
    return DocumentPools(
        PathPool(paths, task.corpus.gaps),
        task.list_paths,
        task.tuner(Notices()),  # what is constant on a few paths need not be
        spreads,
        Direction.of(lists, lists.fixed).spread,
        task.settings.seed,
        task.value,
    )


def _tell_constant(task: Task, spreads: NDArray[np.float64]) -> None:
    """Notices of the tuned features (G,) that vary nowhere."""
    for g in np.flatnonzero(spreads == 0):
        task.notices.add(f"constant feature {task.names[g]}: its weight stays as given")


def refuse_orders(orders: Sequence[int | None]) -> None:
    """UsageError where some scorer looks further back than a search of all paths can."""
    if any(order is None or order > 1 for order in orders):
        raise UsageError(
            "--pools exact: a feature looks further back than one sentence, so that a line search "
            "cannot see all paths; take --pools conditional or documents"
        )


def exact_pools(task: Task) -> Pools:
    """No pool: line searches over all paths of all documents; order 0 needs but one pool."""
    if not task.contextual:
        return conditional_pools(task)
    refuse_orders([problem.order for problem in task.corpus.documents[0].problems])
    chains, tuned = task.corpus.chains(), task.tuned
    _tell_constant(task, chains.spreads[tuned])
    goal = task.goal  # here of all weights, of which the tuned ones count
    if isinstance(goal, BleuGoal | Goal) and goal.shrinkage:
        goal = replace(goal, shrinkage=goal.shrinkage.among(tuned, len(task.start)))
    varying = np.flatnonzero(chains.spreads[tuned] > 0)
    rng = np.random.default_rng([task.settings.seed, 1])

    def climb(weights: NDArray[np.float64]) -> Optimum:
        found = document_ascent(
            chains,
            task.full(weights),
            goal,
            strategy(task.settings.directions),
            rng,
            features=tuned,
            notices=task.notices,
            bounds=task.wanted.bounds(task.space),
        )
        reached = found.weights[tuned]
        if not task.fixed and task.bounds.free_of_scale:
            norm = task.settings.norm
            reached = unit_norm(reached, start=task.start[tuned], varying=varying, norm=norm)
        return Optimum(reached, found.statistics, found.value, found.searches)

    return ExactDocuments(
        lambda: task.pool(task.corpus.first),
        task.tuner(Notices()),  # what is constant after the first candidates need not be
        climb,
        lambda weights: chains.decoded(task.full(weights)),
        chains.spreads[tuned],
        task.settings.seed,
        task.value,
        bounds=task.bounds,
    )


KINDS: Mapping[str, Callable[[Task], Pools]] = {
    "auto": conditional_pools,
    "sentences": first_pool,
    "conditional": conditional_pools,
    "documents": document_pools,
    "exact": exact_pools,
}


def make_pools(task: Task) -> Pools:
    """Pools of the kind that the plan names."""
    return KINDS[task.plan.pools](task)
