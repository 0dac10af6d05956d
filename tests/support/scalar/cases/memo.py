"""The models of Eisenstein's memo, each with its scalar code."""

from support.scalar import memo
from support.scalar.comparison import (
    SIDE,
    Case,
    V,
    nats,
)
from support.scalar.ji import Document, Scores
from support.scalar.memo_names import memo as names

from lm.composition import SOURCE_CONTEXTS
from lm.model import Config, DocumentLM

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
