"""Objectives of tuning: functions of summed statistics, of the whole corpus or of its documents.

An objective has a value at a point, and on every interval of a line in the space of weights, where
the statistics of one sentence change at a time. Larger is better. Statistics have W columns. The
first nine are always those of BLEU (`rerank.metrics.bleu`), from which lengths are taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.metrics.bleu import WIDTH, corpus_bleu, length_ratio
from rerank.tuning.plan import LENGTH_PRICE

Sums: TypeAlias = NDArray[Any]
"""Statistics that add up, (…, W): integers, or float64 where a metric is not counted."""
Floats: TypeAlias = NDArray[np.float64]


def bleu_counts(sums: Sums) -> NDArray[np.int64]:
    """The nine statistics of BLEU (9,) of summed statistics (W,), or of documents' (D, W)."""
    counts = np.atleast_2d(sums)[:, :WIDTH].sum(axis=0)
    return np.asarray(counts, dtype=np.int64)


def bleu_of(sums: Sums) -> float:
    """Corpus BLEU, 0..100, of summed statistics (W,) or (D, W)."""
    return float(corpus_bleu(bleu_counts(sums)))


def length_of(sums: Sums) -> float:
    """Length ÷ length of the references, of summed statistics (W,) or (D, W)."""
    return float(length_ratio(bleu_counts(sums)))


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


# price of a length ratio that is off by 1, of other metrics than BLEU: chrF rises by some 6 with
# longer candidates
_OTHER_PRICE = 20.0
_GROUPS = 50  # of units in a jackknife, at most
BLEU = MetricColumns("BLEU", 0, WIDTH, corpus_bleu)
"""BLEU in 0..100 with sacrebleu's exponential smoothing, of a corpus and of a document."""


class Objective(Protocol):
    """A value for the sums (D, W) of D documents, and for each of the m intervals of a line.

    `along` takes what each break of the line adds to the statistics, (m, W) in the order of the
    breaks, and the document of each break, (m,) numbers from 0 to D − 1. Each document occurs:
    every list with candidates has a break at −∞, where the line begins. Interval i follows break i.
    The values of intervals without width mean nothing; between breaks at −∞ the statistics of
    some documents are still missing.
    """

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        ...

    def along(self, changes: Sums, documents: NDArray[np.int64]) -> Floats:
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

    def along(self, changes: Sums, documents: NDArray[np.int64]) -> Floats:
        """Values (m,) of the intervals of a line."""
        return self.metric.of(_accumulated(changes))


@dataclass(frozen=True, slots=True)
class DocumentMean:
    """The unweighted mean of a metric over documents.

    O(m (W + log m)) along a line.
    """

    metric: MetricColumns = BLEU

    @property
    def name(self) -> str:
        """For example `mean document BLEU`."""
        return f"mean document {self.metric.name}"

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        return float(self.metric.of(sums).mean())

    def along(self, changes: Sums, documents: NDArray[np.int64]) -> Floats:
        """Values (m,) of the intervals of a line."""
        rises = np.empty(len(changes))
        for rows, scores in _by_document(self.metric, changes, documents):
            rises[rows] = np.diff(scores, prepend=0.0)
        n_documents = int(documents.max(initial=0)) + 1
        return np.asarray(np.cumsum(rises) / n_documents)


@dataclass(frozen=True, slots=True)
class WorstDocuments:
    """The mean of a metric over the worst `share` (0 < share ≤ 1) of the documents, at least one.

    O(m (W + log m + D)) along a line of D documents.
    """

    share: float
    metric: MetricColumns = BLEU

    @property
    def name(self) -> str:
        """For example `worst 25 % of documents, BLEU`."""
        return f"worst {100 * self.share:g} % of documents, {self.metric.name}"

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        scores = np.sort(self.metric.of(sums))
        return float(scores[: self._number(len(scores))].mean())

    def along(self, changes: Sums, documents: NDArray[np.int64]) -> Floats:
        """Values (m,) of the intervals of a line."""
        n_documents = int(documents.max(initial=0)) + 1
        now = np.empty(len(changes))
        for rows, scores in _by_document(self.metric, changes, documents):
            now[rows] = scores
        return _worst(now, documents, n_documents, self._number(n_documents))

    def _number(self, n_documents: int) -> int:
        return max(1, int(np.ceil(self.share * n_documents - 1e-9)))


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

    def along(self, changes: Sums, documents: NDArray[np.int64]) -> Floats:
        """Values (m,) of the intervals of a line."""
        values = np.zeros(len(changes))
        for weight, objective in self.parts:
            values += weight * objective.along(changes, documents)
        return values


