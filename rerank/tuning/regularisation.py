"""What steadies a line search: values smoothed over neighbours, a price for leaving the start.

Smoothing over neighbouring intervals is that of Cer et al. (2008),
https://aclanthology.org/W08-0304.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Pull: TypeAlias = tuple[float, float, float, float, float, float]
"""Price of a shrinkage, and along a line anchor · point, anchor · way, squares and their product.

The anchor is a unit vector.
"""
FREE: Pull = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Window:
    """Values replaced by the mean or least of the `size` intervals on each side and their own."""

    size: int
    kind: Literal["mean", "min"]

    def over(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Smoothed values (m,); the window is cut at the ends. O(m size)."""
        fill = 0.0 if self.kind == "mean" else np.inf
        size = min(self.size, len(values))
        around = np.full(size, fill)
        windows = np.lib.stride_tricks.sliding_window_view(
            np.concatenate([around, values, around]), 2 * size + 1
        )
        if self.kind == "min":
            return np.asarray(windows.min(axis=1))
        places = np.arange(len(values))
        before, after = np.minimum(places, size), np.minimum(places[::-1], size)
        return np.asarray(windows.sum(axis=1) / (before + after + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Shrinkage:
    """A price for leaving the direction of `anchor` (F,): price · (1 − cosine).

    `scale` (F,) makes the features alike: cosines are those of weights · scale. It is free of the
    weights' size, as BLEU is.
    """

    anchor: NDArray[np.float64]
    scale: NDArray[np.float64]
    price: float

    def among(self, columns: NDArray[np.int64], n_features: int) -> Shrinkage:
        """The same for weights of which these columns count."""
        anchor, scale = np.zeros((2, n_features))
        anchor[columns], scale[columns] = self.anchor, self.scale
        return Shrinkage(anchor, scale, self.price)

    def cost(
        self,
        weights: NDArray[np.float64],
        direction: NDArray[np.float64],
        steps: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Prices (m,) at the steps (m,) along a line; weights of zeros cost all of it."""
        pull = self.along(weights, direction)
        return np.array([cost(step, pull) for step in steps.tolist()])

    def along(self, weights: NDArray[np.float64], direction: NDArray[np.float64]) -> Pull:
        """What the price along a line depends on, in units of the anchor's length."""
        anchor, point, way = (v * self.scale for v in (self.anchor, weights, direction))
        anchor = anchor / np.linalg.norm(anchor)
        ahead = float(anchor @ point), float(anchor @ way)
        return (self.price, *ahead, float(point @ point), float(point @ way), float(way @ way))


@njit(cache=True, nogil=True, error_model="numpy")
def cost(step: float, pull: Pull) -> float:
    """The price of shrinkage at a step; `pull` as `Shrinkage.along` has it."""
    price, anchored, anchored_way, square, crossed, square_way = pull
    norm = math.sqrt(max(square + 2 * step * crossed + step * step * square_way, 0.0))
    cosine = (anchored + step * anchored_way) / norm if norm > 0 else 0.0
    return price * (1 - cosine)
