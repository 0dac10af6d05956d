"""Criteria become goals: the length kept, its price, and the pull to the start weights."""

from __future__ import annotations

import numpy as np
import pytest

from rerank.metrics.bleu import WIDTH, corpus_bleu
from rerank.tuning.criterion import Criterion, Length
from rerank.tuning.goals import CORPUS_BLEU, BleuGoal, Goal
from rerank.tuning.objectives import Corpus, LengthPriced, MeanOfDocuments
from rerank.tuning.regularisation import Window

FIRST = np.array([80, 60, 40, 30, 90, 80, 70, 60, 100])
"""Summed statistics of first candidates that are a tenth shorter than their references."""
START, SCALE = np.array([1.0, -2.0]), np.array([0.5, 3.0])


@pytest.mark.parametrize(("length", "ratio"), [("keep", 0.9), (1.0, 1.0), (0.97, 0.97)])
def test_a_length_off_costs_its_price(length: Length, ratio: float) -> None:
    goal = Criterion(length=length, price=20.0).goal(FIRST, START, SCALE)
    assert goal == BleuGoal(ratio, 20.0)
    longer = np.array([[80, 60, 40, 30, 110, 100, 90, 80, 100]])
    expected = corpus_bleu(longer[0]) - 20 * abs(1.1 - ratio)
    assert goal.value(longer, START) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("criterion", [Criterion(length="free"), Criterion(price=0.0)])
def test_a_free_length_costs_nothing(criterion: Criterion) -> None:
    assert criterion.goal(FIRST, START, SCALE) is CORPUS_BLEU


def test_the_default_is_corpus_bleu_at_the_length_of_the_first_candidates() -> None:
    goal = Criterion(length="keep").goal(FIRST, START, SCALE)
    assert isinstance(goal, BleuGoal)
    assert goal.ratio == 0.9
    assert goal.value(FIRST[None], START) == float(corpus_bleu(FIRST))


def test_the_length_is_that_of_words_whatever_the_metric_counts() -> None:
    wide = np.concatenate([FIRST, [7.5, 2.5]])
    goal = Criterion(MeanOfDocuments(), "keep").goal(wide, START, SCALE)
    assert isinstance(goal, Goal)
    assert goal.objective == LengthPriced(MeanOfDocuments(), 0.9, 5.0)


def test_windows_and_shrinkage_are_handed_on() -> None:
    window = Window(2, "mean")
    goal = Criterion(length="free", window=window, shrinkage=0.3).goal(FIRST, START, SCALE)
    assert isinstance(goal, Goal)
    assert (goal.objective, goal.window) == (Corpus(), window)
    assert goal.shrinkage is not None
    assert goal.shrinkage.price == 0.3
    zeros, opposite = np.zeros((1, WIDTH), dtype=np.int64), -7 * START
    assert goal.value(zeros, START) == pytest.approx(0)
    assert goal.value(zeros, opposite) == pytest.approx(-0.6)


@pytest.mark.parametrize(
    ("start", "scale"),
    [
        pytest.param([0.0, 0.0], [1.0, 1.0], id="zeros"),
        pytest.param([0.0, 3.0], [1.0, 0.0], id="weight on a constant feature only"),
    ],
)
def test_nothing_is_pulled_to_a_start_without_direction(
    start: list[float], scale: list[float]
) -> None:
    goal = Criterion(length="free", shrinkage=1.0).goal(FIRST, np.array(start), np.array(scale))
    assert goal is CORPUS_BLEU


def test_references_without_words_have_a_length_to_keep_all_the_same() -> None:
    nothing = np.zeros(WIDTH, dtype=np.int64)
    goal = Criterion(length="keep").goal(nothing, START, SCALE)
    assert goal.value(nothing[None], START) == 0.0
