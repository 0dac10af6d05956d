"""A line in the space of weights, as the breaks where choices change along it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objectives.objective import Sums

EVERYWHERE = (-math.inf, math.inf)
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
        """Numbers of the intervals that have width within the span, left ends, right ends.

        Breaks of several lists at the same step may differ by rounding; the narrow interval
        between them is left out, since no weights make its choices.
        """
        left = self.breaks[self.order]
        right = np.append(left[1:], math.inf)
        left, right = np.maximum(left, self.span[0]), np.minimum(right, self.span[1])
        size = np.maximum(np.maximum(np.abs(left), np.abs(right)), self.unit)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ has no width
            wide = right - left > NARROW * np.where(np.isinf(size), 0.0, size)
        kept = np.flatnonzero(wide)
        return kept, left[kept], right[kept]

    def inside(self, left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        """Steps inside intervals: the middle, or beyond the finite end where the other is infinite.

        Beyond an end by its own size, but at least by a unit; step 0 on a line without breaks. A
        step that float64 cannot hold is infinite.
        """
        # invalid: ∞ − ∞, where another of the three is taken; over: a step beyond float64
        with np.errstate(invalid="ignore", over="ignore"):
            middle = left + (right - left) / 2
            after = left + np.maximum(np.abs(left), self.unit)
            before = right - np.maximum(np.abs(right), self.unit)
        steps = np.where(np.isinf(right), after, np.where(np.isinf(left), before, middle))
        return np.where(np.isinf(left) & np.isinf(right), 0.0, steps)


@dataclass(frozen=True, slots=True)
class Step:
    """The best step of a search along a line, 0 where nothing is gained, and the goal's value."""

    size: float
    value: float
