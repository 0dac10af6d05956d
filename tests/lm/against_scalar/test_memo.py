"""The contexts of Eisenstein's memo, computed by hand."""

import math

import pytest
import torch
from support.scalar.cases.memo import AUXILIARY, REPRESENTATIONS
from support.scalar.comparison import (
    training_scores,
)

from lm.composition import ENCODERS, RELATION_CLASSIFIERS
from lm.model import Config, DocumentLM
from lm.vocabulary import END


def test_every_encoder_has_scalar_code() -> None:
    assert ENCODERS.keys() == REPRESENTATIONS.keys()


def test_every_relation_classifier_has_scalar_code() -> None:
    assert {case.config.relation_classifier or "bilinear" for case in AUXILIARY} == {
        *RELATION_CLASSIFIERS
    }


# Computed by hand

WORD = 3  # of four, whose embedding is 1/4; all other weights are 0 unless a test sets them
FIRST = 0.5  # h_0


def small(name: str, **options: str) -> DocumentLM:
    """A model of four words with one unit, in which the word level has no effect on the logits.

    Only the logit of `WORD` depends on the context: by log 3 for each unit of it.
    """
    config = Config(name, 4, 1, 1, "tanh", 1, tied=False, **options)  # type: ignore[arg-type]
    model = DocumentLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.embedding.weight[WORD] = 0.25
        model.get_parameter("context.first").fill_(FIRST)
        model.get_parameter("head.output")[WORD, 1:] = math.log(3)
    return model


def check_by_hand(model: DocumentLM, contexts: list[float]) -> None:
    """Two sentences, `w w` and `w`: p(w) = 3^c / (3^c + 3) and p(</s>) = 1 / (3^c + 3)."""
    found = training_scores(model, [[WORD, WORD], [WORD]])
    assert END != WORD
    for own, c, words in zip(found, contexts, (2, 1), strict=True):
        log_z = math.log(3**c + 3)
        assert own == pytest.approx([c * math.log(3) - log_z] * words + [-log_z], abs=1e-6)


def test_the_document_context_of_two_sentences_is_that_computed_by_hand() -> None:
    """h_1 = HTanh(1 · b_1 + 1/2 · h_0) with b_1 = 1/4 + 1/4: 3/4 (eq. 5)."""
    model = small("dclm", encoder="sum", sentence_recurrence="htanh")
    with torch.no_grad():
        model.get_parameter("context.level.lower.0").fill_(1.0)
        model.get_parameter("context.level.recurrent.0").fill_(0.5)
    check_by_hand(model, [0.5, 0.75])


@pytest.mark.parametrize(("encoder", "b"), [("sum", 0.5), ("bag", 0.25)])
def test_the_decoupled_context_is_the_vector_of_the_previous_sentence(
    encoder: str, b: float
) -> None:
    check_by_hand(small("dclm-decoupled", encoder=encoder), [FIRST, b])


def test_a_convolution_of_two_words_is_that_computed_by_hand() -> None:
    """Windows (0, 1/4, 1/4) and (1/4, 1/4, 0) times (2, 1, 4): the larger is 5/4."""
    model = small("dclm-decoupled", encoder="cnn")
    with torch.no_grad():
        model.get_parameter("context.encoder.filters.weight").copy_(torch.tensor([[2.0, 1, 4]]))
    check_by_hand(model, [FIRST, math.tanh(1.25)])


def test_the_states_of_two_sentences_enter_each_by_its_own_matrix() -> None:
    """a = tanh(4 · 1/4 + 0 · a⁻) after w; V_1 = log 3, V_2 = 2 log 3: c = a_1 + 2 h_0."""
    model = small("dclm-two-sentence")
    with torch.no_grad():
        model.get_parameter("recurrence.lower.0").fill_(4.0)
        model.get_parameter("head.output")[WORD, 1] = 2 * math.log(3)
    check_by_hand(model, [3 * FIRST, math.tanh(1.0) + 2 * FIRST])
