"""Metrics of other tools in an evaluation: means of their values for the lines of each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.metrics import Rows
from rerank.metrics.line_scores import LineScores
from rerank.report.evaluation import Evaluation
from rerank.report.metric_scores import compared, sums_of_documents


class _MeanOfLines:
    """The mean over lines, of statistics [sum of values, number of lines]."""

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Means (…) of summed statistics (…, 2), of one line or more."""
        return np.asarray(summed[..., 0] / summed[..., 1])

    def shown(self, score: float) -> float:
        """The mean as it is."""
        return score

    def signature(self, n_references: int) -> str:
        """Empty: each system has a file, and so a signature, of its own."""
        return ""


def with_scores(
    found: Evaluation, documents: Documents, scores: Mapping[str, Sequence[LineScores]]
) -> Evaluation:
    """The evaluation with the means of values of each system, by the name of their metric.

    A mean is that of all lines, so that a document counts as much as it has lines. Intervals and
    p-values see the same draws of documents as those of the other metrics.
    """
    systems = list(found.systems)
    for name, of_systems in scores.items():
        values = np.stack([one.values for one in of_systems], axis=1)
        rows = sums_of_documents(np.stack([values, np.ones_like(values)], axis=-1), documents)
        means = compared(_MeanOfLines(), rows, 0, found.seed)
        for i, (mean, read) in enumerate(zip(means, of_systems, strict=True)):
            own = replace(mean, signature=read.signature)
            systems[i] = replace(systems[i], scores={**systems[i].scores, name: own})
    return replace(found, systems=tuple(systems))
