"""The goal of a line search: the value of an objective, less the price of shrinkage, on a line.

A line in the space of weights is given by the breaks where choices change along it. Corpus BLEU
with or without a price of length has a compiled pass over the intervals, which computes few
logarithms; every other objective is evaluated on all intervals by numpy. Shrinkage is a price for
leaving the direction of the start weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.files.compilation import njit
from rerank.metrics import Metric
from rerank.metrics.bleu import WIDTH, length_ratio, score
from rerank.tuning.objective import (
    BLEU,
    CORPUS_BLEU,
    CorpusMetric,
    DocumentMean,
    LengthPenalty,
    MetricColumns,
    Objective,
    ObjectiveSum,
    Sums,
    WorstDocuments,
    at_length,
    hold_length,
    length_of,
)
from rerank.tuning.plan import BLEU as BLEU_NAME
from rerank.tuning.plan import ObjectiveOptions

GAIN = 1e-9  # sums of floats depend on their order; differences up to this are not gains
_LEAST = 1e-4  # share of the price: smaller gains are ignored, otherwise a climb need not end
NARROW = 2.0**-40  # width ÷ size of an interval: narrower ones may be rounding of one break


@dataclass(frozen=True, slots=True, eq=False)
class SearchLine:
    """The m breaks of a line weights + step · direction, and what changes at each of them.

    breaks: (m,) float64, steps; those at −inf give the choices at the beginning of the line
    order: (m,) int64, sorts the breaks; interval i lies after break order[i]
    changes: (m, W), what each break adds to the summed statistics
    documents: (m,) int64, document that each break changes
    weights, direction: (F,) float64
    span: least and greatest step allowed; intervals are cut to it
    unit: a step of ordinary size, 1 ÷ spread of the direction's slopes
    """

    breaks: NDArray[np.float64]
    order: NDArray[np.int64]
    changes: Sums
    documents: NDArray[np.int64]
    weights: NDArray[np.float64]
    direction: NDArray[np.float64]
    span: tuple[float, float]
    unit: float

    def intervals(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Numbers of the intervals that have width within the span, left ends, steps inside."""
        return _intervals(self.breaks, self.order, (*self.span, self.unit))


@dataclass(frozen=True, slots=True)
class Step:
    """The best step of a search along a line, 0 where nothing is gained, and the goal's value."""

    size: float
    value: float


Products: TypeAlias = tuple[float, float, float, float, float, float]
"""What the price along a line depends on, for compiled code.

price, anchor · point, anchor · direction, |point|², point · direction, |direction|²; the anchor is
a unit vector.
"""
Length: TypeAlias = tuple[float, float]
"""Length ratio and its price, for compiled code."""
FREE: Products = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Shrinkage:
    """Regularisation towards the direction of weights `anchor` (F,): price · (1 − cosine).

    scale: (F,) spreads of the features; cosines are those of weights · scale. The price does not
    depend on the size of the weights, as BLEU does not.
    """

    anchor: NDArray[np.float64]
    scale: NDArray[np.float64]
    price: float

    def along(self, weights: NDArray[np.float64], direction: NDArray[np.float64]) -> Products:
        """The products that the price along a line depends on."""
        anchor, point, step = (one * self.scale for one in (self.anchor, weights, direction))
        anchor = anchor / np.linalg.norm(anchor)
        ahead = float(anchor @ point), float(anchor @ step)
        return (self.price, *ahead, float(point @ point), float(point @ step), float(step @ step))


@njit(cache=True, nogil=True, error_model="numpy")
def cost(step: float, products: Products) -> float:
    """The price at a step along a line with these products; all of it for all-zero weights."""
    price, anchored, anchored_step, square, crossed, square_step = products
    norm = math.sqrt(max(square + 2 * step * crossed + step * step * square_step, 0.0))
    cosine = (anchored + step * anchored_step) / norm if norm > 0 else 0.0
    return price * (1 - cosine)


