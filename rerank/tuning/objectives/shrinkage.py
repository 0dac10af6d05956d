"""Regularisation of tuning: a price for leaving the direction of the start weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Products: TypeAlias = tuple[float, float, float, float, float, float]
"""What the price along a line depends on, for compiled code.

price, anchor · point, anchor · direction, |point|², point · direction, |direction|²; the anchor is
a unit vector.
"""
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
    _unit_anchor: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        anchor = self.anchor * self.scale
        object.__setattr__(self, "_unit_anchor", anchor / np.linalg.norm(anchor))

    def among(self, columns: NDArray[np.int64], n_features: int) -> Shrinkage:
        """Shrinkage of vectors of `n_features` weights, of which only `columns` count."""
        anchor, scale = np.zeros((2, n_features))
        anchor[columns], scale[columns] = self.anchor, self.scale
        return Shrinkage(anchor, scale, self.price)

    def cost(
        self,
        weights: NDArray[np.float64],
        direction: NDArray[np.float64],
        steps: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Prices (m,) at the steps (m,) along a line; all-zero weights cost the whole price."""
        products = self.along(weights, direction)
        return np.array([cost(step, products) for step in steps.tolist()])

    def along(self, weights: NDArray[np.float64], direction: NDArray[np.float64]) -> Products:
        """The products that the price along a line depends on."""
        anchor, point, step = self._unit_anchor, weights * self.scale, direction * self.scale
        ahead = float(anchor @ point), float(anchor @ step)
        return (self.price, *ahead, float(point @ point), float(point @ step), float(step @ step))


@njit(cache=True, nogil=True, error_model="numpy")
def cost(step: float, products: Products) -> float:
    """The price at a step along a line with these products."""
    price, anchored, anchored_step, square, crossed, square_step = products
    norm = math.sqrt(max(square + 2 * step * crossed + step * step * square_step, 0.0))
    cosine = (anchored + step * anchored_step) / norm if norm > 0 else 0.0
    return price * (1 - cosine)
