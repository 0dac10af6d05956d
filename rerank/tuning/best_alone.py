"""Start weights of a tuning on several systems: one feature alone, a system or their consensus.

On few documents the system that seems best often is not, and the candidate that the systems agree
on (minimum Bayes risk under a uniform distribution) is the safer choice; where one system is far
better than the others, it is the other way round. Cross-validation tells the two cases apart: the
consensus is the start where it is at least as good as the system that is best on other documents.
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


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Features that may be the start: of each system, by label its name; and of their consensus."""

    systems: Mapping[str, str] = field(default_factory=dict)
    consensus: str = ""


def start_alone(task: Task, announce: Callable[[str], None] = lambda line: None) -> TunedFeatures:
    """The task's features with start weight 1 of one of its alternatives.

    The values of all are announced. O(n) for each alternative, and O(M D) for the folds.
    """
    objective, names = task.goal.objective, task.features.alternatives.systems
    consensus = task.features.alternatives.consensus
    sums = {label: _sums_alone(task, label) for label in names}
    values = {label: objective.value(one) for label, one in sums.items()}
    ranked = sorted(values, key=lambda label: -values[label])
    listed = ", ".join(f"{names[label]} {values[label]:.2f}" for label in ranked)
    announce(f"{objective.name} of each system on these documents: {listed}")
    start, source = ranked[0], f"the system {names[ranked[0]]}"
    held_out = objective.value(_held_out(objective, sums))
    agreed = objective.value(_sums_alone(task, consensus))
    if agreed >= held_out:
        start, source = consensus, "the consensus of the systems (minimum Bayes risk)"
    announce(
        f"start: {source}; {objective.name} of the consensus {agreed:.2f}, of the system that is "
        f"best on other documents {held_out:.2f}"
    )
    return replace(task.features, given=Weights({start: (1.0,)}), source=source)


def values_of_systems(task: Task) -> dict[str, float]:
    """The value of each system by name, on the documents of a task."""
    objective, names = task.goal.objective, task.features.alternatives.systems
    return {names[label]: objective.value(_sums_alone(task, label)) for label in names}


def _held_out(objective: Objective, sums: Mapping[str, Sums]) -> Sums:
    """Statistics (D, W): of each document, those of the system that is best on the other folds."""
    every: NDArray[Any] = np.array(list(sums.values()))  # (M, D, W)
    n_documents = every.shape[1]
    if n_documents == 1:
        every[0] = every[int(np.argmax([objective.value(one) for one in every]))]
        return np.asarray(every[0])
    fold = np.arange(n_documents) % FOLDS
    found: Sums = np.empty_like(every[0])
    for held in range(fold.max() + 1):
        best = int(np.argmax([objective.value(one[fold != held]) for one in every]))
        found[fold == held] = every[best, fold == held]
    return found


def _sums_alone(task: Task, label: str) -> Sums:
    """Summed statistics (D, W) of the candidates with the largest value of a feature."""
    column = column_names(task.space.labels).index(label)
    path = tuple(
        tuple(int(one.static[a:b, column].argmax()) for a, b in pairwise(one.offsets.tolist()))
        for one in task.corpus.documents
    )
    return task.corpus.sums(path)
