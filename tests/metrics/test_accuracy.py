"""Intervals and tests of accuracies, against scipy, closed forms and enumeration."""

from itertools import product

import pytest
from scipy.stats import binomtest

from rerank.metrics.accuracy import sign_test, wilson_interval


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (7, 10), (250, 500), (499, 500)])
def test_intervals_are_those_of_scipy(successes: int, n: int) -> None:
    truth = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, n) == pytest.approx((truth.low, truth.high), abs=1e-12)


def test_the_ends_of_an_interval_are_proportions_from_which_the_accuracy_is_196_errors_away() -> (
    None
):
    """By definition: (p̂ − p)² = z² p (1 − p) / n; with a tie that counts ½, too."""
    for end in wilson_interval(12.5, 40):
        assert (12.5 / 40 - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / 40, rel=1e-6)


@pytest.mark.parametrize(("better", "worse"), [(0, 1), (3, 3), (5, 1), (2, 7), (8, 0)])
def test_p_is_the_share_of_splits_at_least_as_uneven(better: int, worse: int) -> None:
    n = better + worse
    splits = [sum(signs) for signs in product((0, 1), repeat=n)]
    uneven = [abs(2 * split - n) >= abs(better - worse) for split in splits]
    assert sign_test(better, worse) == pytest.approx(sum(uneven) / len(uneven))
    assert sign_test(worse, better) == sign_test(better, worse)


def test_without_a_difference_p_is_one() -> None:
    assert sign_test(0, 0) == 1.0
