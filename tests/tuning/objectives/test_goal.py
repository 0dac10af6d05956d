"""Goals, against loops over all intervals of lines whose breaks are whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support.metrics import random_statistics

from rerank.metrics.bleu import WIDTH
from rerank.tuning.mert.line import EVERYWHERE, SearchLine
from rerank.tuning.objectives.goal import BLEU_GOAL, GAIN, SearchGoal
from rerank.tuning.objectives.objective import (
    CorpusMetric,
    DocumentMean,
    LengthPenalty,
    Objective,
    ObjectiveSum,
    Sums,
    WorstDocuments,
)
from rerank.tuning.objectives.shrinkage import Shrinkage

STEPS = np.arange(-12, 12, 0.5) + 0.25  # in all intervals between whole numbers and halves


@dataclass(frozen=True)
class Lists:
    """The envelope of each list along a line: where each of its rows becomes the topmost."""

    breaks: list[NDArray[np.float64]]
    rows: list[Sums]
    documents: list[int]
    weights: NDArray[np.float64]
    direction: NDArray[np.float64]
    span: tuple[float, float] = EVERYWHERE

    def line(self) -> SearchLine:
        """As a goal sees it; nothing of it may be written to."""
        breaks = np.concatenate(self.breaks)
        changes = np.vstack([np.diff(r, axis=0, prepend=np.zeros_like(r[:1])) for r in self.rows])
        documents = np.repeat(self.documents, [len(b) for b in self.breaks])
        order = np.argsort(breaks)
        for array in (breaks, changes, documents, order, self.weights, self.direction):
            array.flags.writeable = False
        return SearchLine(
            breaks, order, changes, documents, self.weights, self.direction, self.span, 0.5
        )

    def sums_at(self, step: float) -> Sums:
        """Sums of each document (D, W) at a step that is no break."""
        sums = np.zeros((max(self.documents) + 1, WIDTH), dtype=np.int64)
        for breaks, rows, document in zip(self.breaks, self.rows, self.documents, strict=True):
            sums[document] += rows[np.flatnonzero(breaks < step)[-1]]
        return sums

    def value_at(self, goal: SearchGoal, step: float) -> float:
        return goal.value(self.sums_at(step), self.weights + step * self.direction)

    def intervals(self) -> list[tuple[float, float]]:
        """Ends of all intervals within the span."""
        inner = {b for breaks in self.breaks for b in breaks if self.span[0] < b < self.span[1]}
        places = sorted({*self.span, *inner})
        return list(pairwise(places))


@st.composite
def lists(draw: st.DrawFn, *, bounded: bool = True) -> Lists:
    """One to six lists of one to four documents; breaks from −9 to 9, many of them shared."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_documents = draw(st.integers(1, 4))
    documents = [*range(n_documents), *rng.integers(0, n_documents, size=rng.integers(0, 3))]
    inner = [np.sort(rng.choice(np.arange(-9.0, 10), rng.integers(0, 6), False)) for _ in documents]
    span = EVERYWHERE
    if bounded:
        low = draw(st.sampled_from([-math.inf, -5.0, -2.5, 0.0]))
        span = (low, draw(st.sampled_from([math.inf, 5.0, 2.5, 0.0])))
    return Lists(
        [np.concatenate([[-np.inf], breaks]) for breaks in inner],
        [random_statistics(rng, len(breaks) + 1) for breaks in inner],
        [int(d) for d in documents],
        rng.standard_normal(3),
        rng.standard_normal(3),
        span,
    )


def interpreted(objective: Objective) -> Objective:
    """An objective of equal values without a compiled pass."""
    return ObjectiveSum(((1.0, objective),))


OBJECTIVES: list[Objective] = [CorpusMetric(), DocumentMean(), WorstDocuments(0.5)]
GOALS: list[SearchGoal] = [
    BLEU_GOAL,
    SearchGoal(LengthPenalty(CorpusMetric(), 1.1, 40.0)),
    *(SearchGoal(objective) for objective in OBJECTIVES),
    SearchGoal(LengthPenalty(DocumentMean(), 0.8, 40.0)),
]


