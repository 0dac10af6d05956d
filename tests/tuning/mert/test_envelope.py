"""Upper envelopes, against envelopes found in exact arithmetic by trying every candidate."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH
from rerank.tuning.mert.envelope import Direction, Envelopes, Scratch, upper_envelopes
from rerank.tuning.pools.pool import Pool

Line = tuple[int, int]
"""Score and slope."""


def on_a_hill(line: Line) -> Line:
    """A line that touches a parabola: all such lines are on the envelope, or nearly."""
    score, slope = line
    return (min(score, 0) // 8 - slope * slope, slope)


LINES = st.tuples(st.integers(-9, 9), st.integers(-9, 9))
LISTS = st.one_of(
    st.lists(LINES, min_size=1, max_size=12),
    st.lists(LINES.map(on_a_hill), min_size=9, max_size=20),  # enough for the second pass
)


def envelopes_of(lists: list[list[Line]], *, scale: float = 1.0) -> tuple[Pool, Envelopes]:
    """Envelopes of lists of lines whose slopes are multiplied by `scale`."""
    lines = np.array([line for lines in lists for line in lines], dtype=np.float64).reshape(-1, 2)
    features = lines[:, 1:] * scale
    offsets = np.cumsum([0, *map(len, lists)])
    statistics = np.zeros((len(lines), WIDTH), dtype=np.int64)
    pool = Pool(offsets, features, statistics, lines[:, 0].copy())
    scores = pool.fixed
    direction = Direction.of(pool, np.ascontiguousarray(features[:, 0]))
    for array in (scores, direction.slopes):
        array.flags.writeable = False
    found = upper_envelopes(pool, scores, pool.choices(scores), direction, Scratch(pool))
    return pool, found


def topmost(lines: list[Line], step: Fraction) -> int:
    """First of the highest lines at a step, exactly: in whole numbers, times the denominator."""
    p, q = step.as_integer_ratio()
    heights = [score * q + slope * p for score, slope in lines]
    return heights.index(max(heights))


def exact_envelope(lines: list[Line]) -> tuple[list[int], list[Fraction]]:
    """Rows of the envelope and the breaks between them, by trying every meeting of two lines."""
    meetings = sorted(
        {Fraction(a[0] - b[0], b[1] - a[1]) for a, b in combinations(lines, 2) if a[1] != b[1]}
    )
    if not meetings:
        return [topmost(lines, Fraction(0))], []
    middles = [(a + b) / 2 for a, b in pairwise(meetings)]
    rows = [topmost(lines, step) for step in (meetings[0] - 1, *middles, meetings[-1] + 1)]
    changes = [i for i in range(1, len(rows)) if rows[i] != rows[i - 1]]
    return [rows[0], *(rows[i] for i in changes)], [meetings[i - 1] for i in changes]


def envelope(found: Envelopes, s: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows and breaks of one list."""
    part = slice(found.offsets[s], found.offsets[s + 1])
    return found.rows[part], found.breaks[part]


@settings(max_examples=50)
@given(st.lists(LISTS, min_size=1, max_size=3))
def test_envelopes_equal_those_found_by_trying_every_line(lists: list[list[Line]]) -> None:
    pool, found = envelopes_of(lists)
    for s, lines in enumerate(lists):
        rows, breaks = envelope(found, s)
        expected_rows, expected_breaks = exact_envelope(lines)
        np.testing.assert_array_equal(rows - pool.offsets[s], expected_rows)
        np.testing.assert_allclose(breaks[1:], np.array(expected_breaks, float), rtol=1e-15)
        assert breaks[0] == -np.inf


@given(
    st.lists(
        st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6)), min_size=1, max_size=40),
        min_size=1,
        max_size=3,
    )
)
def test_slopes_and_breaks_strictly_increase_along_an_envelope(
    lists: list[list[tuple[float, float]]],
) -> None:
    pool, found = envelopes_of(lists)  # type: ignore[arg-type]
    for s in range(len(lists)):
        rows, breaks = envelope(found, s)
        assert (np.diff(pool.features[rows, 0]) > 0).all()
        assert (np.diff(breaks) > 0).all()


