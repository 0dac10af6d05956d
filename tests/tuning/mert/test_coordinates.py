"""Coordinate ascent on pools, and on a quadratic form whose optimum is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.pools import random_pool

from rerank.tuning.mert.ascent import Axes, Strategy, climb
from rerank.tuning.mert.coordinates import coordinates, in_turn
from rerank.tuning.mert.line import SearchLine, Step
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.mert.point import Point
from rerank.tuning.objectives.goal import BLEU_GOAL, SearchGoal
from rerank.tuning.objectives.objective import (
    CorpusMetric,
    DocumentMean,
    LengthPenalty,
    Sums,
    WorstDocuments,
)
from rerank.tuning.pools.pool import Pool

STRATEGIES: list[Strategy] = [coordinates, in_turn]
GOALS: list[SearchGoal] = [
    BLEU_GOAL,
    SearchGoal(LengthPenalty(CorpusMetric(), 0.9, 30.0)),
    SearchGoal(DocumentMean()),
    SearchGoal(WorstDocuments(0.5)),
]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("goal", GOALS, ids=lambda g: g.name)
@pytest.mark.parametrize("seed", range(3))
def test_no_strategy_ends_below_its_start(strategy: Strategy, goal: SearchGoal, seed: int) -> None:
    pool = replace(random_pool(seed), documents=np.arange(12) % 4)
    start = np.random.default_rng(seed).standard_normal(3)
    end = climb(Axes.of(pool), start, goal, strategy)
    assert end.value >= Optimum.at(pool, start, goal).value
    assert end.value == pytest.approx(Optimum.at(pool, end.weights, goal).value, abs=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scale", [2.0**-60, 1e30])
def test_the_scale_of_a_feature_is_that_of_its_weight(strategy: Strategy, scale: float) -> None:
    pool = random_pool(4)
    factors = np.array([1.0, scale, 1.0])
    scaled = replace(pool, features=pool.features * factors)

    def end(pool: Pool, start: NDArray[np.float64]) -> Optimum:
        return climb(Axes.of(pool), start, BLEU_GOAL, strategy)

    plain, other = end(pool, np.ones(3)), end(scaled, np.ones(3) / factors)
    np.testing.assert_array_equal(other.statistics, plain.statistics)
    np.testing.assert_allclose(other.weights * factors, plain.weights, rtol=1e-6)
    assert other.searches == plain.searches


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_directions_there_is_nothing_to_do(strategy: Strategy) -> None:
    pool = random_pool(5)
    constant = replace(pool, features=np.ones_like(pool.features))
    end = climb(Axes.of(constant), np.ones(3), BLEU_GOAL, strategy)
    assert end.searches == 0
    np.testing.assert_array_equal(end.weights, np.ones(3))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_statistics_all_alike_leave_the_start(strategy: Strategy) -> None:
    pool = random_pool(6)
    alike = np.tile(np.array([9, 8, 7, 6, 10, 9, 8, 7, 10]), (len(pool.features), 1))
    axes = Axes.of(replace(pool, statistics=alike))
    end = climb(axes, np.array([3.0, 2.0, 1.0]), BLEU_GOAL, strategy)
    np.testing.assert_array_equal(end.weights, [3.0, 2.0, 1.0])


class Valley(Point):
    """A point on −xᵀ A x, searched exactly."""

    def __init__(self, form: NDArray[np.float64], start: NDArray[np.float64]) -> None:
        self.form, self.taken = form, list[int]()
        features = np.arange(len(start))
        super().__init__(start, np.zeros((1, 9), np.int64), BLEU_GOAL, features, most_searches=2000)
        self.value = self.height(start)

    def height(self, weights: NDArray[np.float64]) -> float:
        return -float(weights @ self.form @ weights)

    def search(self, axis: int) -> Step:
        self.searches += 1
        size = -float(self.form[axis] @ self.weights) / float(self.form[axis, axis])
        value = self.height(self.weights + size * self.vector(axis))
        return Step(size if value > self.value + 1e-15 else 0.0, value)

    def take(self, axis: int, step: Step) -> bool:
        self.weights = self.weights + step.size * self.vector(axis)
        self.value = self.height(self.weights)
        if step.size:
            self.taken.append(axis)
        return step.size != 0

    def line(self, axis: int) -> SearchLine:
        raise AssertionError("the best step is known")

    def sums_after(self, axis: int, step: float, weights: NDArray[np.float64]) -> Sums:
        return self.sums

    def move(self) -> None:
        """Nothing is kept beside the weights."""


@pytest.mark.parametrize("n", [1, 2, 4, 6])
@pytest.mark.parametrize("strategy", [coordinates, in_turn])
def test_every_strategy_finds_the_bottom_of_a_round_valley(
    strategy: Callable[[Valley], None], n: int
) -> None:
    valley = Valley(np.eye(n), np.arange(1.0, n + 1))
    strategy(valley)
    assert valley.value == pytest.approx(0, abs=1e-9)


def test_the_first_two_steps_are_chosen_and_the_others_taken_as_they_come() -> None:
    form = np.diag([1.0, 5.0, 3.0]) + 0.1
    chosen, turned = (Valley(form, np.ones(3)) for _ in range(2))
    coordinates(chosen)
    in_turn(turned)
    assert turned.taken[:4] == [0, 1, 2, 0]
    assert chosen.taken[:5] == [1, 2, 0, 1, 2]
