"""Side information in columns: rows of words, and the sentences that are kept."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lm.contexts import Context
from lm.corpus import Corpus
from lm.model import Config, DocumentLM
from lm.side_information import (
    SentenceNumbers,
    SideText,
    information_of,
    is_causal,
    words_of,
)

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


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_the_next_sentence_is_that_of_the_same_document(sizes: list[int]) -> None:
    n = sum(sizes)
    bounds = np.cumsum([0, *sizes])
    side = {"source": text_of([[3 + s] for s in range(n)])}
    corpus = Corpus(np.zeros(0, np.int32), np.zeros(n + 1, np.int64), bounds, side)
    (rows,) = corpus.side_rows(["next-source"], np.arange(n), torch.device("cpu")).tensors
    last = {int(end) - 1 for end in bounds[1:]}
    truth = [0 if s in last else 1 + 3 + s + 1 for s in range(n)]
    assert [max(row, default=0) for row in rows.tolist()] == truth


def parents_of(corpus: Corpus) -> list[int]:
    """The number that the words of each sentence's parent are, of sentences of one such word."""
    chosen = np.arange(corpus.n_sentences)
    (rows,) = corpus.side_rows(["parent-source"], chosen, torch.device("cpu")).tensors
    return [max(row, default=0) - 1 for row in rows.tolist()]


def test_parents_follow_their_sentences_where_others_are_left_out() -> None:
    """Sentence 1, of two words, is left out; a sentence whose parent it was has none."""
    side = {"source": text_of([[10], [11], [12], [13]])}
    side["parents"] = SentenceNumbers.of(np.array([2, 3, 1, 0]))
    words = Corpus.of([[[3], [3, 4], [5]], [[6]]])
    corpus = Corpus(words.tokens, words.sentences, words.documents, side)
    assert parents_of(corpus) == [12, 13, 11, 10]
    kept = corpus.without_longer(1)
    assert parents_of(kept) == [12, -1, 10]
    assert parents_of(kept.in_stretches(1)) == [12, -1, 10]
    assert kept.digest() != corpus.digest()


def test_what_is_given_for_derived_kinds_is_what_they_follow_from() -> None:
    class Both(Context):
        side_information = ("next-source", "parent-source")
        training_information = ("relations",)

    assert information_of(Both) == ("source", "parents", "relations")
    assert information_of(Both, training=False) == ("source", "parents")


def test_what_is_derived_from_the_text_itself_need_not_be_given() -> None:
    class Target(Context):
        side_information = ("source", "next-target")

    assert information_of(Target) == ("source",)
    assert not is_causal(Target)
    assert is_causal(Context)
