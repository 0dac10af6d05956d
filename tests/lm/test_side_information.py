"""Side information in columns: rows of words, and the sentences that are kept."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lm.corpus import Corpus
from lm.model import Config, DocumentLM
from lm.side_information import SideText, words_of

sentences = st.lists(st.lists(st.integers(0, 9), max_size=5), min_size=1, max_size=6)


def text_of(found: list[list[int]]) -> SideText:
    corpus = Corpus.of([found])
    return SideText(corpus.tokens, corpus.sentences)


@given(sentences, st.data())
def test_rows_hold_the_words_of_the_chosen_sentences(
    found: list[list[int]], data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=5))
    rows = text_of(found).rows(np.array(chosen, dtype=np.int64))
    assert [[n - 1 for n in row if n] for row in rows.tolist()] == [found[n] for n in chosen]
    ids, mask = words_of(rows)
    assert [w[m].tolist() for w, m in zip(ids, mask, strict=True)] == [found[n] for n in chosen]
    assert all(sorted(m.tolist()) == m.tolist() for m in mask)  # padding at the beginning
    assert not ids[~mask].any()


@given(sentences, st.data())
def test_sentences_that_a_corpus_leaves_out_take_their_side_information_along(
    found: list[list[int]], data: st.DataObject
) -> None:
    words = [data.draw(st.lists(st.integers(3, 9), min_size=1, max_size=4)) for _ in found]
    corpus = Corpus.of([words])
    corpus = Corpus(corpus.tokens, corpus.sentences, corpus.documents, {"source": text_of(found)})
    kept = corpus.without_longer(2)
    rows = kept.side["source"].rows(np.arange(kept.n_sentences))
    truth = [own for own, target in zip(found, words, strict=True) if len(target) <= 2]
    assert [[n - 1 for n in row if n] for row in rows.tolist()] == truth
    assert (corpus.digest() == kept.digest()) == (len(truth) == len(found))


def test_the_digest_of_a_corpus_depends_on_its_side_information() -> None:
    plain = Corpus.of([[[3], [4]]])
    digests = {plain.digest()}
    for found in ([[5], [6]], [[5, 6], []], [[6], [5]]):
        side = {"source": text_of(found)}
        own = Corpus(plain.tokens, plain.sentences, plain.documents, side)
        digests.add(own.digest())
    assert len(digests) == 4


def test_a_model_of_side_information_says_how_many_words_that_has() -> None:
    with pytest.raises(ValueError, match="'dclm-bilingual' needs side information: source"):
        DocumentLM(Config("dclm-bilingual", 9, 3, 4))
    with pytest.raises(ValueError, match="side information has 3 to"):
        Config("dclm-bilingual", 9, 3, 4, source_words=2)
    model = DocumentLM(Config("dclm-bilingual", 9, 3, 4, source_words=7))
    assert torch.is_tensor(model.context.start(2).tensors[0])
    with pytest.raises(ValueError, match="found a vocabulary of 7 words of theirs; leave"):
        DocumentLM(Config("codclm", 9, 3, 4, source_words=7))
