"""The models of Lin et al. 2015, each with its scalar code."""

import torch
from support.scalar import lin, lin_names
from support.scalar.comparison import (
    Case,
    Loss,
    Reference,
    V,
    nats,
)
from support.scalar.ji import Document, Scores

from lm.contexts.sentence_bags import SentenceLevel
from lm.heads.hashed_softmax import HashedSoftmax
from lm.model import Config, DocumentLM


def words_hash(model: DocumentLM) -> lin.Hash:
    assert isinstance(model.head, HashedSoftmax)
    return lin_names.hash_of(model.head.hashes)


def rnnslm(model: DocumentLM, document: Document) -> Scores:
    """Scores of the words; that of `</s>`, which is no word of a bag, is 0."""
    scores = lin.rnnslm(lin_names.rnnslm(model), document, words_hash(model))
    return [[*own, 0.0] for own in scores]


def rnnlm_lin(model: DocumentLM, document: Document) -> Scores:
    return lin.rnnlm_lin(lin_names.word_level(model), document, words_hash(model))


def hrnnlm_lin(model: DocumentLM, document: Document) -> Scores:
    return lin.hrnnlm_lin(lin_names.word_level(model), document, words_hash(model))


def hashed_rnnlm(model: DocumentLM, document: Document) -> Scores:
    """The head `hashed`."""
    assert isinstance(model.head, HashedSoftmax)
    table = model.head.hashes

    def hashes(history: list[int]) -> int:
        return int(table.first_slots(torch.tensor(history)))

    p = lin_names.hashed_rnnlm(model)
    return lin.hashed_rnnlm(p, document, hashes, model.config.hash_order or 2)


def sentence_level_loss(model: DocumentLM, document: Document) -> float:
    """Eq. 9: minus the mean of each sentence's words."""
    assert isinstance(model.context, SentenceLevel)
    hash = lin_names.hash_of(model.context.next_words.hashes)
    scores = lin.rnnslm(lin_names.word_level(model), document, hash)
    return -sum(sum(own) / len(own) for own in scores if own)


def two_step_loss(model: DocumentLM, before: DocumentLM, document: Document) -> float:
    """The word level's loss with the sentence level as data, and the sentence level's own."""
    p, data = lin_names.word_level(model), lin_names.word_level(before)
    words = nats(lin.hrnnlm_lin(p, document, words_hash(model), data))
    return sentence_level_loss(model, document) - words


def dual_loss(model: DocumentLM, before: DocumentLM, document: Document) -> float:
    """Both losses, through the sentence level."""
    return sentence_level_loss(model, document) - nats(hrnnlm_lin(model, document))


MODELS: dict[str, tuple[Reference, Loss | None]] = {
    "rnnslm": (rnnslm, None),
    "rnnlm-lin": (rnnlm_lin, None),
    "hrnnlm-lin": (hrnnlm_lin, two_step_loss),
    "hrnnlm-lin-dual": (hrnnlm_lin, dual_loss),
}
# a table whose gradient is sparse, and one in which most pairs share their slot
CASES = [
    Case(Config(name, V, 4, 4, hash_size=slots), *parts)
    for name, parts in MODELS.items()
    for slots in (2000, 13)
]
CASES += [
    Case(
        Config("rnnlm", V, 3, 4, "lstm", 1, False, "hashed", hash_size=slots, hash_order=order),
        hashed_rnnlm,
    )
    for order, slots in ((2, 2000), (3, 13))
]
