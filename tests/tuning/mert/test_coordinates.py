"""Strategies: on real pools none of them falls; on a smooth valley they do what they are known for.

The valley is a quadratic form with exact line searches, so that its optimum is known.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.errors import UsageError
from rerank.tuning.mert.ascent import Axes, Optimum, Point, climb
from rerank.tuning.mert.coordinates import (
    RANDOM,
    STRATEGIES,
    best_of_all,
    coordinates,
    in_turn,
    powell,
    random_directions,
    strategy,
)
from rerank.tuning.mert.line import Step
from rerank.tuning.objectives.goal import CORPUS_BLEU, BleuGoal, Goal, SearchGoal
from rerank.tuning.objectives.objective import MeanOfDocuments, WorstDocuments
from rerank.tuning.objectives.shrinkage import Window
from rerank.tuning.pools.pool import Pool

GOALS: list[SearchGoal] = [
    CORPUS_BLEU,
    BleuGoal(0.9, 30.0),
    Goal(MeanOfDocuments()),
    Goal(WorstDocuments(0.5)),
]


def random_pool(seed: int, *, lists: int = 12, size: int = 15, features: int = 3) -> Pool:
    """Lists whose candidates match the reference the better, the larger features · (1, …, 1) is.

    They belong to four documents, out of order.
    """
    rng = np.random.default_rng(seed)
    n = lists * size
    values = rng.standard_normal((n, features))
    quality = 1 / (1 + np.exp(-values.sum(axis=1) - rng.standard_normal(n)))
    length = rng.integers(8, 14, size=n)
    totals = length[:, None] - np.arange(4)
    matches = (totals * quality[:, None] ** np.arange(1, 5)).astype(np.int64)
    reference = np.repeat(rng.integers(8, 14, size=lists), size)[:, None]
    statistics = np.hstack([matches, totals, reference])
    return Pool(np.arange(0, n + 1, size), values, statistics, np.zeros(n), np.arange(lists) % 4)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("goal", GOALS, ids=lambda g: g.name)
@pytest.mark.parametrize("seed", range(3))
def test_no_strategy_ends_below_its_start(name: str, goal: SearchGoal, seed: int) -> None:
    pool = random_pool(seed)
    start = np.random.default_rng(seed).standard_normal(3)
    end = climb(Axes.of(pool), start, goal, strategy(name), np.random.default_rng(seed))
    assert end.value >= Optimum.at(pool, start, goal).value
    assert end.value == pytest.approx(Optimum.at(pool, end.weights, goal).value, abs=1e-9)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("kind", ["mean", "min"])
def test_with_a_window_every_strategy_ends(name: str, kind: str) -> None:
    window = Window(3, "mean") if kind == "mean" else Window(3, "min")
    goal = Goal(MeanOfDocuments(), window)
    axes = Axes.of(random_pool(3))
    end = climb(axes, np.ones(3), goal, strategy(name), np.random.default_rng(1))
    assert np.isfinite(end.weights).all()
    assert end.searches <= 200 * 3 + 3 + 3  # the most, the pass that it ends in, and the mean


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("scale", [2.0**-60, 1e30])
def test_the_scale_of_a_feature_is_that_of_its_weight(name: str, scale: float) -> None:
    pool = random_pool(4)
    factors = np.array([1.0, scale, 1.0])
    scaled = replace(pool, features=pool.features * factors)

    def end(pool: Pool, start: NDArray[np.float64]) -> Optimum:
        rng = np.random.default_rng(2)
        return climb(Axes.of(pool), start, CORPUS_BLEU, strategy(name), rng)

    plain, other = end(pool, np.ones(3)), end(scaled, np.ones(3) / factors)
    np.testing.assert_array_equal(other.statistics, plain.statistics)
    np.testing.assert_allclose(other.weights * factors, plain.weights, rtol=1e-6)
    assert other.searches == plain.searches


@pytest.mark.parametrize("name", STRATEGIES)
def test_without_directions_there_is_nothing_to_do(name: str) -> None:
    pool = random_pool(5)
    constant = replace(pool, features=np.ones_like(pool.features))
    rng = np.random.default_rng(1)
    end = climb(Axes.of(constant), np.ones(3), CORPUS_BLEU, strategy(name), rng)
    assert end.searches == 0
    np.testing.assert_array_equal(end.weights, np.ones(3))


@pytest.mark.parametrize("name", STRATEGIES)
def test_statistics_all_alike_leave_the_start(name: str) -> None:
    pool = random_pool(6)
    alike = np.tile(np.array([9, 8, 7, 6, 10, 9, 8, 7, 10]), (len(pool.features), 1))
    rng = np.random.default_rng(1)
    axes = Axes.of(replace(pool, statistics=alike))
    end = climb(axes, np.array([3.0, 2.0, 1.0]), CORPUS_BLEU, strategy(name), rng)
    np.testing.assert_array_equal(end.weights, [3.0, 2.0, 1.0])


def test_only_random_directions_draw_numbers() -> None:
    axes = Axes.of(random_pool(7))
    for name in STRATEGIES:
        ends = [
            climb(axes, np.ones(3), CORPUS_BLEU, strategy(name), np.random.default_rng(seed))
            for seed in (1, 2)
        ]
        same = np.array_equal(ends[0].weights, ends[1].weights)
        assert same == (name != "random")


def test_an_unknown_strategy_is_named_with_those_there_are() -> None:
    assert strategy("powell") is powell
    with pytest.raises(UsageError, match="--directions powel: there are coordinates, best-of-all"):
        strategy("powel")


class Valley:
    """A point on −xᵀ A x, searched exactly; stands for `Point` where a strategy looks at it."""

    def __init__(self, form: NDArray[np.float64], start: NDArray[np.float64]) -> None:
        self.form, self.weights, self.searches = form, start, 0
        n = len(start)
        self.axes = SimpleNamespace(
            directions=range(n),
            features=np.arange(n),
            spreads=np.ones(n),
            vector=lambda axis: np.eye(n)[axis],
        )
        self.way_taken: list[NDArray[np.float64]] = []

    @property
    def value(self) -> float:
        return -float(self.weights @ self.form @ self.weights)

    @property
    def exhausted(self) -> bool:
        return self.value > -1e-12 or self.searches >= 2000

    def axis(self, axis: int) -> NDArray[np.float64]:
        vector: NDArray[np.float64] = np.eye(len(self.weights))[axis]
        return vector

    def along(self, vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return vector

    def search(self, way: NDArray[np.float64]) -> Step:
        self.searches += 1
        size = -float(way @ self.form @ self.weights) / float(way @ self.form @ way)
        there = self.weights + size * way
        value = -float(there @ self.form @ there)
        return Step(size if value > self.value + 1e-15 else 0.0, value, self.value, value)

    def take(self, way: NDArray[np.float64], step: Step) -> bool:
        if step.size == 0:
            return False
        self.way_taken.append(way)
        self.weights = self.weights + step.size * way
        return True

    def try_along(self, way: NDArray[np.float64]) -> bool:
        return self.take(way, self.search(way))

    def as_point(self) -> Point:
        return cast(Point, self)


def rotated(steepness: float) -> NDArray[np.float64]:
    """A quadratic form whose valley runs along (1, 1): coordinates zigzag in it."""
    turn = np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2)
    return np.asarray(turn.T @ np.diag([1.0, steepness]) @ turn)


def test_powell_goes_along_a_valley_that_coordinates_cross() -> None:
    zigzag, along = (Valley(rotated(100.0), np.array([3.0, 1.0])) for _ in range(2))
    in_turn(zigzag.as_point(), np.random.default_rng(1))
    powell(along.as_point(), np.random.default_rng(1))
    assert along.value > -1e-12
    assert along.searches <= 10  # two passes, as for conjugate directions; and some to see it ends
    assert zigzag.searches > 300


def test_powell_replaces_the_direction_that_gained_most_by_the_way_of_the_pass() -> None:
    valley = Valley(rotated(100.0), np.array([3.0, 1.0]))
    values = [valley.value]
    for axis in np.eye(2):
        valley.try_along(axis)
        values.append(valley.value)
    most, other = np.eye(2)[np.argsort(-np.diff(values))]
    passed = valley.weights - np.array([3.0, 1.0])

    again = Valley(rotated(100.0), np.array([3.0, 1.0]))
    powell(again.as_point(), np.random.default_rng(1))
    np.testing.assert_array_equal(again.way_taken[:3], [[1, 0], [0, 1], passed])
    assert any(np.array_equal(way, other) for way in again.way_taken[3:])
    assert not any(np.array_equal(way, most) for way in again.way_taken[3:])


@pytest.mark.parametrize("n", [1, 2, 4, 6])
@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_finds_the_bottom_of_a_round_valley(name: str, n: int) -> None:
    valley = Valley(np.eye(n), np.arange(1.0, n + 1))
    strategy(name)(valley.as_point(), np.random.default_rng(1))
    assert valley.value == pytest.approx(0, abs=1e-9)


def test_powell_finds_the_bottom_of_any_narrow_valley() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        root = rng.standard_normal((4, 4))
        form = root @ root.T + 0.01 * np.eye(4)
        valley = Valley(form, rng.standard_normal(4))
        powell(valley.as_point(), rng)
        assert valley.value > -1e-9
        assert valley.searches < 300


def test_the_first_moves_are_chosen_and_the_others_taken_as_they_come() -> None:
    form = np.diag([1.0, 5.0, 3.0]) + 0.1
    start = np.ones(3)
    chosen, turned, best = (Valley(form, start) for _ in range(3))
    coordinates(chosen.as_point(), np.random.default_rng(1))
    in_turn(turned.as_point(), np.random.default_rng(1))
    best_of_all(best.as_point(), np.random.default_rng(1))

    def axes_of(valley: Valley) -> list[int]:
        return [int(way.argmax()) for way in valley.way_taken]

    assert axes_of(turned)[:4] == [0, 1, 2, 0]
    assert axes_of(best)[:3] == [1, 2, 0]
    assert axes_of(chosen)[:5] == [1, 2, 0, 1, 2]


def test_random_directions_end_after_fifty_without_a_gain() -> None:
    axes = Axes.of(random_pool(8))
    goal = Goal(MeanOfDocuments())
    end = climb(axes, np.ones(3), goal, random_directions, np.random.default_rng(1))
    again = climb(axes, end.weights, goal, random_directions, np.random.default_rng(7))
    assert end.searches > RANDOM
    assert again.searches >= RANDOM
    tied = np.tile(np.array([9, 8, 7, 6, 10, 9, 8, 7, 10]), (len(axes.pool.features), 1))
    flat = Axes.of(replace(axes.pool, statistics=tied))
    still = climb(flat, np.ones(3), goal, random_directions, np.random.default_rng(1))
    assert still.searches == RANDOM