@dataclass(frozen=True, slots=True, eq=False)
class SearchGoal:
    """An objective, with the price of leaving the start weights' direction where there is one."""

    objective: Objective = CORPUS_BLEU
    shrinkage: Shrinkage | None = None

    def at(self, start: Sums) -> SearchGoal:
        """The goal on documents of which the start weights choose these statistics (…, W)."""
        return replace(self, objective=at_length(self.objective, start))

    def held(self, start: Sums) -> SearchGoal:
        """The goal with a price on other lengths than that of the start, statistics (…, W).

        How long translations are is a property of documents and of who translated them; a gain
        that comes of another length says little about new documents.
        """
        return replace(self, objective=hold_length(self.objective)).at(start)

    @property
    def name(self) -> str:
        """What is maximised, for people and for the weights file."""
        if self.shrinkage is None:
            return self.objective.name
        return f"{self.objective.name} − {self.shrinkage.price:g} (1 − cosine with the start)"

    def value(self, sums: Sums, weights: NDArray[np.float64]) -> float:
        """The value of summed statistics (D, W) of documents, at weights (F,)."""
        value = self.objective.value(sums)
        return value - cost(0.0, self._products(weights, np.zeros_like(weights)))

    def best(self, line: SearchLine, here: float) -> Step:
        """The best step along a line; `here` is the value at step 0.

        Of intervals with equal values the one with the smallest steps. For m sorted breaks O(m)
        where the objective is compiled, else O(m W).
        """
        length, steps = self._length(), (*line.span, line.unit)
        products = self._products(line.weights, line.direction)
        gain = _LEAST * products[0]
        if length is None:
            size, value = self._best(line, products, here, max(GAIN, gain))
        else:
            size, value = _best_interval(
                line.breaks, line.order, line.changes, steps, length, products, here, gain
            )
        return Step(size, value) if np.isfinite(size) else Step(0.0, here)

    def _best(
        self, line: SearchLine, products: Products, here: float, gain: float
    ) -> tuple[float, float]:
        """`_best_interval` of an objective that is not compiled."""
        kept, _, steps = line.intervals()
        if not len(kept):
            return 0.0, here
        changes = line.changes.take(line.order, axis=0)  # faster than an index
        values = self.objective.along(changes, line.documents[line.order])[kept]
        if self.shrinkage:
            values = values - np.array([cost(step, products) for step in steps.tolist()])
        best = int(values.argmax())
        gains = values[best] > here + gain
        return (float(steps[best]), float(values[best])) if gains else (0.0, here)

    def _length(self) -> Length | None:
        """The part of length in an objective that is compiled, None for all others."""
        objective = self.objective
        if objective == CORPUS_BLEU:
            return 1.0, 0.0
        if isinstance(objective, LengthPenalty) and objective.objective == CORPUS_BLEU:
            return objective.ratio, objective.price
        return None

    def _products(self, weights: NDArray[np.float64], direction: NDArray[np.float64]) -> Products:
        return self.shrinkage.along(weights, direction) if self.shrinkage else FREE


BLEU_GOAL = SearchGoal()
"""Corpus BLEU and nothing else."""


def length_ratios(sums: Sums) -> tuple[NDArray[np.float64], float]:
    """Length ratio of each document with words in its references, and their standard deviation.

    sums: (D, W) summed statistics. The deviation is weighted by the lengths of the references.
    """
    own = sums[sums[:, WIDTH - 1] > 0, :WIDTH]
    ratios, words = length_ratio(own), own[:, WIDTH - 1]
    variance = float(words @ (ratios - length_of(sums)) ** 2) / max(float(words.sum()), 1.0)
    return ratios, math.sqrt(variance)


def objective_of(options: ObjectiveOptions, metrics: Sequence[Metric]) -> Objective:
    """The objective on statistics that hold the columns of these metrics, BLEU's first.

    `metrics` has BLEU, then every other metric that the options name, in this order.
    """
    others, begin = iter(metrics[1:]), WIDTH
    parts: list[tuple[float, Objective]] = []
    for name, weight in options.metrics:
        columns = BLEU
        if name != BLEU_NAME:
            other = next(others)
            columns = MetricColumns(other.name, begin, begin + other.width, other.scores)
            begin += other.width
        one: Objective = DocumentMean(columns) if options.documents else CorpusMetric(columns)
        if options.worst is not None:
            one = WorstDocuments(options.worst / 100, columns)
        parts.append((weight, one))
    (weight, only), *more = parts
    return only if weight == 1 and not more else ObjectiveSum(tuple(parts))


def goal_of(
    options: ObjectiveOptions,
    objective: Objective,
    first: Sums,
    start: NDArray[np.float64],
    *,
    settled: bool,
    scale: Callable[[], NDArray[np.float64]],
) -> SearchGoal:
    """The goal of a search from weights `start` (F,) of the tuned features.

    first: (W,) summed statistics of the first candidates; settled: whether a part of the scores is
    not tuned; scale: gives the spread of each feature, (F,). Features whose start weight is 0 are
    free of shrinkage. UsageError for --shrink where no direction is there to keep to.
    """
    if options.length_price > 0:
        ratio = length_of(first) if options.length == "keep" else float(options.length)
        objective = LengthPenalty(objective, ratio, options.length_price)
    price, shrinkage = options.shrinkage_price, None
    if price and (settled or not start.any()):
        if options.shrinkage:
            why = (
                "a part of the scores is not tuned, so that the size of the tuned weights "
                "matters, not their direction alone"
                if settled
                else "all tuned weights start at 0"
            )
            raise UsageError(f"--shrink {options.shrinkage:g}: {why}; leave it out")
    elif price and (known := np.where(start != 0, scale(), 0.0)).any():
        shrinkage = Shrinkage(start, known, price)
    return SearchGoal(objective, shrinkage)