@pytest.mark.parametrize("goal", GOALS, ids=lambda g: f"{type(g).__name__} {g.name}")
@given(lists(), st.sampled_from([-1e3, 0.0, 5.0]))
def test_the_best_step_is_that_of_a_dense_grid_within_the_span(
    goal: SearchGoal, case: Lists, floor: float
) -> None:
    low, high = case.span
    grid = [case.value_at(goal, s) for s in STEPS if low < s < high]
    step = goal.best(case.line(), floor)
    assert low <= step.size <= high
    best = max(grid, default=-math.inf)
    if best <= floor + GAIN:
        assert (step.size, step.value) == (0.0, floor)
    else:
        assert step.value == pytest.approx(best, abs=1e-9)
        assert step.size == 0 or case.value_at(goal, step.size) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("pull", [0.0, 0.5, 50.0])
@pytest.mark.parametrize("price", [0.0, 3.0, 500.0])
@given(lists(), st.sampled_from([-1e3, 0.0, 2.0, 20.0]))
def test_the_compiled_goal_takes_the_step_of_any_objective(
    price: float, pull: float, case: Lists, floor: float
) -> None:
    anchor = np.arange(1.0, 1 + len(case.weights))
    shrinkage = Shrinkage(anchor, np.ones_like(anchor), pull) if pull else None
    objective = LengthPenalty(CorpusMetric(), 0.95, price)
    fast, slow = SearchGoal(objective, shrinkage), SearchGoal(interpreted(objective), shrinkage)
    line = case.line()
    one, other = fast.best(line, floor), slow.best(line, floor)
    assume(one.size == other.size or one.value > floor + GAIN)
    assert one == other
    sums = case.sums_at(0.5)
    assert fast.value(sums, case.weights) == slow.value(sums, case.weights)


@settings(max_examples=25)
@given(lists())
def test_of_equal_intervals_the_one_with_the_least_steps_is_taken(case: Lists) -> None:
    same = random_statistics(np.random.default_rng(1), 1)
    same[:] = 9
    rows = [np.repeat(same, len(breaks), axis=0) for breaks in case.breaks]
    alike = replace(case, rows=rows, span=(-20.0, 20.0))
    first = min(b for breaks in alike.breaks for b in [*breaks[1:], 20.0])
    for goal in (BLEU_GOAL, SearchGoal(interpreted(CorpusMetric()))):
        step = goal.best(alike.line(), 0.0)
        assert step.size == (-20 + first) / 2


def test_statistics_that_are_floats_give_the_same_corpus_bleu() -> None:
    rng = np.random.default_rng(5)
    breaks = [np.array([-np.inf, *np.sort(rng.choice(20, 5, False))]) for _ in range(3)]
    rows = [random_statistics(rng, 6) for _ in breaks]
    whole = Lists(breaks, rows, [0, 1, 0], np.zeros(3), np.ones(3))
    line = whole.line()
    wider = np.hstack([line.changes, rng.standard_normal((len(line.changes), 2))])
    for goal in (BLEU_GOAL, SearchGoal(DocumentMean())):
        assert goal.best(replace(line, changes=wider), 0.0) == goal.best(line, 0.0)
    sums = whole.sums_at(3.5)
    assert BLEU_GOAL.value(sums.astype(np.float64), np.zeros(3)) == BLEU_GOAL.value(
        sums, np.zeros(3)
    )


@settings(max_examples=50)
@given(lists(), st.sampled_from([0.1, 5.0, 300.0]))
def test_a_goal_that_shrinks_takes_the_best_of_the_steps_into_intervals(
    case: Lists, price: float
) -> None:
    anchor, scale = np.array([1.0, -2.0, 0.5]), np.array([3.0, 0.1, 0.0])
    goal = SearchGoal(DocumentMean(), shrinkage=Shrinkage(anchor, scale, price))
    line, here = case.line(), -1e3
    step = goal.best(line, here)
    inner = [line.inside(np.array([a]), np.array([b]))[0] for a, b in case.intervals()]
    if case.span == (0.0, 0.0):
        assert step.size == 0
    else:
        assert step.value == pytest.approx(max(case.value_at(goal, s) for s in inner), abs=1e-8)
        assert case.value_at(goal, step.size) == pytest.approx(step.value, abs=1e-8)


def test_goals_say_what_they_maximise() -> None:
    goal = SearchGoal(CorpusMetric(), Shrinkage(np.ones(2), np.ones(2), 0.5))
    assert goal.name == "corpus BLEU − 0.5 (1 − cosine with the start)"
    assert BLEU_GOAL.name == "corpus BLEU"
    priced = SearchGoal(LengthPenalty(CorpusMetric(), 1.0, 5.0))
    assert priced.name == "corpus BLEU − 5 |length ratio − 1.000|"
