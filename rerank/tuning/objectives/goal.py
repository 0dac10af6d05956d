"""The goal of a line search: the value of an objective, less the price of shrinkage, on a line.

Corpus BLEU with or without a price of length has a compiled pass over the intervals, which computes
few logarithms; every other objective is evaluated on all intervals by numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, score
from rerank.tuning.mert.line import NARROW, SearchLine, Step
from rerank.tuning.objectives.objective import CORPUS_BLEU, LengthPenalty, Objective, Sums
from rerank.tuning.objectives.shrinkage import FREE, Products, Shrinkage, cost

GAIN = 1e-9  # sums of floats depend on their order; differences up to this are not gains
_LEAST = 1e-4  # share of the price: smaller gains are ignored, otherwise a climb need not end


@dataclass(frozen=True, slots=True, eq=False)
class SearchGoal:
    """An objective, with the price of leaving the start weights' direction where there is one."""

    objective: Objective = CORPUS_BLEU
    shrinkage: Shrinkage | None = None

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
        price = self._length_price()
        found = self._best(line, here) if price is None else self._best_bleu(line, here, price)
        return found if np.isfinite(found.size) else Step(0.0, here)

    def _length_price(self) -> tuple[float, float] | None:
        """Length ratio and price of an objective that is compiled, None for all others."""
        if self.objective == CORPUS_BLEU:
            return 1.0, 0.0
        if isinstance(self.objective, LengthPenalty) and self.objective.objective == CORPUS_BLEU:
            return self.objective.ratio, self.objective.price
        return None

    def _products(self, weights: NDArray[np.float64], direction: NDArray[np.float64]) -> Products:
        return self.shrinkage.along(weights, direction) if self.shrinkage else FREE

    def _best(self, line: SearchLine, here: float) -> Step:
        kept, left, right = line.intervals()
        if not len(kept):
            return Step(0.0, here)
        changes = line.changes.take(line.order, axis=0)  # faster than an index
        values = self.objective.along(changes, line.documents[line.order])[kept]
        steps = line.inside(left, right)
        gain = GAIN
        if self.shrinkage:
            values = values - self.shrinkage.cost(line.weights, line.direction, steps)
            gain = max(GAIN, _LEAST * self.shrinkage.price)
        best = int(values.argmax())
        if not values[best] > here + gain:
            return Step(0.0, here)
        return Step(float(steps[best]), float(values[best]))

    def _best_bleu(self, line: SearchLine, here: float, length_price: tuple[float, float]) -> Step:
        size, value = _best_interval(
            line.breaks,
            line.order,
            line.changes,
            (*line.span, line.unit),
            length_price,
            self._products(line.weights, line.direction),
            here,
            _LEAST * self.shrinkage.price if self.shrinkage else 0.0,
        )
        return Step(size, value)


BLEU_GOAL = SearchGoal()
"""Corpus BLEU and nothing else."""


@njit(cache=True, nogil=True, error_model="numpy")
def _best_interval(
    breaks: NDArray[np.float64],
    order: NDArray[np.int64],
    changes: Sums,
    steps: tuple[float, float, float],
    length: tuple[float, float],
    products: Products,
    here: float,
    gain: float,
) -> tuple[float, float]:
    """A step into the best interval and its value; (0, here) if none gains more than `gain`.

    steps: least and greatest step allowed, and one of ordinary size; length: length ratio and its
    price.
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
            this = _priced(total, length[0], length[1])
            if this > value:
                step = _inside(left, right, steps[2])
                if products[0] > 0:
                    this -= cost(step, products)
                if this > value:
                    best, value, found = step, this, True
                    worth = _worth(value)
    return best, (value if found else here)


@njit(cache=True, nogil=True, error_model="numpy")
def _priced(total: NDArray[np.int64], ratio: float, price: float) -> float:
    """BLEU of summed statistics less the price of their length."""
    length = total[4] / total[8] if total[8] > 0 else 0.0
    value: float = score(total, False) - price * abs(length - ratio)
    return value


@njit(cache=True, nogil=True)
def _wide(left: float, right: float, unit: float) -> bool:
    """Whether an interval has width, by the rule of `SearchLine.intervals`."""
    size = max(abs(left), abs(right), unit)
    wide: bool = right - left > NARROW * (size if size < np.inf else 0.0)
    return wide


@njit(cache=True, nogil=True)
def _inside(left: float, right: float, unit: float) -> float:
    """A step inside an interval, by the rule of `SearchLine.inside`."""
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
