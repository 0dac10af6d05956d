"""The objective that a tuning run is asked for: metrics, documents, length and shrinkage."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.metrics import Metric
from rerank.metrics.bleu import WIDTH, Bleu, length_ratio
from rerank.registry import METRICS, metric
from rerank.tuning.objectives.goal import SearchGoal
from rerank.tuning.objectives.objective import (
    BLEU,
    CorpusMetric,
    DocumentMean,
    LengthPenalty,
    MetricColumns,
    Objective,
    ObjectiveSum,
    Sums,
    WorstDocuments,
)
from rerank.tuning.objectives.shrinkage import Shrinkage

Length: TypeAlias = Literal["keep", "free"] | float
BLEU_NAME = "bleu"
PRICE = 5.0  # BLEU that a length ratio off by 1 costs: .02 for 4 words in a thousand
SHRINKAGE = 1.0  # generalised best from few documents, and cost nothing with many


@dataclass(frozen=True, slots=True)
class ObjectiveOptions:
    """What tuning maximises.

    metrics: names of metrics, one or two, each with its weight in the sum
    files: a file of numbers, one for each line of the lists, for each metric of another tool
    documents: the mean over documents; worst: the mean over this share of them, the worst ones
    length: length ratio to keep to: that of the first candidates, any, or a number; price: of a
    length ratio off by 1, in points of the objective
    shrinkage: price of leaving the direction of the start weights; None: `SHRINKAGE`, 0 with files
    """

    metrics: tuple[tuple[str, float], ...] = ((BLEU_NAME, 1.0),)
    files: Mapping[str, str | Path] = field(default_factory=dict)
    documents: bool = False
    worst: float | None = None
    length: Length = "free"
    price: float = PRICE
    shrinkage: float | None = None

    @property
    def shrinkage_price(self) -> float:
        """The price in use; the default is 0 where the range of a metric is not known."""
        default = 0.0 if self.files else SHRINKAGE
        return default if self.shrinkage is None else self.shrinkage

    def check(self) -> None:
        """UsageError for values that make no objective, before any work."""
        names = [name for name, _ in self.metrics]
        if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
            raise UsageError(
                f"--objective {' '.join(names)}: expected one metric, or two different ones"
            )
        for name, weight in self.metrics:
            if not (math.isfinite(weight) and weight > 0):
                raise UsageError(f"--objective {name}={weight:g}: expected a weight above 0")
        for name in self.files:
            if name in METRICS:
                raise UsageError(
                    f"--metric {name}=…: {name} is a metric of rerank; take another name"
                )
            if name not in names:
                raise UsageError(f"--metric {name}=…: not used; add --objective {name}")
        prices = (("--length-price", self.price), ("--shrink", self.shrinkage_price))
        for option, number in prices:
            if not 0 <= number < math.inf:
                raise UsageError(f"{option} {number:g}: expected a finite number, at least 0")
        if self.price == 0 and self.length != "free":
            ratio = self.length if isinstance(self.length, str) else f"{self.length:g}"
            raise UsageError(
                f"--length-ratio {ratio}: --length-price 0 switches it off; leave one of them out"
            )
        if self.worst is not None and not 0 < self.worst <= 1:
            raise UsageError(f"--worst {100 * self.worst:g}: expected more than 0, at most 100")
        if self.worst is not None and self.documents:
            raise UsageError("--worst and --per-document: give one of them, not both")

    def load_metrics(
        self,
        bleu: Bleu | None = None,
        read: Callable[[str, str | Path], Metric] | None = None,
    ) -> tuple[Metric, ...]:
        """The metrics to count: BLEU first, then those that are named.

        Where BLEU has a tokenizer, BLEU of the words as they are comes last, for the report.
        read: makes the metric of a name and its file; needed where there are `files`.
        """
        bleu = bleu or Bleu()
        found: list[Metric] = [bleu]
        for name, _ in self.metrics:
            if read is not None and name in self.files:
                found.append(read(name, self.files[name]))
            elif name != BLEU_NAME:
                found.append(_registered(name))
        return (*found, *([Bleu()] if bleu.tokenize != "none" else []))

    def objective(self, metrics: Sequence[Metric]) -> Objective:
        """The objective on statistics that hold the columns of these metrics, BLEU's first.

        `metrics` has BLEU, then every other metric that is named, in this order.
        """
        others, begin = iter(metrics[1:]), WIDTH
        parts: list[tuple[float, Objective]] = []
        for name, weight in self.metrics:
            columns = BLEU
            if name != BLEU_NAME:
                other = next(others)
                columns = MetricColumns(other.name, begin, begin + other.width, other.scores)
                begin += other.width
            parts.append((weight, self._of_documents(columns)))
        (weight, only), *more = parts
        return only if weight == 1 and not more else ObjectiveSum(tuple(parts))

    def _of_documents(self, columns: MetricColumns) -> Objective:
        if self.worst is not None:
            return WorstDocuments(self.worst, columns)
        return DocumentMean(columns) if self.documents else CorpusMetric(columns)

    def goal(
        self,
        objective: Objective,
        first: Sums,
        start: NDArray[np.float64],
        *,
        settled: bool,
        scale: Callable[[], NDArray[np.float64]],
    ) -> SearchGoal:
        """The goal of a search from weights `start` (F,) of the tuned features.

        first: (W,) summed statistics of the first candidates; settled: whether a part of the scores
        is not tuned; scale: gives the spread of each feature, (F,). Features whose start weight is
        0 are free of shrinkage. UsageError for --shrink where no direction is there to keep to.
        """
        if self.length != "free" and self.price > 0:
            ratio = float(length_ratio(first[:WIDTH])) if self.length == "keep" else self.length
            objective = LengthPenalty(objective, float(ratio), self.price)
        if self.shrinkage_price == 0:
            return SearchGoal(objective)
        if settled or not start.any():
            if self.shrinkage:
                why = (
                    "a part of the scores is not tuned, so that the size of the tuned weights "
                    "matters, not their direction alone"
                    if settled
                    else "all tuned weights start at 0"
                )
                raise UsageError(f"--shrink {self.shrinkage:g}: {why}; leave it out")
            return SearchGoal(objective)
        known = np.where(start != 0, scale(), 0.0)
        if not known.any():
            return SearchGoal(objective)
        return SearchGoal(objective, Shrinkage(start, known, self.shrinkage_price))


CORPUS_BLEU_ALONE = ObjectiveOptions(shrinkage=0.0)
"""Corpus BLEU without any price."""


def _registered(name: str) -> Metric:
    """The metric of a name; the UsageError says how scores of another tool are given."""
    try:
        return metric(name)
    except UsageError as fault:
        raise UsageError(
            f"--objective {name}: {fault}; scores of another tool are given by "
            f"--metric {name or 'NAME'}=FILE"
        ) from fault
