"""Contexts after texts that are only read, against words read one by one (`lm.laws`)."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support.models import OF_TEXT_ALONE, entered

from lm.batches import PackedBatch
from lm.composition import Composition
from lm.contexts.bag import BagOfWords
from lm.contexts.previous_words import PreviousWords
from lm.corpus import Corpus
from lm.engine import ScoringEngine
from lm.fusions import Input, Output
from lm.histories import contexts_after, read_on
from lm.model import DocumentLM
from lm.rows import Rows
from lm.scoring import after
from lm.side_information import SideText
from lm.tiny_models import DOCUMENT, OTHER, context_after, tiny_model
from lm.trie import Candidates
from lm.zoo import ZOO

COMPOSITIONS = {
    **{name: ZOO[name] for name in OF_TEXT_ALONE},
    "attention": Composition(PreviousWords, Input, "", ""),
    "bag": Composition(BagOfWords, Output, "", ""),
}
DOCUMENTS = [list(DOCUMENT[:3]), [], [OTHER], list(DOCUMENT)]


def scores(model: DocumentLM, contexts: Rows) -> torch.Tensor:
    """Scores of sentences after contexts, by which two contexts can be compared."""
    request = Candidates.of([[OTHER, [7, 9], []]]), contexts
    return torch.tensor(after(ScoringEngine.of(model), [request])[0][0])


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_documents_read_side_by_side_leave_the_contexts_of_each_alone(name: str) -> None:
    model = tiny_model(COMPOSITIONS[name])
    found = scores(model, contexts_after(model, Corpus.of(DOCUMENTS)))
    alone = torch.cat([scores(model, context_after(model, text)) for text in DOCUMENTS])
    torch.testing.assert_close(found, alone)
    begun = scores(model, model.context.start(1))[0]
    torch.testing.assert_close(found[1], begun)  # a document without sentences
    differ = [not torch.allclose(found[d], begun) for d in (0, 2, 3)]
    assert differ == [model.order != 0] * 3


def test_documents_may_all_be_empty() -> None:
    model = tiny_model(ZOO["ccdclm"])
    assert len(contexts_after(model, Corpus.of([[], [], []]))) == 3


def test_texts_are_read_on_from_contexts() -> None:
    model = tiny_model(ZOO["drnnlm"])
    corpus = Corpus.of([[OTHER, DOCUMENT[3]]])
    before = torch.cat(context_after(model, DOCUMENT[:3]).tensors)
    assert before.any()
    found = read_on(model, corpus, np.array([1]), context_after(model, DOCUMENT[:3]))
    torch.testing.assert_close(
        scores(model, found), scores(model, context_after(model, DOCUMENT[:4]))
    )


def test_texts_are_read_with_their_side_information() -> None:
    """The context after a text is that in which it was read sentence by sentence."""
    model = tiny_model(ZOO["clstm-given-topic-carried"])
    labels = np.array([[3, 0, 4], [3, 4, 4]], dtype=np.int32)
    text, other = (
        replace(Corpus.of([DOCUMENT[:3]]), side={"topics": SideText(own, np.arange(4))})
        for own in labels
    )
    found = contexts_after(model, text)
    contexts = model.context.start(1)
    for s in range(3):
        own = entered(model, text, contexts, s)
        read = model.unroll(PackedBatch.of(text, np.array([s])), own)
        contexts = model.context.advance(own, model.context.summary(read))
    for one, true in zip(found.tensors, contexts.tensors, strict=True):
        torch.testing.assert_close(one, true)
    assert not torch.allclose(contexts_after(model, other).tensors[0], found.tensors[0])
