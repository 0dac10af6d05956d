"""What a tuning run is told to maximise, in the words of its options, and the metrics it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rerank.errors import UsageError
from rerank.metrics import Metric
from rerank.metrics.bleu import WIDTH, Tokenizer
from rerank.metrics.corpus_bleu import Bleu
from rerank.metrics.per_hypothesis import PerHypothesis
from rerank.notices import Notices
from rerank.registry import METRICS, metric
from rerank.scorers.file_scorer import ListInfo
from rerank.tuning.criterion import PRICE, Criterion, Length
from rerank.tuning.objectives import BLEU as BLEU_COLUMNS
from rerank.tuning.objectives import (
    Corpus,
    MeanOfDocuments,
    Measure,
    Objective,
    WeightedSum,
    WorstDocuments,
)
from rerank.tuning.regularisation import Window

BLEU = "bleu"
SHRINKAGE = 1.0  # what carried over best from few documents, and cost nothing with many


@dataclass(frozen=True, slots=True)
class Aims:
    """What to tune for.

    objectives: names of metrics, at most two, each with its weight in the sum
    files: file of numbers, a line for each line of the lists, of each metric that is none of ours
    worst: share of the documents that counts, the worst ones; documents: whether each document
    counts alike, else the corpus does
    """

    objectives: tuple[tuple[str, float], ...] = ((BLEU, 1.0),)
    files: Mapping[str, str | Path] = field(default_factory=dict)
    documents: bool = False
    worst: float | None = None
    length: Length = "free"
    price: float = PRICE
    window: int = 0
    window_of: Literal["mean", "min"] = "mean"
    shrinkage: float | None = None

    @property
    def pull(self) -> float:
        """The price of direction: `SHRINKAGE`, nothing where a metric's points are not known."""
        usual = 0.0 if self.files else SHRINKAGE
        return usual if self.shrinkage is None else self.shrinkage

    def check(self) -> None:
        """UsageError for what cannot be maximised, before any work."""
        names = [name for name, _ in self.objectives]
        if not 1 <= len(names) <= 2 or len(set(names)) < len(names):
            raise UsageError(
                f"--objective {' '.join(names)}: expected one metric, or two different ones"
            )
        for name, weight in self.objectives:
            if not (math.isfinite(weight) and weight > 0):
                raise UsageError(f"--objective {name}={weight:g}: expected a weight above 0")
        for name in self.files:
            if name in METRICS:
                raise UsageError(f"--metric {name}=…: {name} is counted here; take another name")
            if name not in names:
                raise UsageError(f"--metric {name}=…: not used; add --objective {name}")
        for option, number in (("--length-price", self.price), ("--shrink", self.pull)):
            if not 0 <= number < math.inf:
                raise UsageError(f"{option} {number:g}: expected a finite number, at least 0")
        if self.price == 0 and self.length != "free":
            ratio = self.length if isinstance(self.length, str) else f"{self.length:g}"
            raise UsageError(
                f"--length-ratio {ratio}: nothing is paid for it under --length-price 0; "
                "leave one of them out"
            )
        if self.worst is not None and not 0 < self.worst <= 1:
            raise UsageError(f"--worst {100 * self.worst:g}: expected more than 0, at most 100")
        if self.worst is not None and self.documents:
            raise UsageError("--worst and --per-document: the worst documents count alike anyway")

    def metrics(
        self,
        tokenizer: Tokenizer,
        given: Callable[[], ListInfo],
        copied: Callable[[str | Path], Path],
        notices: Notices,
    ) -> tuple[Metric, ...]:
        """The metrics to count: BLEU first, whatever the objective; lengths come from there.

        Then those of the objective, and BLEU of the words as they are given, to be told beside that
        of another tokenizer. `copied` gives the path of a file that can be read twice.
        """
        found: list[Metric] = [Bleu(tokenizer)]
        for name, _ in self.objectives:
            if name in self.files:
                found.append(PerHypothesis.read(name, copied(self.files[name]), given(), notices))
            elif name != BLEU:
                found.append(_ours(name))
        given_words = Tokenizer()
        return (*found, *([] if tokenizer.name == given_words.name else [Bleu(given_words)]))

    def criterion(self, metrics: Sequence[Metric]) -> Criterion:
        """The criterion on statistics that hold the columns of these metrics, in their order."""
        others, begin = iter(metrics[1:]), WIDTH
        parts: list[tuple[float, Objective]] = []
        for name, weight in self.objectives:
            measure = BLEU_COLUMNS
            if name != BLEU:
                counted = next(others)
                measure = Measure(counted.name, begin, begin + counted.width, counted.scores)
                begin += counted.width
            parts.append((weight, self._objective(measure)))
        (weight, only), *more = parts
        whole = only if weight == 1 and not more else WeightedSum(tuple(parts))
        window = Window(self.window, self.window_of) if self.window else None
        return Criterion(whole, self.length, self.price, window, self.pull)

    def _objective(self, measure: Measure) -> Objective:
        if self.worst is not None:
            return WorstDocuments(self.worst, measure)
        return MeanOfDocuments(measure) if self.documents else Corpus(measure)


def _ours(name: str) -> Metric:
    """The metric of a name; UsageError that tells how another tool's is given."""
    try:
        return metric(name)
    except UsageError as fault:
        raise UsageError(
            f"--objective {name}: {fault}; numbers of another tool are given by "
            f"--metric {name or 'NAME'}=FILE"
        ) from fault
