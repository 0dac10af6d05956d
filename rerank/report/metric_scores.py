"""The score of each system under one metric, and what it gains over the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.metrics import Rows
from rerank.metrics.significance import bootstrap, percentile_interval, sign_flip_p_value

Interval: TypeAlias = tuple[float, float]
"""Lower and upper end of a 95% confidence interval."""


@dataclass(frozen=True, slots=True)
class MetricScore:
    """A corpus score as it is published; an error rate is positive, and smaller is better.

    signature: sacrebleu's, for its metrics; interval: None for a single document. The comparison
    with the baseline is None for the baseline; p_value also below `FEWEST_DOCUMENTS`.
    """

    score: float
    signature: str
    interval: Interval | None
    difference: float | None = None
    difference_interval: Interval | None = None
    p_value: float | None = None


class CorpusScore(Protocol):
    """A score of summed statistics, such as a `rerank.metrics.Metric`."""

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Scores (…) of summed statistics (…, width); of an error rate the negative."""
        ...

    def shown(self, score: float) -> float:
        """The score as it is published."""
        ...

    def signature(self, n_references: int) -> str:
        """One line with all that decides on the score."""
        ...


def sums_of_documents(rows: Rows, documents: Documents) -> Rows:
    """Statistics (D, …) of documents, the sums of those of their sentences (T, …)."""
    running = np.zeros((len(rows) + 1, *rows.shape[1:]), dtype=rows.dtype)
    rows.cumsum(axis=0, out=running[1:])
    return np.diff(running[list(documents.starts)], axis=0)


def compared(metric: CorpusScore, rows: Rows, n_references: int, seed: int) -> list[MetricScore]:
    """Scores of the systems of rows (D, systems, width), each but the first against the first.

    All systems, and all metrics, see the same draws of documents.
    """
    by_system, signature = rows.swapaxes(0, 1), metric.signature(n_references)
    resampled = bootstrap(by_system, metric.scores, rng=np.random.default_rng(seed))
    draws = [_shown(metric, scores) for scores in resampled]
    several = len(rows) > 1
    found = [
        MetricScore(
            metric.shown(float(metric.scores(own.sum(axis=0)))),
            signature,
            percentile_interval(drawn) if several else None,
        )
        for own, drawn in zip(by_system, draws, strict=True)
    ]
    return found[:1] + [
        replace(
            found[i],
            difference=found[i].score - found[0].score,
            difference_interval=percentile_interval(draws[i] - draws[0]) if several else None,
            p_value=sign_flip_p_value(
                by_system[i], by_system[0], metric.scores, rng=np.random.default_rng(seed)
            ),
        )
        for i in range(1, len(found))
    ]


def _shown(metric: CorpusScore, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores (R,) as they are published."""
    shown: Sequence[float] = [metric.shown(score) for score in scores.tolist()]
    return np.array(shown)
