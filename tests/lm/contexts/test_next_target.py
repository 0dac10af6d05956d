"""The next target sentence as context: which one it is, and what depends on it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lm.batches import segments
from lm.composition import FUSIONS
from lm.corpus import Corpus
from lm.direction import reversed_sentences
from lm.laws import check_composition
from lm.model import Config, DocumentLM
from lm.reading import read
from lm.zoo import ZOO

DOCUMENTS = [[[3, 4, 5], [6, 7], [8, 3]], [[4, 8], [5, 5, 6]], [[7]]]
CHANGED = {3: 6, 4: 8, 5: 7, 6: 4, 7: 3, 8: 5}
FOLLOWED = [1, 2, -1, 4, -1, -1]  # the next sentence of the same document


def model_of(fusion: str | None = None) -> DocumentLM:
    model = DocumentLM.seeded(
        Config("dclm-right-target", 9, 4, 5, "lstm", 1, tied=False, fusion=fusion), 3
    ).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    return model


@torch.no_grad()
def scores(model: DocumentLM, text: Corpus, *, streams: int, length: int) -> torch.Tensor:
    """log p (S,) of the sentences of a text, read in segments as training reads them."""
    found, contexts = torch.zeros(text.n_sentences), model.context.start(streams)
    for part in segments(text, range(text.n_documents), streams=streams, length=length):
        reading = read(model, text, part, contexts)
        contexts = reading.contexts
        nll = model.head.nll(reading.features, reading.targets)
        found.index_add_(0, reading.sentences, -nll)
    return found


@pytest.mark.parametrize("fusion", [None, "input", "gate"])
@pytest.mark.parametrize(("streams", "length"), [(1, 1), (2, 2), (3, 5)])
def test_scores_change_with_the_next_sentence_of_the_document_and_with_no_later_one(
    fusion: str | None, streams: int, length: int
) -> None:
    """Also where the next sentence is in the next segment; never across the ends of documents."""
    model, text = model_of(fusion), Corpus.of(DOCUMENTS)
    before = scores(model, text, streams=streams, length=length)
    for s in range(text.n_sentences):
        tokens = text.tokens.copy()
        begin, end = text.sentences[s : s + 2]
        tokens[begin:end] = [CHANGED[word] for word in tokens[begin:end].tolist()]
        after = scores(model, replace(text, tokens=tokens), streams=streams, length=length)
        changed = torch.nonzero((after - before)[:s].abs() > 1e-5).flatten().tolist()
        assert changed == [t for t in range(s) if FOLLOWED[t] == s]


def test_after_a_document_stands_the_vector_of_no_words() -> None:
    """As if the next sentence were one without words."""
    model = model_of()
    alone = scores(model, Corpus.of([[[3, 4], [5, 6]]]), streams=1, length=4)
    blank = scores(model, Corpus.of([[[3, 4], [5, 6], []]]), streams=1, length=4)
    torch.testing.assert_close(blank[:2], alone)


def test_of_reversed_documents_the_next_sentence_is_the_one_before() -> None:
    text = reversed_sentences(Corpus.of(DOCUMENTS))
    (rows,) = text.side_rows(["next-target"], np.arange(6), torch.device("cpu")).tensors
    words = [[n - 1 for n in row if n] for row in rows.tolist()]
    assert words == [[6, 7], [3, 4, 5], [], [4, 8], [], []]


def test_the_model_says_that_it_is_not_causal() -> None:
    assert not model_of().causal
    assert all(DocumentLM(Config(name, 9, 4, 5)).causal for name in ("dclm", "rnnlm"))


@pytest.mark.parametrize("fusion", ["input", "merge", "gate"])
def test_other_fusions_of_the_context_obey_the_laws(fusion: str) -> None:
    composition = replace(ZOO["dclm-right-target"], fusion=FUSIONS[fusion])
    check_composition(composition, recurrence="lstm", scale=4.0)
