"""Start weights of a tuning on several systems: the best system, their consensus, or between them.

On few documents the system that seems best often is not, and the candidates that the systems agree
on (minimum Bayes risk, all systems as likely to be right) are the safer choice; where one system is
far better than the others, it is the other way round. Between the two, the best system has a weight
beside that of the consensus. Cross-validation tells the cases apart: the best system is chosen on
other documents than it is judged on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.labels import column_names
from rerank.formats.weights import Weights

if TYPE_CHECKING:
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objectives.objective import Objective, Sums
    from rerank.tuning.task import Task

FOLDS = 10
BESIDE = (1.0, 3.0)
"""Weights of the best system beside the consensus, in words or points of chrF: recipes/systems."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Features of the start: of each system, by label its name; and of their consensus."""

    systems: Mapping[str, str] = field(default_factory=dict)
    consensus: str = ""


def start_of_systems(
    task: Task, announce: Callable[[str], None] = lambda line: None
) -> TunedFeatures:
    """The task's features with the start weights that are best on held-out documents.

    Values of all systems, and held-out ones of the start weights, are announced. O(M (n + D)) for M
    systems and D documents.
    """
    objective, names = task.goal.objective, task.features.alternatives.systems
    values = values_of_systems(task)
    ranked = sorted(names, key=lambda label: -values[names[label]])
    listed = ", ".join(f"{names[label]} {values[names[label]]:.2f}" for label in ranked)
    announce(f"{objective.name} of each system on these documents: {listed}")
    kinds = [_with_consensus(task, weight) for weight in BESIDE]
    kinds.append({label: {label: 1.0} for label in names})
    sums: NDArray[Any] = np.array([[_sums(task, kind[label]) for label in names] for kind in kinds])
    best = _best_on_others(objective, sums[-1])
    places = np.arange(len(best))
    held_out = [objective.value(own[best, places]) for own in sums]
    chosen = int(np.argmax(held_out))
    source = f"the system {names[ranked[0]]}"
    if chosen < len(BESIDE):
        source = f"the consensus of the systems, with weight {BESIDE[chosen]:g} of {source}"
    beside = ", ".join(
        f"with weight {weight:g} {value:.2f}"
        for weight, value in zip(BESIDE, held_out, strict=False)
    )
    announce(
        f"start: {source}; held-out {objective.name} of the system that is best on other documents "
        f"{held_out[-1]:.2f}, beside the consensus {beside}"
    )
    given = {label: (weight,) for label, weight in kinds[chosen][ranked[0]].items()}
    return replace(task.features, given=Weights(given), source=source)


def _with_consensus(task: Task, weight: float) -> dict[str, dict[str, float]]:
    """Start weights with each system, by label, beside the consensus."""
    alternatives = task.features.alternatives
    return {label: {alternatives.consensus: 1.0, label: weight} for label in alternatives.systems}


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
