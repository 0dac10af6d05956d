"""The contextual LSTMs of Ghosh et al. 2016 against scalar code written from the paper."""

import pytest
from support.scalar import clstm_names
from support.scalar.comparison import (
    SIDE,
    Case,
    V,
    check_engine_scores,
    check_gradients,
    check_training_scores,
    check_training_scores_in_float64,
)

from lm.model import Config


def case(name: str, layers: int, tied: bool) -> Case:
    config = Config(name, V, 3, 4, "peephole", layers, tied, topics_number=5)
    return Case(config, clstm_names.scores)


CASES = [case(name, 1 + n % 2, n % 2 == 0) for n, name in enumerate(clstm_names.TOPICS)]
CASES += [
    Case(Config(name, V, 3, 4, "peephole", 2, False, thought=n), clstm_names.thought_scores)
    for name, n in (("clstm-thought", 2), ("hlstm", None))
]
CASES += [
    Case(
        Config("clstm-given-topic", V, 3, 4, "peephole", layers, layers == 1, topic_labels=6),
        lambda model, document: clstm_names.given_scores(
            model, document, [label for (label,) in SIDE["topics"][: len(document)]]
        ),
    )
    for layers in (1, 2)
]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


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
