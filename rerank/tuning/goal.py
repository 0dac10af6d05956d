"""The goal of a line search: the value of an objective, less the price of shrinkage, on a line.

Corpus BLEU with or without a price of length has a compiled pass over the intervals of a line,
which computes few logarithms; every other objective is evaluated on all intervals by numpy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.files.compilation import njit
from rerank.metrics.bleu import WIDTH, score
from rerank.tuning.objective import (
    CORPUS_BLEU,
    LengthPenalty,
    Objective,
    Sums,
    at_length,
    hold_length,
    length_of,
)
from rerank.tuning.plan import ObjectiveOptions

GAIN = 1e-9  # sums of floats depend on their order; differences up to this are not gains
_LEAST = 1e-4  # share of the price: smaller gains are ignored, otherwise a climb need not end
NARROW = 2.0**-40  # width ÷ size of an interval: narrower ones may be rounding of one break
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SearchLine:
    """The m breaks of a line weights + step · direction, and what changes at each of them.

    breaks: (m,) float64, steps; those at −inf give the choices at the beginning of the line
    order: (m,) int64, sorts the breaks; interval i lies after break order[i]
    changes: (m, W), what each break adds to the summed statistics
    weights, direction: (F,) float64
    span: least and greatest step allowed; intervals are cut to it
    unit: a step of ordinary size, 1 ÷ spread of the direction's slopes
    """

    breaks: Floats
    order: Integers
    changes: Sums
    weights: Floats
    direction: Floats
    span: tuple[float, float]
    unit: float

    def intervals(self) -> tuple[Integers, Floats, Floats]:
        """Numbers of the intervals that have width within the span, left ends, steps inside."""
        return _intervals(self.breaks, self.order, (*self.span, self.unit))


@dataclass(frozen=True, slots=True)
class Step:
    """The best step of a search along a line, 0 where nothing is gained, and the goal's value."""

    size: float
    value: float


Products: TypeAlias = tuple[float, float, float, float, float, float]
"""What the price along a line depends on, for compiled code; the anchor is a unit vector.

price, anchor · point, anchor · direction, |point|², point · direction, |direction|²
"""
FREE: Products = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
Length: TypeAlias = tuple[float, float]
"""Length ratio and its price, for compiled code."""


@dataclass(frozen=True, slots=True, eq=False)
class Shrinkage:
    """Regularisation towards the direction of weights `anchor` (F,): price · (1 − cosine).

    scale: (F,) spreads of the features; cosines are those of weights · scale. The price does not
    depend on the size of the weights, as BLEU does not.
    """

    anchor: Floats
    scale: Floats
    price: float

    def along(self, weights: Floats, direction: Floats) -> Products:
        """The products that the price along a line depends on."""
        anchor, point, step = (vector * self.scale for vector in (self.anchor, weights, direction))
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

        A gain that comes of another length says little about new documents.
        """
        return replace(self, objective=hold_length(self.objective)).at(start)

    @property
    def name(self) -> str:
        """What is maximised, for people and for the weights file."""
        if self.shrinkage is None:
            return self.objective.name
        return f"{self.objective.name} − {self.shrinkage.price:g} (1 − cosine with the start)"

    def value(self, sums: Sums, weights: Floats) -> float:
        """The value of summed statistics (D, W) of documents, at weights (F,)."""
        value = self.objective.value(sums)
        return value - cost(0.0, self._products(weights, np.zeros_like(weights)))

    def best(self, line: SearchLine, here: float) -> Step:
        """The best step along a line; `here` is the value at step 0.

        Of intervals with equal values the one with the smallest steps. For m sorted breaks O(m)
        where the objective is compiled, else O(m W).
        """
        products = self._products(line.weights, line.direction)
        gain = _LEAST * products[0]
        length = self._compiled_length()
        if length is None:
            size, value = self._best_interval(line, products, here, max(GAIN, gain))
        else:
            steps = (*line.span, line.unit)
            size, value = _best_interval(
                line.breaks, line.order, line.changes, steps, length, products, here, gain
            )
        return Step(size, value) if np.isfinite(size) else Step(0.0, here)

    def _best_interval(
        self, line: SearchLine, products: Products, here: float, gain: float
    ) -> tuple[float, float]:
        """`_best_interval` of an objective that is not compiled."""
        kept, _, steps = line.intervals()
        if not len(kept):
            return 0.0, here
        changes = line.changes.take(line.order, axis=0)  # faster than an index
        values = self.objective.along(changes)[kept]
        if self.shrinkage:
            values = values - np.array([cost(step, products) for step in steps.tolist()])
        best = int(values.argmax())
        gains = values[best] > here + gain
        return (float(steps[best]), float(values[best])) if gains else (0.0, here)

    def _compiled_length(self) -> Length | None:
        """The part of length in an objective that is compiled, None for all others."""
        objective = self.objective
        if objective == CORPUS_BLEU:
            return 1.0, 0.0
        if isinstance(objective, LengthPenalty) and objective.objective == CORPUS_BLEU:
            return objective.ratio, objective.price
        return None

    def _products(self, weights: Floats, direction: Floats) -> Products:
        return self.shrinkage.along(weights, direction) if self.shrinkage else FREE


BLEU_GOAL = SearchGoal()
"""Corpus BLEU and nothing else."""


def goal_of(
    options: ObjectiveOptions,
    objective: Objective,
    first: Sums,
    start: Floats,
    *,
    settled: bool,
    scale: Callable[[], Floats],
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
    breaks: Floats,
    order: Integers,
    changes: Sums,
    steps: tuple[float, float, float],
    length: Length,
    products: Products,
    here: float,
    gain: float,
) -> tuple[float, float]:
    """A step into the best interval and its value; (0, here) if none gains more than `gain`."""
    total = np.zeros(WIDTH, dtype=np.int64)
    best, value = 0.0, here + gain
    worth = _worth(value)
    gains = False
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
                    best, value, gains = step, this, True
                    worth = _worth(value)
    return best, (value if gains else here)


@njit(cache=True, nogil=True, error_model="numpy")
def _priced(total: Integers, length: Length) -> float:
    """BLEU of summed statistics less the price of their length."""
    ratio, price = length
    reached = total[4] / max(total[8], 1) if total[8] != 0 else 0.0
    value: float = score(total, False) - price * abs(reached - ratio)
    return value


@njit(cache=True, nogil=True)
def _intervals(
    breaks: Floats, order: Integers, steps: tuple[float, float, float]
) -> tuple[Integers, Floats, Floats]:
    """`SearchLine.intervals`; steps: least and greatest step allowed, and one of ordinary size."""
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
    """Whether an interval has width: breaks of several lists at one step may differ by rounding."""
    size = max(abs(left), abs(right), unit)
    wide: bool = right - left > NARROW * (size if size < np.inf else 0.0)
    return wide


@njit(cache=True, nogil=True)
def _inside(left: float, right: float, unit: float) -> float:
    """A step inside an interval: the middle, or beyond its finite end by that end's size or a unit.

    Step 0 on a line without breaks; a step that float64 cannot hold is infinite.
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
def _ceiling(total: Integers) -> float:
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
