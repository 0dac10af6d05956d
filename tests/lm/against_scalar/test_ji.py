"""The models of Ji et al. 2016 against scalar code written from the paper."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from support.scalar import ji, names
from support.scalar.comparison import (
    Case,
    Loss,
    Reference,
    V,
    check_engine_scores,
    check_gradients,
    check_training_scores,
    check_training_scores_in_float64,
    nats,
)
from support.scalar.ji import Document, Scores

from lm.model import Config, DocumentLM

Names: TypeAlias = Callable[[DocumentLM], dict[str, Any]]
Function: TypeAlias = Callable[[dict[str, Any], Document], Scores]


def of_model(names_of: Names, function: Function) -> Reference:
    """The scalar scores of a model, whose parameters `names_of` gives."""

    def reference(model: DocumentLM, document: Document) -> Scores:
        return function(names_of(model), document)

    return reference


def hrnnlm_loss(model: DocumentLM, before: DocumentLM, document: Document) -> float:
    """The word level's loss with the sentence level as data, and the sentence level's own."""
    p, data = names.ji(model), names.ji(before)
    own = nats(ji.next_sentence_scores(p, document, data))
    return -nats(ji.hrnnlm(p, document, data)) - own


MODELS: dict[str, tuple[Names, Function, Loss | None]] = {
    "rnnlm": (names.ji, ji.rnnlm, None),
    "drnnlm": (names.ji, ji.drnnlm, None),
    "codclm": (names.ji, ji.codclm, None),
    "ccdclm": (names.ji, ji.ccdclm, None),
    "adclm": (names.adclm, ji.adclm, None),
    "dam": (names.dam, ji.dam, None),
    "hrnnlm": (names.ji, ji.hrnnlm, hrnnlm_loss),
}
SHAPES = [("lstm", 1, True), ("cifg", 2, False), ("cifg-2015", 3, False)]
OTHERS = [("ccdclm", "rnn", 2), ("hrnnlm", "gru", 1), ("drnnlm", "gru", 2), ("dam", "rnn", 1)]
OTHERS += [("ccdclm", "peephole", 2)]


def case(name: str, recurrence: str, layers: int, tied: bool) -> Case:
    names_of, function, loss = MODELS[name]
    attention = 5 if name in ("adclm", "dam") else None
    config = Config(name, V, 3, 4, recurrence, layers, tied, attention=attention)
    return Case(config, of_model(names_of, function), loss)


CASES = [case(name, *shape) for name in MODELS for shape in SHAPES]
CASES += [case(*other, tied=False) for other in OTHERS]
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
