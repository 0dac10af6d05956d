"""Start weights of a tuning on several systems: the best one alone, or beside their consensus.

On few documents the system that seems best often is not, and the candidates that the systems agree
on (minimum Bayes risk, all systems as likely to be right) are the safer choice; where one system is
far better than the others, it is the other way round. Cross-validation tells the two cases apart:
the best system is chosen on other documents than it is judged on. Beside the consensus by document
BLEU it still has a weight of 1: its output is preferred to one with which mean ln BLEU of the
document is higher by less than 1 / its number of words. That costs nothing where systems are close,
and little where they are not (recipes/new-documents).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.formats.weights import Weights

if TYPE_CHECKING:
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objectives.objective import Objective, Sums
    from rerank.tuning.task import Task

FOLDS = 10
BESIDE = 1.0  # weight of the best system beside the consensus


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Features of the start: of each system, by label its name; and of their consensus."""

    systems: Mapping[str, str] = field(default_factory=dict)
    consensus: str = ""


def start_of_systems(
    task: Task, announce: Callable[[str], None] = lambda line: None
) -> TunedFeatures:
    """The task's features with the start weights that are best on held-out documents.

    The values of all systems, and the held-out ones of both starts, are announced. O(M (n + D))
    time for M systems and D documents.
    """
    objective, names = task.goal.objective, task.features.alternatives.systems
    consensus = {task.features.alternatives.consensus: 1.0}
    beside = {label: consensus | {label: BESIDE} for label in names}
    alone = {label: {label: 1.0} for label in names}
    sums: NDArray[Any] = np.array(
        [[_sums(task, kind[label]) for label in names] for kind in (beside, alone)]
    )
    values = {label: objective.value(own) for label, own in zip(names, sums[1], strict=True)}
    ranked = sorted(names, key=lambda label: -values[label])
    listed = ", ".join(f"{names[label]} {values[label]:.2f}" for label in ranked)
    announce(f"{objective.name} of each system on these documents: {listed}")
    best = _best_on_others(objective, sums[1])
    agreed, single = (objective.value(own[best, np.arange(len(best))]) for own in sums)
    source, start = f"the system {names[ranked[0]]}", alone[ranked[0]]
    if agreed >= single:
        source, start = f"the consensus of the systems together with {source}", beside[ranked[0]]
    announce(
        f"start: {source}; held-out {objective.name} of the system that is best on other documents "
        f"{single:.2f}, together with the consensus {agreed:.2f}"
    )
    given = {label: (weight,) for label, weight in start.items()}
    return replace(task.features, given=Weights(given), source=source)


def values_of_systems(task: Task) -> dict[str, float]:
    """The value of each system by name, on the documents of a task."""
    objective, names = task.goal.objective, task.features.alternatives.systems
    return {name: objective.value(_sums(task, {label: 1.0})) for label, name in names.items()}


def _best_on_others(objective: Objective, sums: NDArray[Any]) -> NDArray[np.int64]:
    """For each document, the system (D,) that is best on the other folds; sums: (M, D, W)."""
    n_documents = sums.shape[1]
    fold = np.arange(n_documents) % FOLDS
    found = np.zeros(n_documents, np.int64)
    for held in range(fold.max() + 1):
        others = fold != held if n_documents > 1 else fold == held
        found[fold == held] = np.argmax([objective.value(one[others]) for one in sums])
    return found


def _sums(task: Task, weights: Mapping[str, float]) -> Sums:
    """Summed statistics (D, W) of the candidates that weights choose."""
    columns = column_names(task.space.labels)
    places, values = [columns.index(label) for label in weights], [*weights.values()]
    path = tuple(
        tuple(
            int((one.static[a:b][:, places] @ values).argmax())
            for a, b in pairwise(one.offsets.tolist())
        )
        for one in task.corpus.documents
    )
    return task.corpus.sums(path)
