"""Rounds of made-up steps: which is kept, what ends them, and how they are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import Sums, bleu_counts, bleu_of
from rerank.tuning.rounds import (
    MOST_ROUNDS,
    BestRound,
    DecodedWeights,
    Round,
    Rounds,
    tune_in_rounds,
)

ZEROS, ONES = np.zeros(2), np.ones(2)


def statistics(matches: int) -> NDArray[np.int64]:
    """Of output as long as its reference, with as many matches of each order."""
    return np.array([[matches] * 4 + [1000] * 5])


@dataclass
class Made:
    """Steps that decode to so many matches; the weights are numbers of the steps."""

    matches: Sequence[int]
    patience: int = 3
    asked: int = 0

    def rounds(self, start: NDArray[np.float64]) -> Rounds:
        for number, matches in enumerate(self.matches):
            self.asked = number
            yield DecodedWeights(start if number == 0 else ONES * number, statistics(matches))
        return "nothing is left"


def bleu(sums: Sums, weights: NDArray[np.float64]) -> float:
    return bleu_of(sums)


def ended(made: Made, start: NDArray[np.float64] = ONES, *, fixed: bool = False) -> BestRound:
    return tune_in_rounds(made.rounds(start), made.patience, fixed=fixed, value=bleu)


def test_the_best_round_is_kept_and_of_equal_ones_the_first() -> None:
    found = ended(Made([1, 5, 4, 5]))
    assert (found.best.number, found.reason) == (1, "nothing is left")
    assert found.best.result.bleu == pytest.approx(0.5)  # 5 of 1000 match, of each order


def test_each_round_is_told_as_it_comes() -> None:
    made, seen = Made([1, 2, 3]), list[tuple[int, int]]()
    tune_in_rounds(
        made.rounds(ONES),
        made.patience,
        fixed=False,
        value=bleu,
        report=lambda done: seen.append((done.number, made.asked)),
    )
    assert seen == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("patience", [2, 3, 4])
def test_patience_ends_with_that_many_rounds_without_gain(patience: int) -> None:
    made = Made([1, 3, 2, 4, 4, 4, 4, 4, 9], patience)
    found = ended(made)
    assert found.reason == f"{patience} rounds without gain"
    assert made.asked == {2: 5, 3: 6, 4: 7}[patience]
    assert found.best.number == 3


def test_there_are_no_more_than_fifteen_rounds() -> None:
    made = Made(range(1, 100))
    assert ended(made).reason == f"{MOST_ROUNDS} rounds" == "15 rounds"
    assert made.asked == 15


def test_all_zero_weights_are_not_a_result_without_fixed_scores() -> None:
    assert ended(Made([5, 3, 2]), ZEROS).best.number == 1
    assert ended(Made([5, 3, 2]), ZEROS, fixed=True).best.number == 0
    assert ended(Made([0, 0, 0]), ZEROS).best.number == 0  # where BLEU is 0, nothing is found


def test_zeros_are_not_taken_in_place_of_weights() -> None:
    """A step that comes back to zeros, whose value is the greatest."""
    sums = [statistics(n) for n in (900, 300, 900, 400)]
    weights = [ZEROS, ONES, ZEROS, 2 * ONES]

    def back() -> Rounds:
        for one, two in zip(weights, sums, strict=True):
            yield DecodedWeights(one, two)
        return "the end"

    for fixed, number in ((False, 3), (True, 0)):
        found = tune_in_rounds(back(), 9, fixed=fixed, value=bleu)
        assert found.best.number == number


def test_a_round_tells_what_was_predicted_and_what_came_of_it() -> None:
    start = DecodedWeights(ONES, statistics(500))
    told = Round(0, start, start.bleu).to_text()
    assert told == "round 0: decoded BLEU 50.00, length ratio 1.000"
    predicted = Optimum(ONES, statistics(700)[0], 70.0)
    step = DecodedWeights(ONES, statistics(600), predicted)
    assert Round(3, step, step.bleu).to_text() == (
        "round 3: predicted BLEU 70.00, decoded BLEU 60.00, length ratio 1.000"
    )


def test_a_value_that_is_not_bleu_is_told_beside_it() -> None:
    predicted = Optimum(ONES, statistics(700)[0], 69.5)
    assert Round(1, DecodedWeights(ONES, statistics(600), predicted), 59.25).to_text() == (
        "round 1: predicted BLEU 70.00, decoded BLEU 60.00, length ratio 1.000, "
        "objective predicted 69.500, decoded 59.250"
    )
    assert Round(0, DecodedWeights(ONES, statistics(600)), 59.25).to_text() == (
        "round 0: decoded BLEU 60.00, length ratio 1.000, objective decoded 59.250"
    )


def test_what_is_maximised_decides_which_round_is_kept() -> None:
    """The negative of BLEU, of steps whose BLEU rises, falls, and rises."""
    rounds = Made([3, 5, 2, 9]).rounds(ONES)
    found = tune_in_rounds(rounds, 3, fixed=False, value=lambda sums, weights: -bleu_of(sums))
    assert (found.best.number, found.best.value) == (2, -found.best.result.bleu)


def test_bleu_is_that_of_all_documents_and_of_no_other_metric() -> None:
    """Two documents, whose statistics end with those of a metric that is not counted."""
    sums = np.hstack([np.vstack([statistics(200), statistics(600)]), [[0.25], [0.5]]])
    assert bleu_counts(sums).tolist() == [800] * 4 + [2000] * 5
    assert bleu_counts(sums).dtype == np.int64
    assert DecodedWeights(ONES, sums).bleu == pytest.approx(40)
