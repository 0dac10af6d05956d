"""Objectives of tuning: functions of the summed statistics of a corpus.

An objective has a value at a point, and on every interval of a line in the space of weights, where
the statistics of one sentence change at a time. Larger is better. Of the W columns of statistics
the first nine are always those of BLEU (`rerank.metrics.bleu`), from which lengths are taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rerank.metrics import Metric
from rerank.metrics.bleu import WIDTH, corpus_bleu, length_ratio
from rerank.tuning.plan import BLEU as BLEU_NAME
from rerank.tuning.plan import LENGTH_PRICE, ObjectiveOptions

# price of a length ratio that is off by 1, of other metrics than BLEU: chrF rises by some 6 with
# longer candidates
_OTHER_PRICE = 20.0
_GROUPS = 50  # of units in a jackknife, at most
Floats: TypeAlias = NDArray[np.float64]
Sums: TypeAlias = NDArray[Any]
"""Statistics that add up, (…, W): integers, or float64 where a metric is not counted."""


def _bleu_counts(sums: Sums) -> NDArray[np.int64]:
    """The nine statistics of BLEU (9,) of summed statistics (W,), or of documents' (D, W)."""
    counts = np.atleast_2d(sums)[:, :WIDTH].sum(axis=0)
    return np.asarray(counts, dtype=np.int64)


def bleu_of(sums: Sums) -> float:
    """Corpus BLEU, 0..100, of summed statistics (W,) or (D, W)."""
    return float(corpus_bleu(_bleu_counts(sums)))


def length_of(sums: Sums) -> float:
    """Length ÷ length of the references, of summed statistics (W,) or (D, W)."""
    return float(length_ratio(_bleu_counts(sums)))


def sentence_bleu(statistics: Sums) -> Floats:
    """BLEU (n,) of each candidate by itself, of statistics (n, W)."""
    counts = statistics[:, :WIDTH].astype(np.int64, copy=False)
    return corpus_bleu(counts, effective_order=True)


@dataclass(frozen=True, slots=True)
class MetricColumns:
    """The columns of a metric among the statistics, from `begin` to `end`, and its score.

    score: (…, end − begin) → (…,), larger is better
    """

    name: str
    begin: int
    end: int
    score: Callable[[Sums], Floats]

    def of(self, sums: Sums) -> Floats:
        """Scores (…,) of statistics (…, W)."""
        return np.asarray(self.score(sums[..., self.begin : self.end]), dtype=np.float64)


BLEU = MetricColumns("BLEU", 0, WIDTH, corpus_bleu)
"""BLEU in 0..100 with sacrebleu's exponential smoothing."""


class Objective(Protocol):
    """A value for the sums (D, W) of D documents, and for each of the m intervals of a line.

    `along` takes what each break of the line adds to the statistics, (m, W) in the order of the
    breaks. Interval i follows break i. The values of intervals without width mean nothing; between
    breaks at −∞, where the line begins, the statistics of some lists are still missing.
    """

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        ...

    def along(self, changes: Sums) -> Floats:
        """Values (m,) of the intervals of a line."""
        ...


@dataclass(frozen=True, slots=True)
class CorpusMetric:
    """A metric of the whole corpus. O(m W) along a line."""

    metric: MetricColumns = BLEU

    @property
    def name(self) -> str:
        """For example `corpus BLEU`."""
        return f"corpus {self.metric.name}"

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        return float(self.metric.of(sums.sum(axis=0)))

    def along(self, changes: Sums) -> Floats:
        """Values (m,) of the intervals of a line."""
        return self.metric.of(_accumulated(changes))


@dataclass(frozen=True, slots=True)
class ObjectiveSum:
    """A weighted sum of objectives; the weights are not normalised."""

    parts: tuple[tuple[float, Objective], ...]

    @property
    def name(self) -> str:
        """For example `0.5 corpus BLEU + 0.5 corpus chrF2`."""
        return " + ".join(f"{weight:g} {objective.name}" for weight, objective in self.parts)

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        return float(sum(weight * objective.value(sums) for weight, objective in self.parts))

    def along(self, changes: Sums) -> Floats:
        """Values (m,) of the intervals of a line."""
        values = np.zeros(len(changes))
        for weight, objective in self.parts:
            values += weight * objective.along(changes)
        return values


