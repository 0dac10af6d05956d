"""The tensors of contextual LSTMs under the names of `support.scalar.clstm`."""

from typing import Any

from support.scalar import names
from support.scalar.clstm import (
    Features,
    clstm,
    clstm_carried,
    clstm_thought,
    given_topic,
    hlstm,
    paragraph_topic,
    previous_topic,
    sentence_topic,
)
from support.scalar.ji import Document, Scores

from lm.contexts.topics import Topics
from lm.model import DocumentLM

TOPICS: dict[str, tuple[Features, ...]] = {
    "clstm-prevsent": (previous_topic,),
    "clstm-sentseg": (sentence_topic,),
    "clstm-paraseg": (paragraph_topic,),
    "clstm-prevsent-sentseg": (previous_topic, sentence_topic),
    "clstm-sentseg-paraseg": (sentence_topic, paragraph_topic),
}
_TABLES: dict[Features, str] = {
    previous_topic: "T_prev",
    sentence_topic: "T_sent",
    paragraph_topic: "T_para",
}


def scores(model: DocumentLM, document: Document) -> Scores:
    """The scalar scores of a model of `TOPICS`."""
    features = TOPICS[model.config.model]
    return clstm(parameters(model, features), document, *features)


def parameters(model: DocumentLM, features: tuple[Features, ...]) -> dict[str, Any]:
    """Parameters of `support.scalar.clstm.clstm`, with the whole numbers of the topic model."""
    of = names.tensors(model)
    assert isinstance(model.context, Topics)
    own = model.context.topics
    named = _word_level(of) | {
        "W": [weights if counts else None for counts, *weights in own.terms.tolist()],
        "prior": own.prior.tolist(),
    }
    tables = zip(features, of["context.tables"].tolist(), strict=True)
    return named | {_TABLES[feature]: table for feature, table in tables}


def given_scores(model: DocumentLM, document: Document, given: list[int]) -> Scores:
    """The scalar scores of clstm-given-topic, also carried; given: labels, 0 or from 3 on."""
    of = names.tensors(model)
    carried = model.config.model == "clstm-given-topic-carried"
    (table,) = of["context.topic.table" if carried else "context.table"].tolist()
    named = _word_level(of) | {"T_given": table, "given": [max(label - 2, 0) for label in given]}
    return (clstm_carried if carried else clstm)(named, document, given_topic)


def thought_scores(model: DocumentLM, document: Document) -> Scores:
    """The scalar scores of clstm-thought and hlstm."""
    of = names.tensors(model)
    named = _word_level(of) | {"W_t": of["context.thought.projection.weight"].tolist()}
    if upper := names.part(of, "context.upper."):
        return hlstm(named | {"g_s": names.stack(upper, "peephole")}, document)
    return clstm_thought(named, document)


def _word_level(of: names.Tensors) -> dict[str, Any]:
    return {
        "X": of["embedding.weight"].tolist(),
        "g": names.stack(names.part(of, "recurrence."), "peephole"),
        "W_o": names.output_matrix(of).tolist(),
        "b": of["head.bias"].tolist(),
    }
