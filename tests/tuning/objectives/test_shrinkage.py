"""Prices of directions by cosines and in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.tuning.objectives.shrinkage import Shrinkage

VECTORS = st.lists(st.floats(-10, 10), min_size=3, max_size=3).map(np.array)


@settings(max_examples=50)
@given(VECTORS, VECTORS, VECTORS, st.floats(-100, 100))
def test_the_price_of_a_direction_is_one_less_the_cosine(
    anchor: NDArray[np.float64],
    weights: NDArray[np.float64],
    direction: NDArray[np.float64],
    step: float,
) -> None:
    scale = np.array([1.0, 0.25, 8.0])
    there = (weights + step * direction) * scale
    base = anchor * scale
    norms = float(np.linalg.norm(there) * np.linalg.norm(base))
    size = np.linalg.norm(weights * scale) + abs(step) * np.linalg.norm(direction * scale)
    assume(np.linalg.norm(there) > 1e-3 * size and np.linalg.norm(base) > 1e-3)
    cost = Shrinkage(anchor, scale, 7.0).cost(weights, direction, np.array([step]))
    assert cost[0] == pytest.approx(7 * (1 - float(base @ there) / norms), abs=1e-8)


@pytest.mark.parametrize(
    ("weights", "cost"),
    [
        pytest.param([2.0, 1.0], 0.0, id="at the anchor"),
        pytest.param([6e9, 3e9], 0.0, id="whatever the size"),
        pytest.param([-1.0, 2.0], 4.0, id="at a right angle"),
        pytest.param([-2.0, -1.0], 8.0, id="opposite"),
        pytest.param([0.0, 0.0], 4.0, id="zeros"),
        pytest.param([1.0, 3.0], 4 * (1 - math.sqrt(0.5)), id="at half of one"),
    ],
)
def test_prices_of_directions_in_closed_form(weights: list[float], cost: float) -> None:
    shrinkage = Shrinkage(np.array([2.0, 1.0]), np.ones(2), 4.0)
    at, still = np.array(weights), np.zeros(1)
    assert shrinkage.cost(at, at, still)[0] == pytest.approx(cost, abs=1e-12)
