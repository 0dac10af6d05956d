"""Every published model against scalar code that was written from its paper."""

import pytest
from support.scalar.cases import clstm, ji, lin, memo, wang_cho
from support.scalar.comparison import (
    Case,
    check_engine_scores,
    check_gradients,
    check_training_scores,
    check_training_scores_in_float64,
)

PAPERS = {"ji": ji, "wang_cho": wang_cho, "lin": lin, "memo": memo, "clstm": clstm}
every_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{paper}-{n}-{case.config.model}")
        for paper, cases in PAPERS.items()
        for n, case in enumerate(cases.CASES)
    ],
)


@every_case
def test_words_have_the_scalar_log_probabilities_in_training(case: Case) -> None:
    check_training_scores(case)


@every_case
def test_in_float64_they_agree_to_the_tenth_decimal(case: Case) -> None:
    check_training_scores_in_float64(case)


@every_case
def test_the_engine_gives_candidates_the_scalar_sums(case: Case) -> None:
    check_engine_scores(case)


@every_case
def test_gradients_are_those_of_finite_differences(case: Case) -> None:
    check_gradients(case)
