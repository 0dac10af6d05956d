"""The score of each system under one metric, and what it gains over the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.metrics import Rows
from rerank.metrics.significance import (
    FEWEST_DOCUMENTS,
    bootstrap,
    bootstrap_p_value,
    percentile_interval,
    sign_flip_p_value,
    sign_test_p_value,
)

Interval: TypeAlias = tuple[float, float]
"""Lower and upper end of a 95% confidence interval."""


@dataclass(frozen=True, slots=True)
class PValues:
    """P-values of a gain over the baseline, by tests that take documents as the sample.

    sign_flip: of the gain in the score of the whole text, two-sided; this is approximate
    randomisation, or exact up to 20 documents. bootstrap: of the same gain, by paired bootstrap
    resampling as in sacrebleu. Both are None below `FEWEST_DOCUMENTS`. sign_test: two-sided, of
    the numbers of documents that are better and worse.
    """

    sign_flip: float | None
    bootstrap: float | None
    sign_test: float


@dataclass(frozen=True, slots=True)
class MetricScore:
    """A corpus score as it is published; an error rate is positive, and smaller is better.

    signature: sacrebleu's, for its metrics; interval: None for a single document. The comparison
    with the baseline is None for the baseline. p_value: of the sign-flip test, as in `p_values`.
    role: `optimised` or `held out` in the tuning of the weights, None where that is not known.
    """

    score: float
    signature: str
    interval: Interval | None
    difference: float | None = None
    difference_interval: Interval | None = None
    p_value: float | None = None
    p_values: PValues | None = None
    role: str | None = None


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
    base, compared_ones = found[0], found[:1]
    for own, score, drawn in zip(by_system[1:], found[1:], draws[1:], strict=True):
        flip = sign_flip_p_value(own, by_system[0], metric.scores, rng=np.random.default_rng(seed))
        resampling = None
        if len(rows) >= FEWEST_DOCUMENTS:
            resampling = bootstrap_p_value(score.score, base.score, drawn, draws[0])
        gains = metric.scores(own) - metric.scores(by_system[0])
        signs = sign_test_p_value(int((gains > 0).sum()), int((gains < 0).sum()))
        compared_ones.append(
            replace(
                score,
                difference=score.score - base.score,
                difference_interval=percentile_interval(drawn - draws[0]) if several else None,
                p_value=flip,
                p_values=PValues(flip, resampling, signs),
            )
        )
    return compared_ones


def _shown(metric: CorpusScore, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores (R,) as they are published."""
    shown: Sequence[float] = [metric.shown(score) for score in scores.tolist()]
    return np.array(shown)
