"""What a line search looks for: the best interval of a line, plainly or with regularisation.

`BleuGoal` is corpus BLEU, less prices of length and of leaving the start, in one compiled pass that
leaves out most logarithms; `Goal` is any objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, score
from rerank.tuning.line import NARROW, Line, Step
from rerank.tuning.objectives import BLEU, Corpus, LengthPriced, Objective, Sums
from rerank.tuning.regularisation import FREE, Pull, Shrinkage, Window, cost

GAIN = 1e-9  # sums of real numbers differ by their order; this is no gain
_PULL = 1e-4  # gains below this share of the price on direction shrink for ever: they are none


class SearchGoal(Protocol):
    """The value of a point, and the best step along a line."""

    @property
    def name(self) -> str:
        """What is maximised."""
        ...

    @property
    def objective(self) -> Objective:
        """The same without regularisation but that of length."""
        ...

    @property
    def smoothed(self) -> bool:
        """Whether what is searched for is not the value of points, but smoothed along lines."""
        ...

    def value(self, sums: Sums, weights: NDArray[np.float64]) -> float:
        """Of summed statistics (D, W) of documents, at weights (F,)."""
        ...

    def best(self, line: Line, here: float) -> Step:
        """The best step; `here` is the value at step 0."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Goal:
    """Any objective, regularised or not. O(m W + m log m) for m breaks."""

    objective: Objective
    window: Window | None = None
    shrinkage: Shrinkage | None = None

    @property
    def name(self) -> str:
        """The objective and its regularisation."""
        name = self.objective.name
        if self.window:
            name += f", {self.window.kind} of ±{self.window.size} intervals"
        if self.shrinkage:
            name += f" − {self.shrinkage.price:g} (1 − cosine with the start)"
        return name

    @property
    def smoothed(self) -> bool:
        """Whether there is a window."""
        return self.window is not None

    def value(self, sums: Sums, weights: NDArray[np.float64]) -> float:
        """At a point."""
        value = self.objective.value(sums)
        if self.shrinkage:
            value -= float(self.shrinkage.cost(weights, weights, np.zeros(1))[0])
        return value

    def best(self, line: Line, here: float) -> Step:
        """The best step; of intervals as good the one with the least steps."""
        kept, left, right = line.intervals()
        if not len(kept):
            return Step(0.0, here, here, here)
        changes = line.changes.take(line.order, axis=0)  # faster than an index
        values = self.objective.along(changes, line.documents[line.order])[kept]
        steps = line.inside(left, right)
        if self.shrinkage:
            values = values - self.shrinkage.cost(line.weights, line.direction, steps)
        smooth = self.window.over(values) if self.window else values
        if self.window:
            here = float(smooth[min(int(np.searchsorted(right, 0.0)), len(right) - 1)])
        gain = max(GAIN, _PULL * self.shrinkage.price if self.shrinkage else 0.0)
        best = int(smooth.argmax())
        if not (smooth[best] > here + gain and np.isfinite(steps[best])):
            return Step(0.0, here, here, here)
        return Step(float(steps[best]), float(smooth[best]), here, float(values[best]))


@dataclass(frozen=True, slots=True)
class BleuGoal:
    """Corpus BLEU less price · |length ratio − ratio|, and less a shrinkage's price; compiled.

    O(m) for m sorted breaks.
    """

    ratio: float = 1.0
    price: float = 0.0
    shrinkage: Shrinkage | None = None
    smoothed = False

    @property
    def objective(self) -> Objective:
        """The same as an objective."""
        bleu = Corpus()
        return LengthPriced(bleu, self.ratio, self.price) if self.price else bleu

    @property
    def name(self) -> str:
        """Corpus BLEU, and its prices."""
        return Goal(self.objective, None, self.shrinkage).name

    def value(self, sums: Sums, weights: NDArray[np.float64]) -> float:
        """At a point."""
        value = float(_priced(sums.sum(axis=0).astype(np.int64), self.ratio, self.price))
        return value - cost(0.0, self._pull(weights, np.zeros_like(weights)))

    def best(self, line: Line, here: float) -> Step:
        """The best step; of intervals as good the one with the least steps."""
        gain = _PULL * self.shrinkage.price if self.shrinkage else 0.0
        place, value = _best_interval(
            line.breaks,
            line.order,
            line.changes,
            (*line.span, line.unit),
            (self.ratio, self.price),
            self._pull(line.weights, line.direction),
            here + gain,
        )
        if place < 0:
            return Step(0.0, here, here, here)
        ends = np.append(line.breaks[line.order[place : place + 2]], np.inf)[:2]
        size = float(line.inside(*np.clip(ends, *line.span)[:, None])[0])
        return Step(size, value, here, value) if np.isfinite(size) else Step(0.0, here, here, here)

    def _pull(self, weights: NDArray[np.float64], direction: NDArray[np.float64]) -> Pull:
        return self.shrinkage.along(weights, direction) if self.shrinkage else FREE