@njit(cache=True, nogil=True, error_model="numpy")
def _best_interval(
    breaks: NDArray[np.float64],
    order: NDArray[np.int64],
    changes: Sums,
    steps: tuple[float, float, float],
    length: Length,
    products: Products,
    here: float,
    gain: float,
) -> tuple[float, float]:
    """A step into the best interval and its value; (0, here) if none gains more than `gain`.

    steps: least and greatest step allowed, and one of ordinary size.
    """
    total = np.zeros(WIDTH, dtype=np.int64)
    best, value = 0.0, here + gain
    worth = _worth(value)
    found = False
    for i in range(len(order)):
        for k in range(WIDTH):
            total[k] += changes[order[i], k]
        left = max(breaks[order[i]], steps[0])
        right = min(breaks[order[i + 1]] if i + 1 < len(order) else np.inf, steps[1])
        if left >= right:
            continue
        if _ceiling(total) >= worth and _wide(left, right, steps[2]):
            this = _priced(total, length)
            if this > value:
                step = _inside(left, right, steps[2])
                if products[0] > 0:
                    this -= cost(step, products)
                if this > value:
                    best, value, found = step, this, True
                    worth = _worth(value)
    return best, (value if found else here)


@njit(cache=True, nogil=True, error_model="numpy")
def _priced(total: NDArray[np.int64], length: Length) -> float:
    """BLEU of summed statistics less the price of their length."""
    ratio, price = length
    own = total[4] / max(total[8], 1) if total[8] != 0 else 0.0
    value: float = score(total, False) - price * abs(own - ratio)
    return value


@njit(cache=True, nogil=True)
def _intervals(
    breaks: NDArray[np.float64], order: NDArray[np.int64], steps: tuple[float, float, float]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """`SearchLine.intervals`; steps as in `_best_interval`."""
    m, kept = 0, np.empty_like(order)
    lefts, inside = np.empty(len(order)), np.empty(len(order))
    for i in range(len(order)):
        left = max(breaks[order[i]], steps[0])
        right = min(breaks[order[i + 1]] if i + 1 < len(order) else np.inf, steps[1])
        if left < right and _wide(left, right, steps[2]):
            kept[m], lefts[m], inside[m] = i, left, _inside(left, right, steps[2])
            m += 1
    return kept[:m], lefts[:m], inside[:m]


@njit(cache=True, nogil=True)
def _wide(left: float, right: float, unit: float) -> bool:
    """Whether an interval has width.

    Breaks of several lists at the same step may differ by rounding; the narrow interval between
    them is left out, since no weights make its choices.
    """
    size = max(abs(left), abs(right), unit)
    wide: bool = right - left > NARROW * (size if size < np.inf else 0.0)
    return wide


@njit(cache=True, nogil=True)
def _inside(left: float, right: float, unit: float) -> float:
    """A step inside an interval: the middle, or beyond the finite end where the other is infinite.

    Beyond an end by its own size, but at least by a unit; step 0 on a line without breaks. A step
    that float64 cannot hold is infinite.
    """
    if left == -np.inf and right == np.inf:
        return 0.0
    if left == -np.inf:
        return right - max(abs(right), unit)
    if right == np.inf:
        return left + max(abs(left), unit)
    return left + (right - left) / 2


@njit(cache=True, nogil=True)
def _worth(value: float) -> float:
    """The least (BLEU / 100)⁴ of an interval that can exceed a value."""
    return (max(value, 0.0) / 100) ** 4 * (1 - 1e-9)


@njit(cache=True, nogil=True, error_model="numpy")
def _ceiling(total: NDArray[np.int64]) -> float:
    """Upper bound of (BLEU / 100)⁴ without a logarithm; close enough to rule out most intervals."""
    matches, grams = 1.0, 1.0
    for n in range(4):
        matches *= max(total[n], 1)
        grams *= total[4 + n]
    if grams == 0:
        return 0.0
    short = max(4 * (total[8] / total[4] - 1), 0.0)
    brevity = 1 / (1 + short * (1 + short / 2))  # ≥ exp(−short)
    bound: float = matches / grams * brevity
    return bound
