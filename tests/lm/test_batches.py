"""PackedBatch batches and segments against their plain definitions."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lm.batches import SEGMENTS, PackedBatch, Segment, epoch_order, segments
from lm.corpus import Corpus
from lm.vocabulary import END, START

sentences_of_words = st.lists(st.lists(st.integers(3, 9), max_size=5), min_size=1, max_size=7)
document_lengths = st.lists(st.integers(1, 7), min_size=1, max_size=8)


def corpus_of(sentences: list[list[int]]) -> Corpus:
    tokens = np.array([w for s in sentences for w in s], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sentences])])
    return Corpus(tokens, offsets, np.array([0, len(sentences)]))


def corpus_of_documents(lengths: list[int]) -> Corpus:
    """Documents of so many sentences of one word each."""
    n = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Corpus(np.full(n, 3, dtype=np.int32), np.arange(n + 1), offsets)


@given(sentences_of_words, st.data())
def test_a_packed_batch_holds_every_sentence_and_nothing_else(
    sentences: list[list[int]], data: st.DataObject
) -> None:
    index = st.integers(0, len(sentences) - 1)
    chosen = np.array(data.draw(st.lists(index, min_size=1, max_size=9)))
    batch = PackedBatch.of(corpus_of(sentences), chosen)
    assert sorted(batch.order.tolist()) == list(range(len(chosen)))
    for row, given_place in enumerate(batch.order.tolist()):
        words = sentences[chosen[given_place]]
        positions = (batch.rows == row).nonzero()[:, 0]
        assert batch.inputs[positions].tolist() == [START, *words]
        assert batch.targets[positions].tolist() == [*words, END]
        assert int(batch.last[row]) == int(positions[-1])
    assert len(batch.inputs) == sum(len(sentences[i]) + 1 for i in chosen)


@given(sentences_of_words)
def test_a_time_step_is_the_rows_that_still_have_a_word_longest_first(
    sentences: list[list[int]],
) -> None:
    batch = PackedBatch.of(corpus_of(sentences), np.arange(len(sentences)))
    lengths = [len(sentences[i]) + 1 for i in batch.order.tolist()]
    assert lengths == sorted(lengths, reverse=True)
    steps = torch.split(batch.rows, list(batch.sizes))
    assert len(steps) == lengths[0]
    for n, rows in enumerate(steps):
        assert rows.tolist() == [row for row, length in enumerate(lengths) if length > n]


def test_sentences_of_equal_length_keep_their_order() -> None:
    batch = PackedBatch.of(corpus_of([[3], [4, 4], [5], [6, 6]]), np.arange(4))
    assert batch.order.tolist() == [1, 3, 0, 2]


def test_a_batch_of_no_sentences_is_empty() -> None:
    batch = PackedBatch.of(corpus_of([[3]]), np.zeros(0, dtype=np.int64))
    assert (batch.sizes, len(batch.inputs), len(batch.order)) == ((), 0, 0)


def walk(parts: list[Segment]) -> list[list[int]]:
    """Sentences of every document, in the order in which its stream read them."""
    streams: dict[int, list[int]] = {}
    documents: list[list[int]] = []
    for part in parts:
        for stream, begins in enumerate(part.begins):
            if begins:
                documents.append([])
                streams[stream] = documents[-1]
            column = part.sentences[:, stream]
            streams.get(stream, []).extend(column[column >= 0].tolist())
    return documents


@given(document_lengths, st.integers(1, 4), st.integers(1, 4), st.randoms())
def test_streams_read_every_document_once_from_its_first_sentence_to_its_last(
    lengths: list[int], streams: int, length: int, random: object
) -> None:
    corpus = corpus_of_documents(lengths)
    order = list(range(len(lengths)))
    random.shuffle(order)  # type: ignore[attr-defined]
    parts = list(segments(corpus, order, streams=streams, length=length))
    documents = [list(range(*corpus.documents[d : d + 2])) for d in order]
    assert walk(parts) == documents
    for part in parts:
        assert part.sentences.shape == (length, streams)
        assert (part.sentences >= 0).any()


@given(document_lengths, st.integers(1, 4), st.integers(1, 4))
def test_a_segment_stays_within_one_document_a_stream_and_has_no_gaps(
    lengths: list[int], streams: int, length: int
) -> None:
    corpus = corpus_of_documents(lengths)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    for part in segments(corpus, range(len(lengths)), streams=streams, length=length):
        for column in part.sentences.T:
            present = column[column >= 0]
            assert (column[: len(present)] == present).all()
            assert len(set(owner[present])) <= 1
            assert (np.diff(present) == 1).all()


def test_the_order_of_an_epoch_is_a_permutation_that_seed_and_epoch_decide() -> None:
    orders = {(s, e): tuple(epoch_order(30, s, e)) for s in range(3) for e in range(3)}
    assert all(sorted(order) == list(range(30)) for order in orders.values())
    assert len(set(orders.values())) == len(orders)
    np.random.default_rng(5).random()
    assert tuple(epoch_order(30, 1, 2)) == orders[1, 2]


@given(document_lengths, st.integers(1, 4), st.integers(1, 8))
def test_independent_segments_are_the_stretches_of_documents_in_a_random_order(
    lengths: list[int], streams: int, length: int
) -> None:
    corpus = corpus_of_documents(lengths)
    read = [
        list(
            SEGMENTS["independent"](corpus, streams=streams, length=length, seed=seed, epoch=epoch)
        )
        for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0))
    ]
    columns = [
        [tuple(column[column >= 0].tolist()) for part in parts for column in part.sentences.T]
        for parts in read
    ]
    expected = [
        tuple(range(begin, min(begin + length, end)))
        for first, end in zip(corpus.documents, corpus.documents[1:], strict=False)
        for begin in range(first, end, length)
    ]
    assert all(sorted(filter(None, found)) == expected for found in columns)
    assert all(part.begins.all() for parts in read for part in parts)
    full = [sum(bool(c) for c in found) for found in columns]
    assert [len(parts) for parts in read] == [-(-n // streams) for n in full]
    assert columns[0] == columns[1]


def test_independent_segments_have_another_order_in_every_epoch_and_seed() -> None:
    corpus = corpus_of_documents([3] * 40)
    orders = [
        tuple(
            int(part.sentences[0, 0])
            for part in SEGMENTS["independent"](corpus, streams=1, length=2, seed=seed, epoch=epoch)
        )
        for seed, epoch in ((1, 0), (1, 1), (2, 0))
    ]
    assert len(set(orders)) == 3