CORPUS_BLEU = BleuGoal()
"""Nothing but corpus BLEU."""


def goal_of(
    objective: Objective, window: Window | None = None, shrinkage: Shrinkage | None = None
) -> SearchGoal:
    """The goal, compiled where there is a compiled one."""
    if window is None:
        if objective == Corpus(BLEU):
            return BleuGoal(shrinkage=shrinkage) if shrinkage else CORPUS_BLEU
        if isinstance(objective, LengthPriced) and objective.objective == Corpus(BLEU):
            return BleuGoal(objective.ratio, objective.price, shrinkage)
    return Goal(objective, window, shrinkage)


@njit(cache=True, nogil=True, error_model="numpy")
def _best_interval(
    breaks: NDArray[np.float64],
    order: NDArray[np.int64],
    changes: Sums,
    steps: tuple[float, float, float],
    length: tuple[float, float],
    pull: Pull,
    floor: float,
) -> tuple[int, float]:
    """Place in `order` of the break that opens the best interval, and its value; −1 if none.

    `steps`: least and greatest one allowed, and one of ordinary size; `length`: ratio and price, as
    in `BleuGoal`.
    """
    total = np.zeros(WIDTH, dtype=np.int64)
    best, value = -1, floor
    worth = _worth(value)
    for i in range(len(order)):
        for k in range(WIDTH):
            total[k] += changes[order[i], k]
        left = max(breaks[order[i]], steps[0])
        right = min(breaks[order[i + 1]] if i + 1 < len(order) else np.inf, steps[1])
        if left >= right:
            continue  # an interval without width
        if _ceiling(total) >= worth and _wide(left, right, steps[2]):
            this = _priced(total, length[0], length[1])
            if pull[0] > 0 and this > value:
                this -= cost(_inside(left, right, steps[2]), pull)
            if this > value:
                best, value = i, this
                worth = _worth(value)
    return best, value


@njit(cache=True, nogil=True, error_model="numpy")
def _priced(total: NDArray[np.int64], ratio: float, price: float) -> float:
    """BLEU of summed statistics less the price of their length."""
    length = total[4] / total[8] if total[8] > 0 else 0.0
    value: float = score(total, False) - price * abs(length - ratio)
    return value


@njit(cache=True, nogil=True)
def _wide(left: float, right: float, unit: float) -> bool:
    """Whether an interval has width, as `Line.intervals` has it."""
    size = max(abs(left), abs(right), unit)
    wide: bool = right - left > NARROW * (size if size < np.inf else 0.0)
    return wide


@njit(cache=True, nogil=True)
def _inside(left: float, right: float, unit: float) -> float:
    """A step inside an interval, as `Line.inside` has it."""
    if left == -np.inf and right == np.inf:
        return 0.0
    if left == -np.inf:
        return right - max(abs(right), unit)
    if right == np.inf:
        return left + max(abs(left), unit)
    return left + (right - left) / 2


@njit(cache=True, nogil=True)
def _worth(value: float) -> float:
    """The least (BLEU / 100)⁴ that can be worth more than a value."""
    return (max(value, 0.0) / 100) ** 4 * (1 - 1e-9)


@njit(cache=True, nogil=True, error_model="numpy")
def _ceiling(total: NDArray[np.int64]) -> float:
    """Upper bound of (BLEU / 100)⁴, close and without a logarithm: most intervals end here."""
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
