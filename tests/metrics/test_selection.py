"""Scores of next sentences by the formula, in probabilities, and outcomes by hand."""

import math

import numpy as np
import pytest

from rerank.metrics.selection import SCORES, outcomes_of

LOG_PROBS = np.array([[-2.0, -1.0, -40.0], [-3.0, -1.5, -38.0], [-2.5, -0.5, -39.0]])
ALONE = np.array([-2.0, -1.5, -41.0])


def test_equation_4_in_probabilities() -> None:
    """Score = P(D_d | C_c) / (1/k Σ_j P(D_d | C_j)), in exact sums."""
    found = SCORES["normalised"](LOG_PROBS, ALONE)
    for d, column in enumerate(np.exp(LOG_PROBS).T):
        mean = math.fsum(column) / 3
        assert np.exp(found[:, d]) == pytest.approx(column / mean)


def test_small_probabilities_do_not_underflow() -> None:
    found = SCORES["normalised"](LOG_PROBS - 5000.0, ALONE)
    np.testing.assert_allclose(found, SCORES["normalised"](LOG_PROBS, ALONE), atol=1e-9)


def test_contexts_that_do_not_matter_give_scores_of_exactly_zero() -> None:
    same = np.tile([-0.1, -2.7, -1234.5], (3, 1))
    assert (SCORES["normalised"](same, same[0]) == 0).all()
    assert (SCORES["pmi"](same, same[0]) == 0).all()


def test_the_other_scores_are_log_p_and_its_gain_over_no_context() -> None:
    assert (SCORES["log_p"](LOG_PROBS, ALONE) == LOG_PROBS).all()
    assert SCORES["pmi"](LOG_PROBS, ALONE)[1].tolist() == [-1.0, 0.0, 3.0]


def test_an_outcome_is_a_choice_in_a_row_and_ties_share_it() -> None:
    scores = np.array([[2.0, 1.0, 2.0], [0.0, -1.0, -2.0], [3.0, 3.0, 3.0]])
    assert outcomes_of(scores).tolist() == [0.5, 0.0, pytest.approx(1 / 3)]
    assert outcomes_of(LOG_PROBS).tolist() == [0.0, 1.0, 0.0]