@dataclass(frozen=True, slots=True)
class LengthPenalty:
    """An objective minus `price` · |length ratio of the corpus − `ratio`|."""

    objective: Objective
    ratio: float
    price: float

    @property
    def name(self) -> str:
        """For example `corpus BLEU − 5 |length ratio − 0.980|`."""
        return f"{self.objective.name} − {self.price:g} |length ratio − {self.ratio:.3f}|"

    def value(self, sums: Sums) -> float:
        """Value of summed statistics (D, W)."""
        return self.objective.value(sums) - float(self._cost(sums.sum(axis=0)))

    def along(self, changes: Sums, documents: NDArray[np.int64]) -> Floats:
        """Values (m,) of the intervals of a line."""
        lengths = _accumulated(changes[:, :WIDTH])
        return self.objective.along(changes, documents) - self._cost(lengths)

    def _cost(self, sums: Sums) -> Floats:
        return self.price * np.abs(length_ratio(sums) - self.ratio)


class HeldLength(LengthPenalty):
    """A price on leaving the length that the start weights choose in the same documents."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """For example `corpus BLEU − 5 |length ratio − the start's|`."""
        return f"{self.objective.name} − {self.price:g} |length ratio − the start's|"


CORPUS_BLEU = CorpusMetric()


def hold_length(objective: Objective) -> HeldLength:
    """The objective with a price on other lengths than the one that `at_length` sets."""
    other = metrics_of(objective.name) != [BLEU.name]
    return HeldLength(objective, 1.0, _OTHER_PRICE if other else LENGTH_PRICE)


def free_length(objective: Objective) -> Objective:
    """The objective as it was before `hold_length`."""
    return objective.objective if isinstance(objective, HeldLength) else objective


def at_length(objective: Objective, start: Sums) -> Objective:
    """The objective that holds the length of these statistics (…, W); others stay as they are."""
    return (
        replace(objective, ratio=length_of(start))
        if isinstance(objective, HeldLength)
        else objective
    )


# what `name` of these classes begins with, before a metric
_TERM = re.compile(
    r"(?:^|(?<= \+ ))(?:\S+ )?(?:corpus|mean document|worst \S+ % of documents,) "
    r"(.+?)(?= \+ | − |$)"
)


def jackknife(objective: Objective, several: Sums) -> tuple[Floats, Floats]:
    """Values (C,) of statistics (C, U, W) of the same units, and without each group of them (C, G).

    G ≤ 50. Where the objective holds the length, it is that of the first, on the same units.
    """
    group = np.arange(several.shape[1]) % _GROUPS
    every = np.ones(len(group), dtype=np.bool_)
    found = np.array(
        [
            [at_length(objective, several[0][own]).value(one[own]) for one in several]
            for own in (every, *(group != g if group.any() else every for g in np.unique(group)))
        ]
    )
    return found[0], found[1:].T


def standard_error(values: Floats) -> float:
    """Standard error of a statistic whose values without each of G groups are given (G,)."""
    spread = float(((values - values.mean()) ** 2).sum())
    return math.sqrt(spread * (len(values) - 1) / len(values))


def metrics_of(objective: str) -> list[str]:
    """Names of the metrics of an objective, given its name: of `corpus BLEU − 5 |…|`, BLEU.

    In their order; prices of length and of shrinkage are no metrics.
    """
    return _TERM.findall(objective)


def _accumulated(changes: Sums) -> Sums:
    """Cumulative sums over rows, in 64 bits."""
    return np.cumsum(changes, axis=0, dtype=np.result_type(changes, np.int64))


def _by_document(
    metric: MetricColumns, changes: Sums, documents: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], Floats]]:
    """For each document the rows that change it, in order, and its scores after each of them."""
    order = np.argsort(documents, kind="stable")
    ends = np.flatnonzero(np.diff(documents[order])) + 1
    return [
        (rows, metric.of(_accumulated(changes.take(rows, axis=0))))
        for rows in np.split(order, ends)
        if len(rows)
    ]


@njit(cache=True, nogil=True)
def _worst(now: Floats, documents: NDArray[np.int64], n_documents: int, number: int) -> Floats:
    """Mean of the `number` smallest scores after each change, among the scores known by then."""
    ordered = np.full(n_documents, np.inf)  # ascending
    current = np.full(n_documents, np.inf)
    means = np.empty(len(now))
    for i in range(len(now)):
        old, new = current[documents[i]], now[i]
        current[documents[i]] = new
        place = np.searchsorted(ordered, old)
        while place > 0 and ordered[place - 1] > new:
            ordered[place] = ordered[place - 1]
            place -= 1
        while place < n_documents - 1 and ordered[place + 1] < new:
            ordered[place] = ordered[place + 1]
            place += 1
        ordered[place] = new
        total, counted = 0.0, 0
        for d in range(number):
            if ordered[d] < np.inf:
                total += ordered[d]
                counted += 1
        means[i] = total / max(counted, 1)
    return means
