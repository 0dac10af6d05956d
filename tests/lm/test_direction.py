"""Backward models against forward ones, whose texts are reversed by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lm.checkpoint import SavedModel, load_model, save_model
from lm.corpus import Corpus, encode
from lm.direction import in_reading_order, reversed_sentences, reversed_words
from lm.evaluation import perplexity, perplexity_by_document
from lm.model import Config, DocumentLM
from lm.trie import Candidates
from lm.vocabulary import Vocabulary

TEXT = [b"a b c", b"b zebra", b"", b"c", b"a a a zoo b", b"c b", b"", b"b"]
VOCABULARY = Vocabulary((b"a", b"b", b"c"))


def mirrored(line: bytes) -> bytes:
    return b" ".join(reversed(line.split(b" ")))


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5))
def test_the_words_of_each_sentence_are_reversed_and_nothing_else(lists: list[list[int]]) -> None:
    columns, turned = Candidates.of([lists]), Candidates.of([[one[::-1] for one in lists]])
    found = reversed_words(columns.tokens, columns.offsets)
    np.testing.assert_array_equal(found, turned.tokens)
    np.testing.assert_array_equal(reversed_words(found, columns.offsets), columns.tokens)


@pytest.fixture
def both(tmp_path: Path) -> tuple[SavedModel, SavedModel]:
    """A forward and a backward model of the same weights, saved and read back."""
    found = []
    for name, backward in (("forward", None), ("backward", True)):
        config = Config("ccdclm", len(VOCABULARY), 4, 5, backward=backward)
        save_model(tmp_path / name, DocumentLM.seeded(config, 1), VOCABULARY, {})
        found.append(load_model(tmp_path / name))
    return found[0], found[1]


def test_a_backward_model_reads_what_a_forward_one_reads_in_a_reversed_text(
    both: tuple[SavedModel, SavedModel],
) -> None:
    forward, backward = both
    assert all(
        torch.equal(a, b)
        for a, b in zip(forward.model.parameters(), backward.model.parameters(), strict=True)
    )
    truth = perplexity(forward.model, forward.encode(map(mirrored, TEXT)))
    found = perplexity(backward.model, backward.encode(TEXT))
    assert found == truth
    assert perplexity(forward.model, forward.encode(TEXT)).nats != pytest.approx(truth.nats)
    lines = b"".join(line + b"\n" for line in TEXT)
    turned = b"".join(mirrored(line) + b"\n" for line in TEXT)
    for ours, theirs in zip(
        backward.encode_lines(lines), forward.encode_lines(turned), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_the_direction_is_part_of_a_model_and_of_its_digest(
    both: tuple[SavedModel, SavedModel],
) -> None:
    forward, backward = both
    assert backward.model.config.backward
    assert backward.digest != forward.digest
    assert "backward" not in forward.model.config.as_json()  # folders are as they were before


def test_only_backward_models_reverse_a_text() -> None:
    corpus = encode(TEXT, VOCABULARY)
    for backward in (None, False):
        assert in_reading_order(corpus, backward=backward) is corpus
    turned = in_reading_order(corpus, backward=True)
    np.testing.assert_array_equal(turned.documents, corpus.documents)
    np.testing.assert_array_equal(turned.sentences, corpus.sentences)
    assert turned.tokens[:3].tolist() == corpus.tokens[:3][::-1].tolist()


# Documents from the last sentence to the first


@given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=4), max_size=4))
def test_the_sentences_of_each_document_are_reversed_and_nothing_else(
    documents: list[list[list[int]]],
) -> None:
    corpus, truth = Corpus.of(documents), Corpus.of([one[::-1] for one in documents])
    found = reversed_sentences(corpus)
    for ours, theirs in ((found, truth), (reversed_sentences(found), corpus)):
        for name in ("tokens", "sentences", "documents"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def documents_reversed(lines: list[bytes]) -> list[bytes]:
    """The sentences of each document from the last to the first."""
    documents = b"\n".join(lines).split(b"\n\n")
    return b"\n\n".join(b"\n".join(d.split(b"\n")[::-1]) for d in documents).split(b"\n")


@pytest.mark.parametrize("backward", [None, True])
def test_a_model_of_reversed_documents_reads_them_as_a_forward_one_reads_reversed_text(
    tmp_path: Path, backward: bool | None
) -> None:
    """With its words in either order; documents keep their places."""
    config = Config("ccdclm", len(VOCABULARY), 4, 5, backward=backward)
    turned = replace(config, reverse_documents=True)
    models = []
    for name, own in (("forward", config), ("reversed", turned)):
        save_model(tmp_path / name, DocumentLM.seeded(own, 1), VOCABULARY, {})
        models.append(load_model(tmp_path / name))
    forward, last_first = models
    assert last_first.digest != forward.digest
    assert "reverse_documents" not in forward.model.config.as_json()
    text = documents_reversed(TEXT)
    assert text != TEXT
    truth = perplexity_by_document(forward.model, forward.encode(text))
    found = perplexity_by_document(last_first.model, last_first.encode(TEXT))
    assert found == truth
    assert perplexity(forward.model, forward.encode(TEXT)).nats != pytest.approx(truth.nats)
    whole = [line for line in TEXT if line][::-1]
    across = last_first.encode(TEXT, across_documents=True)
    assert perplexity(last_first.model, across) == perplexity(forward.model, forward.encode(whole))
    assert last_first.sentence_order([[1], [2, 3]]) == [[2, 3], [1]]
    assert forward.sentence_order([[1], [2, 3]]) == [[1], [2, 3]]
