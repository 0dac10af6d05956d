"""The models of Ji et al. 2016 against scalar code written from the paper."""

from collections.abc import Callable, Iterator

import pytest
from support.scalar import ji, names
from support.scalar.algebra import log_softmax
from support.scalar.cells import Parameters
from support.scalar.comparison import (
    Case,
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


def hrnnlm_loss(model: DocumentLM, before: DocumentLM, document: Document) -> float:
    """The word level's loss with the sentence level as data, and the sentence level's own."""
    p, data = names.ji(model), names.ji(before)
    own = nats(ji.next_sentence_scores(p, document, data))
    by_bias = log_softmax(p["b_2"])
    own += sum(by_bias[word] for word in document[0])
    return -nats(ji.hrnnlm(p, document, data)) - own


def of_model(function: Callable[[Parameters, Document], Scores]) -> Reference:
    def reference(model: DocumentLM, document: Document) -> Scores:
        return function(names.ji(model), document)

    return reference


MODELS = {
    "rnnlm": (ji.rnnlm, None),
    "drnnlm": (ji.drnnlm, None),
    "codclm": (ji.codclm, None),
    "ccdclm": (ji.ccdclm, None),
    "hrnnlm": (ji.hrnnlm, hrnnlm_loss),
}
SHAPES = [("lstm", 1, True), ("cifg", 2, False), ("lstm", 3, False)]


def cases() -> Iterator[Case]:
    for name, (function, loss) in MODELS.items():
        for recurrence, layers, tied in SHAPES:
            config = Config(name, V, 3, 4, recurrence, layers, tied)
            yield Case(config, of_model(function), loss)


every_case = pytest.mark.parametrize("case", list(cases()), ids=str)


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
