"""Where the bars and circles of charts are."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.report.charts import HEIGHT, LEFT, WIDTH, bars, points, shares

values = st.lists(st.floats(-50, 50), min_size=1, max_size=30)


@given(values)
def test_bars_stand_on_the_zero_line_as_high_as_their_values(found: list[float]) -> None:
    drawn, axis = bars(found)
    assert [bar.index for bar in drawn] == sorted(range(len(found)), key=lambda i: -found[i])
    scale = None
    for bar in drawn:
        value = found[bar.index]
        assert bar.x >= LEFT
        assert bar.x + bar.width <= WIDTH
        assert bar.y >= 0
        assert bar.y + bar.height <= HEIGHT + 0.5
        assert bar.sign == ("up" if value > 0 else "down" if value < 0 else "same")
        edge = bar.y + bar.height if value > 0 else bar.y
        assert edge == pytest.approx(axis.zero, abs=0.02)
        if bar.height > 20:
            scale = scale or bar.height / abs(value)
            assert bar.height / abs(value) == pytest.approx(scale, rel=0.01)


@given(values)
def test_circles_are_where_their_values_are(found: list[float]) -> None:
    xs = [float(i) for i in range(len(found))]
    drawn, axis, ticks = points(xs, found, [1 + i for i in range(len(found))])
    assert [point.index for point in drawn] == list(range(len(found)))
    assert [point.x for point in drawn] == sorted(point.x for point in drawn)
    assert [point.radius for point in drawn] == sorted(point.radius for point in drawn)
    for point in drawn:
        assert (point.y < axis.zero) >= (found[point.index] > 0.5)
        assert (point.y > axis.zero) >= (found[point.index] < -0.5)
    assert ticks[-1][1] == f"{xs[-1] or 0.0:.1f}"


def test_the_largest_share_is_full() -> None:
    assert shares([1.0, -4.0, 0.0]) == [25.0, 100.0, 0.0]
    assert shares([]) == []
    assert shares([0.0]) == [0.0]


@given(values)
def test_labels_of_an_axis_do_not_lie_on_each_other(found: list[float]) -> None:
    _, axis = bars(found)
    places = sorted(place for place, _ in axis.ticks)
    assert "0" in [label for _, label in axis.ticks]
    assert all(b - a >= 16 for a, b in pairwise(places))
