"""Start weights of a tuning on several systems: the system that is best on the tuning documents."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rerank.corpus.labels import column_names
from rerank.formats.weights import Weights
from rerank.tuning.features import TunedFeatures

if TYPE_CHECKING:
    from collections.abc import Callable

    from rerank.tuning.objectives.objective import Sums
    from rerank.tuning.task import Task


def start_alone(task: Task, announce: Callable[[str], None] = lambda line: None) -> TunedFeatures:
    """The task's features, with weight 1 of the alternative that has the best value as start.

    Of equal ones the first. The values of all are announced. O(n) for each alternative.
    """
    objective, names = task.goal.objective, task.features.alternatives
    values = {label: objective.value(_sums_alone(task, label)) for label in names}
    best = max(values, key=lambda label: values[label])
    ranked = sorted(values, key=lambda label: -values[label])
    listed = ", ".join(f"{names[label]} {values[label]:.2f}" for label in ranked)
    announce(f"{objective.name} of each system on these documents: {listed}")
    source = f"the system {names[best]}"
    return replace(task.features, given=Weights({best: (1.0,)}), source=source)


def _sums_alone(task: Task, label: str) -> Sums:
    """Summed statistics (D, W) of the candidates with the largest value of a feature."""
    column = column_names(task.space.labels).index(label)
    path = tuple(
        tuple(int(one.static[a:b, column].argmax()) for a, b in pairwise(one.offsets.tolist()))
        for one in task.corpus.documents
    )
    return task.corpus.sums(path)
