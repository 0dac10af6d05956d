"""Intervals of a line, against looking for the break before each of many steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.tuning.mert.line import EVERYWHERE, SearchLine

ENDS = st.sampled_from([-math.inf, -3.0, -1.0, -0.5, 0.0])


def line_of(
    breaks: list[float], span: tuple[float, float] = EVERYWHERE, unit: float = 1.0
) -> SearchLine:
    """A line with these breaks, at which nothing of interest changes."""
    at = np.array(breaks)
    return SearchLine(
        at,
        np.argsort(at),
        np.zeros((len(at), 9), dtype=np.int64),
        np.zeros(len(at), dtype=np.int64),
        np.zeros(1),
        np.ones(1),
        span,
        unit,
    )


@settings(max_examples=50)
@given(st.lists(st.integers(-4, 4), max_size=9), ENDS, ENDS)
def test_intervals_are_what_lies_between_breaks_within_the_span(
    at: list[int], low: float, minus_high: float
) -> None:
    span = (low, -minus_high)
    line = line_of([-math.inf, -math.inf, *map(float, at)], span)
    kept, left, right = line.intervals()
    assert (left < right).all()
    assert (np.diff(kept) > 0).all()
    breaks = line.breaks[line.order]
    for step in np.arange(-6, 6, 0.25) + 0.1:  # never at a break
        before = np.flatnonzero(breaks < step)[-1]
        inside = kept[(left < step) & (step < right)]
        assert inside.tolist() == ([before] if span[0] < step < span[1] else [])


@settings(max_examples=50)
@given(st.lists(st.floats(-1e6, 1e6), max_size=9), ENDS, ENDS, st.floats(1e-6, 1e6))
def test_a_step_inside_an_interval_is_inside(
    at: list[float], low: float, minus_high: float, unit: float
) -> None:
    line = line_of([-math.inf, *at], (low, -minus_high), unit)
    _, left, right = line.intervals()
    wide = (right - left > 1e-9) | np.isinf(right - left)
    steps = line.inside(left, right)
    assert ((left < steps) & (steps < right))[wide].all()


@pytest.mark.parametrize(
    ("left", "right", "step"),
    [
        pytest.param(1.0, 4.0, 2.5, id="the middle"),
        pytest.param(8.0, math.inf, 16.0, id="as far beyond a break as it is from 0"),
        pytest.param(-math.inf, -8.0, -16.0, id="also to the left"),
        pytest.param(0.25, math.inf, 2.25, id="at least a unit"),
        pytest.param(-math.inf, 0.0, -2.0, id="before 0"),
        pytest.param(-math.inf, math.inf, 0.0, id="everywhere"),
    ],
)
def test_steps_into_an_interval(left: float, right: float, step: float) -> None:
    line = line_of([-math.inf], unit=2.0)

    def array(x: float) -> NDArray[np.float64]:
        return np.array([x])

    assert line.inside(array(left), array(right)).tolist() == [step]


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_step_beyond_all_numbers_is_infinite_not_wrong(side: float) -> None:
    line = line_of([-math.inf, side * 1.5e308])
    _, left, right = line.intervals()
    steps = line.inside(left, right)
    outermost = steps[-1] if side > 0 else steps[0]
    assert outermost == side * math.inf