@dataclass(frozen=True, slots=True)
class LengthPenalty:
    """An objective minus `price` · |length ratio of the corpus − `ratio`|.

    held: whether the ratio is what the start weights choose in the same documents (`at_length`)
    """

    objective: Objective
    ratio: float
    price: float
    held: bool = False

    @property
    def name(self) -> str:
        """For example `corpus BLEU − 5 |length ratio − 0.980|`."""
        ratio = "the start's" if self.held else f"{self.ratio:.3f}"
        return f"{self.objective.name} − {self.price:g} |length ratio − {ratio}|"

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        return self.objective.value(sums) - float(self._cost(sums.sum(axis=0)))

    def along(self, changes: Sums) -> Floats:
        """Values (m,) of the intervals of a line."""
        lengths = _accumulated(changes[:, :WIDTH])
        return self.objective.along(changes) - self._cost(lengths)

    def _cost(self, sums: Sums) -> Floats:
        return self.price * np.abs(length_ratio(sums) - self.ratio)


CORPUS_BLEU = CorpusMetric()


def objective_of(options: ObjectiveOptions, metrics: Sequence[Metric]) -> Objective:
    """The objective on statistics of metrics: BLEU, then the others of the options in order."""
    others, begin = iter(metrics[1:]), WIDTH
    parts: list[tuple[float, Objective]] = []
    for name, weight in options.metrics:
        columns = BLEU
        if name != BLEU_NAME:
            metric = next(others)
            columns = MetricColumns(metric.name, begin, begin + metric.width, metric.scores)
            begin += metric.width
        parts.append((weight, CorpusMetric(columns)))
    (weight, first), *more = parts
    return first if weight == 1 and not more else ObjectiveSum(tuple(parts))


def hold_length(objective: Objective) -> LengthPenalty:
    """The objective with a price on other lengths than the one that `at_length` sets."""
    other = metrics_of(objective.name) != [BLEU.name]
    return LengthPenalty(objective, 1.0, _OTHER_PRICE if other else LENGTH_PRICE, held=True)


def holds_length(objective: Objective) -> TypeGuard[LengthPenalty]:
    """Whether an objective is of `hold_length`."""
    return isinstance(objective, LengthPenalty) and objective.held


def free_length(objective: Objective) -> Objective:
    """The objective as it was before `hold_length`."""
    return objective.objective if holds_length(objective) else objective


def at_length(objective: Objective, start: Sums) -> Objective:
    """The objective that holds the length of these statistics (…, W); others stay as they are."""
    return replace(objective, ratio=length_of(start)) if holds_length(objective) else objective


# what `name` of these classes begins with, before a metric
_TERM = re.compile(r"(?:^|(?<= \+ ))(?:\S+ )?corpus (.+?)(?= \+ | − |$)")


def metrics_of(objective: str) -> list[str]:
    """Names of the metrics of an objective, by its name: of `corpus BLEU − 5 |…|`, BLEU."""
    return _TERM.findall(objective)


def jackknife(objective: Objective, sums: Sums) -> tuple[Floats, Floats]:
    """Values (C,) of statistics (C, U, W) of the same units, and without each group of them (C, G).

    Where the objective holds the length, it is that of the first, on the same units.
    """
    group = np.arange(sums.shape[1]) % _GROUPS
    every = np.ones(len(group), dtype=np.bool_)
    kept = [every, *(group != g if group.any() else every for g in np.unique(group))]
    values = np.array(
        [
            [at_length(objective, sums[0][units]).value(candidate[units]) for candidate in sums]
            for units in kept
        ]
    )
    return values[0], values[1:].T


def standard_error(values: Floats) -> float:
    """Standard error of a statistic by its values without each of G groups (G,)."""
    spread = float(((values - values.mean()) ** 2).sum())
    return math.sqrt(spread * (len(values) - 1) / len(values))


def _accumulated(changes: Sums) -> Sums:
    """Cumulative sums over rows, in 64 bits."""
    return np.cumsum(changes, axis=0, dtype=np.result_type(changes, np.int64))