@settings(max_examples=25)
@given(st.lists(LISTS, min_size=1, max_size=3), st.integers(-100, 100))
def test_a_power_of_two_times_the_slopes_divides_the_breaks(
    lists: list[list[Line]], exponent: int
) -> None:
    _, found = envelopes_of(lists)
    _, scaled = envelopes_of(lists, scale=2.0**exponent)
    np.testing.assert_array_equal(scaled.rows, found.rows)
    np.testing.assert_array_equal(scaled.breaks * 2.0**exponent, found.breaks)


@pytest.mark.parametrize(
    ("lines", "rows", "breaks"),
    [
        pytest.param([(3, 1)], [0], [], id="one line"),
        pytest.param([(3, 1), (3, 1), (3, 1)], [0], [], id="identical lines: the first"),
        pytest.param([(1, 2), (3, 2), (2, 2)], [1], [], id="parallel lines: the highest"),
        pytest.param([(0, 0), (0, 1), (0, -1)], [2, 1], [0.0], id="three lines through a point"),
        pytest.param([(0, 2), (0, 1), (0, 2)], [1, 0], [0.0], id="equal ends: the first"),
        pytest.param([(0, 1), (-9, 0), (0, -1)], [2, 0], [0.0], id="a line below"),
        pytest.param([(0, 1), (1, 0), (0, -1)], [2, 1, 0], [-1.0, 1.0], id="a line above"),
    ],
)
def test_envelopes_of_special_lists(
    lines: list[Line], rows: list[int], breaks: list[float]
) -> None:
    _, found = envelopes_of([lines])
    np.testing.assert_array_equal(found.rows, rows)
    np.testing.assert_array_equal(found.breaks, [-np.inf, *breaks])


def test_an_empty_list_has_an_empty_envelope() -> None:
    _, found = envelopes_of([[], [(0, 0), (0, 1)], []])
    np.testing.assert_array_equal(found.offsets, [0, 0, 2, 2])


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_huge_and_tiny_slopes_keep_the_envelope(scale: float) -> None:
    lines = [(-s * s, s) for s in range(-15, 16)]
    _, found = envelopes_of([lines])
    _, scaled = envelopes_of([lines], scale=scale)
    np.testing.assert_array_equal(scaled.rows, found.rows)
    np.testing.assert_allclose(scaled.breaks[1:] * scale, found.breaks[1:], rtol=1e-14)


def test_slopes_that_differ_by_rounding_are_parallel() -> None:
    lines = [(0, 1.0), (1, 1.0 + 2.0**-50), (0, -1.0)]
    _, found = envelopes_of([lines])  # type: ignore[list-item]
    np.testing.assert_array_equal(found.rows, [2, 1])


def test_a_direction_knows_extreme_rows_and_spread() -> None:
    slopes = np.array([1.0, 3.0, 3.0, -2.0, 5.0])
    pool = Pool(
        np.array([0, 3, 3, 5]), slopes[:, None], np.zeros((5, WIDTH), dtype=int), np.zeros(5)
    )
    direction = Direction.of(pool, slopes)
    np.testing.assert_array_equal(direction.lowest, [0, -1, 3])
    np.testing.assert_array_equal(direction.highest, [1, -1, 4])
    deviations = np.concatenate([slopes[:3] - slopes[:3].mean(), slopes[3:] - slopes[3:].mean()])
    assert direction.spread == pytest.approx(np.sqrt((deviations**2).mean()), rel=1e-15)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_spread_of_extreme_slopes_neither_vanishes_nor_overflows(scale: float) -> None:
    slopes = np.array([0.0, scale, 3 * scale, 4 * scale])
    pool = Pool(np.array([0, 4]), slopes[:, None], np.zeros((4, WIDTH), dtype=int), np.zeros(4))
    assert Direction.of(pool, slopes).spread == pytest.approx(np.sqrt(2.5) * scale, rel=1e-12)


def test_a_feature_constant_within_lists_has_no_spread() -> None:
    slopes = np.array([0.1, 0.1, 0.1, 7.3, 7.3, 7.3, 7.3])
    pool = Pool(np.array([0, 3, 7]), slopes[:, None], np.zeros((7, WIDTH), dtype=int), np.zeros(7))
    assert Direction.of(pool, slopes).spread == 0
