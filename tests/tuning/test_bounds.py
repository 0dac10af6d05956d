"""Bounds: spans keep weights within them and are as wide as they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds

SIZES = st.floats(-100, 100).map(lambda x: round(x, 3))
LOW_ENDS, HIGH_ENDS = st.one_of(SIZES, st.just(-math.inf)), st.one_of(SIZES, st.just(math.inf))


@st.composite
def bounded(draw: st.DrawFn) -> tuple[Bounds, NDArray[np.float64], NDArray[np.float64]]:
    """Bounds, weights within them, at times at their ends, and a direction."""
    low, high, weights = [], [], []
    for _ in range(draw(st.integers(1, 4))):
        ends = draw(LOW_ENDS), draw(HIGH_ENDS)
        low.append(min(ends))
        high.append(max(ends))
        finite = [end for end in ends if math.isfinite(end)]
        weight = draw(st.one_of(SIZES, st.sampled_from(finite or [0.0])))
        weights.append(min(max(weight, low[-1]), high[-1]))
    vector = [draw(st.one_of(st.just(0.0), SIZES)) for _ in weights]
    assume(all(x == 0 or abs(x) > 1e-3 for x in vector))
    return Bounds(np.array(low), np.array(high)), np.array(weights), np.array(vector)


@settings(max_examples=50)
@given(bounded(), st.floats(0, 1))
def test_steps_within_the_span_hold_and_those_beyond_do_not(
    case: tuple[Bounds, NDArray[np.float64], NDArray[np.float64]], share: float
) -> None:
    bounds, weights, vector = case
    assert bounds.hold(weights)
    least, greatest = bounds.span(weights, vector)
    assert least <= 0 <= greatest
    a, b = max(least, -1e4), min(greatest, 1e4)
    moved = weights + (a + share * (b - a)) * vector
    np.testing.assert_allclose(bounds.clipped(moved), moved, rtol=1e-12, atol=1e-9)
    for step in (least - 1e-3, greatest + 1e-3):
        if math.isfinite(step):
            assert not bounds.hold(weights + step * vector)
    if math.isinf(least):
        assert bounds.hold(weights - 1e9 * vector)
    if math.isinf(greatest):
        assert bounds.hold(weights + 1e9 * vector)


@given(bounded(), st.lists(st.floats(-1e6, 1e6), min_size=4, max_size=4))
def test_clipped_weights_hold_and_those_that_hold_stay(
    case: tuple[Bounds, NDArray[np.float64], NDArray[np.float64]], anything: list[float]
) -> None:
    bounds, weights, _ = case
    np.testing.assert_array_equal(bounds.clipped(weights), weights)
    assert bounds.hold(bounds.clipped(np.array(anything[: len(weights)])))


def test_without_bounds_every_step_is_allowed() -> None:
    none = Bounds.none(2)
    assert none.free_of_scale
    assert none.hold(np.array([-1e300, 1e300]))
    assert none.span(np.array([1.0, -1.0]), np.array([0.5, 2.0])) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("low", "high", "free"),
    [
        pytest.param([0.0, -math.inf], [math.inf, 0.0], True, id="signs"),
        pytest.param([0.0, 0.0], [0.0, math.inf], True, id="a weight kept at zero"),
        pytest.param([-1.0, -math.inf], [math.inf, math.inf], False, id="a low end"),
        pytest.param([-math.inf, -math.inf], [math.inf, 2.0], False, id="a high end"),
    ],
)
def test_scale_is_free_where_bounds_are_signs(
    low: list[float], high: list[float], free: bool
) -> None:
    bounds = Bounds(np.array(low), np.array(high))
    assert bounds.free_of_scale == free
    inside = bounds.clipped(np.array([1.0, -1.0]))
    assert bounds.hold(inside * 1e6) or not free


@pytest.mark.parametrize("low", [[1.0, 0.0], [math.nan, 0.0], [0.0]])
def test_ends_that_bound_nothing_are_refused(low: list[float]) -> None:
    with pytest.raises(ValueError, match="low end below the high end"):
        Bounds(np.array(low), np.array([0.5, 0.5]))


def test_weights_that_are_not_numbers_do_not_hold() -> None:
    assert not Bounds.none(2).hold(np.array([1.0, math.nan]))
