"""The models of Eisenstein's memo against scalar code written from it, and against hand."""

import math

import pytest
import torch
from support.scalar import memo
from support.scalar.comparison import (
    SIDE,
    Case,
    V,
    check_engine_scores,
    check_gradients,
    check_training_scores,
    check_training_scores_in_float64,
    nats,
    training_scores,
)
from support.scalar.ji import Document, Scores
from support.scalar.memo_names import memo as names

from lm.composition import ENCODERS, RELATION_CLASSIFIERS, SOURCE_CONTEXTS
from lm.model import Config, DocumentLM
from lm.vocabulary import END

REPRESENTATIONS = {
    "bag": memo.bag,
    "sum": memo.sum_of_embeddings,
    "cnn": memo.cnn,
    "rnn": memo.rnn,
}
GIVEN_RELATIONS = {
    "dclm-projection": memo.projection,
    "dclm-projection-decoupled": memo.projection_decoupled,
    "dclm-recurrence": memo.relation_recurrence,
}

OTHER_SOURCES = {"dclm-bilingual": 0, "dclm-right": 1, "dclm-rst": 2}


def reference(model: DocumentLM, document: Document) -> Scores:
    """The scalar scores of a model."""
    config, p = model.config, names(model)
    if config.model == "dclm-two-sentence":
        return memo.two_sentence(p, document)
    if config.model in GIVEN_RELATIONS:
        relations = [label for (label,) in SIDE["relations"][: len(document)]]
        g = REPRESENTATIONS[config.encoder or "cnn"]
        return GIVEN_RELATIONS[config.model](p, document, relations, g)
    if config.source_words:
        return of_source(model, document)
    functions = {"dclm-decoupled": memo.decoupled, "dclm-right-target": memo.right_context}
    function = functions.get(config.model, memo.dclm)
    return function(p, document, REPRESENTATIONS[config.encoder or "cnn"])


def of_source(model: DocumentLM, document: Document) -> Scores:
    """The scalar scores of a model of source sentences."""
    config, n = model.config, len(document)
    following: list[int | None] = [*range(1, n), None]
    entries = [own[0] if own else None for own in SIDE["parents"][:n]]
    parents = [None if own is None or own >= n else own for own in entries]
    return memo.source_context(
        names(model),
        document,
        SIDE["source"][:n],
        REPRESENTATIONS[config.encoder or "cnn"],
        given=SOURCE_CONTEXTS[config.source_context or "both"],
        others=[following, parents][: OTHER_SOURCES[config.model]],
    )


def multi_task_loss(model: DocumentLM, before: DocumentLM, document: Document) -> float:
    """−log p of the words and of the relations."""
    relations = [label for (label,) in SIDE["relations"][: len(document)]]
    g = REPRESENTATIONS[model.config.encoder or "cnn"]
    of_words = -nats(reference(model, document))
    return of_words + memo.relation_nats(names(model), document, relations, g)


SHAPES = [  # encoder, recurrence over words, over sentences, layers, tied
    ("bag", "rnn", "tanh", 1, False),
    ("sum", "lstm", "gru", 2, True),
    ("cnn", "lstm", None, 1, True),
    ("cnn", "cifg", "lstm", 2, False),
    ("rnn", "gru", "lstm", 1, False),
    ("rnn", "lstm", "cifg", 2, True),
]
CASES = [
    Case(
        Config("dclm", V, 3, 4, words, layers, tied, encoder=g, sentence_recurrence=sentences),
        reference,
    )
    for g, words, sentences, layers, tied in SHAPES
]
CASES += [
    Case(Config("dclm-decoupled", V, 3, 4, words, layers, tied, encoder=g), reference)
    for g, words, _, layers, tied in SHAPES[::2]
]
CASES += [Case(Config("dclm-decoupled", V, 3, 4, "tanh", 1, tied=False, encoder="sum"), reference)]
CASES += [
    Case(Config("dclm-two-sentence", V, 3, 4, *shape), reference)
    for shape in (("rnn", 1, False), ("lstm", 2, True), ("cifg", 1, False))
]
CASES += [
    Case(
        Config(name, V, 3, 4, *shape, encoder=g, sentence_recurrence=level, relation_labels=6),
        reference,
    )
    for name, g, level, shape in [
        ("dclm-projection", "bag", "tanh", ("rnn", 1, False)),
        ("dclm-projection", "cnn", "lstm", ("gru", 2, True)),
        ("dclm-projection-decoupled", "cnn", None, ("lstm", 1, True)),
        ("dclm-recurrence", "bag", "tanh", ("rnn", 1, False)),
        ("dclm-recurrence", "rnn", "cifg", ("lstm", 2, True)),
    ]
]
CASES += [
    Case(
        Config(name, V, 3, 4, *shape, encoder=g, source_words=8, source_context=chosen),
        reference,
    )
    for name, g, chosen, shape in [
        ("dclm-bilingual", "sum", "current", ("rnn", 1, False)),
        ("dclm-right", "bag", "previous", ("rnn", 1, False)),
        ("dclm-right", "rnn", None, ("lstm", 2, True)),
        ("dclm-rst", "cnn", None, ("lstm", 1, True)),
        ("dclm-rst", "sum", "current", ("gru", 1, False)),
    ]
]
CASES += [
    Case(
        Config("dclm-right-target", V, 3, 4, *shape, encoder=g, sentence_recurrence=level),
        reference,
    )
    for g, level, shape in [
        ("bag", "tanh", ("rnn", 1, False)),
        ("cnn", None, ("lstm", 1, True)),
        ("rnn", "cifg", ("gru", 2, False)),
    ]
]
AUXILIARY = [
    Case(
        Config(
            "dclm-auxiliary",
            V,
            3,
            4,
            *shape,
            encoder="bag",
            relation_labels=6,
            relation_classifier=classifier,
        ),
        reference,
        multi_task_loss,
    )
    for classifier, shape in [(None, ("lstm", 2, True)), ("mlp", ("rnn", 1, False))]
]
CASES += AUXILIARY
every_case = pytest.mark.parametrize(
    "case",
    CASES,
    ids=lambda case: f"{case}-{case.config.encoder}-{case.config.sentence_recurrence}",
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
