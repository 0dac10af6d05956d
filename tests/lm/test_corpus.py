"""Text as columns, against lists of lists."""

from collections import Counter
from dataclasses import replace
from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lm.corpus import Corpus, build_vocabulary, encode, intern, with_last_words_twice
from lm.side_information import SideText
from lm.vocabulary import Vocabulary

line = st.lists(st.sampled_from([b"a", b"b", b"c", b"<unk>", b""]), max_size=4).map(b" ".join)
text = st.lists(line, max_size=12)


def documents_of(lines: list[bytes]) -> list[list[list[bytes]]]:
    """Runs of lines that hold words."""
    sentences = [line.split() for line in lines]
    return [list(run) for filled, run in groupby(sentences, key=bool) if filled]


def nested(corpus: Corpus) -> list[list[list[int]]]:
    sentences = np.split(corpus.tokens, corpus.sentences[1:-1]) if corpus.n_sentences else []
    bounds = zip(corpus.documents, corpus.documents[1:], strict=False)
    return [[s.tolist() for s in sentences[a:b]] for a, b in bounds]


@given(text)
def test_blank_lines_part_documents_and_lines_are_sentences(lines: list[bytes]) -> None:
    words, corpus = intern(lines)
    spelled = [[[words[i] for i in s] for s in d] for d in nested(corpus)]
    assert spelled == documents_of(lines)
    assert len(set(words)) == len(words)
    assert corpus.n_documents == len(spelled)
    assert corpus.n_sentences == sum(map(len, spelled))


@given(text)
def test_an_encoded_text_holds_the_vocabularys_ids(lines: list[bytes]) -> None:
    vocabulary = Vocabulary((b"c", b"a"))
    corpus = encode(lines, vocabulary)
    assert nested(corpus) == [[vocabulary.encode(s) for s in d] for d in documents_of(lines)]
    assert corpus.n_unknown == sum(s.count(0) for d in nested(corpus) for s in d)


@given(text, st.integers(0, 4))
def test_a_built_vocabulary_has_the_words_that_a_counter_finds_most_common(
    lines: list[bytes], size: int
) -> None:
    words, corpus = intern(lines)
    counter = Counter(w for line in lines for w in line.split() if w != b"<unk>")
    expected = tuple(w for w, _ in counter.most_common(size))
    assert build_vocabulary(words, corpus, size).words == expected


def test_paragraphs_are_documents_where_they_are_parted_so() -> None:
    lines = [b"<p>", b"a b", b"c <p>", b"<p>", b"<p> ", b"a", b"", b"b", b"<p>"]
    words, corpus = intern(lines, "paragraphs")
    assert words == [b"a", b"b", b"c", b"<p>", b"<p>"][:4]
    assert nested(corpus) == [[[0, 1], [2, 3]], [[0]], [[1]]]
    assert b"<p>" in intern(lines)[0]


def test_lines_that_begin_with_an_equals_sign_close_documents_where_these_are_parted_so() -> None:
    """As in the data files of Ji et al.: a blank line is a sentence without words."""
    lines = [b"a = b", b"= Title =", b"==", b"c", b"", b"b a", b"=", b"a"]
    words, corpus = intern(lines, "equals")
    spelled = [[[words[i] for i in s] for s in d] for d in nested(corpus)]
    assert spelled == [[[b"a", b"=", b"b"]], [[b"c"], [], [b"b", b"a"]], [[b"a"]]]
    assert nested(encode(lines, Vocabulary((b"c",)), "equals"))[1] == [[3], [], [0, 0]]
    _, parted = intern(lines)  # by blank lines, the signs are words
    assert (parted.n_documents, parted.n_sentences) == (2, 7)


def test_a_word_that_stands_for_unknown_words_is_not_in_the_vocabulary() -> None:
    words, corpus = intern([b"UNK a UNK b", b"UNK b c"])
    assert build_vocabulary(words, corpus, 2).words == (b"UNK", b"b")
    vocabulary = build_vocabulary(words, corpus, 2, unknown=b"UNK")
    assert vocabulary.words == (b"b", b"a")
    assert nested(encode([b"UNK a never"], vocabulary)) == [[[0, 4, 0]]]


@given(text)
def test_last_words_read_twice_are_words_of_their_own(lines: list[bytes]) -> None:
    _, corpus = intern(lines, "equals")
    again = with_last_words_twice(corpus)
    doubled = [[s + s[-1:] for s in d] for d in nested(corpus)]
    assert nested(again) == doubled
    assert again.tokens.dtype == np.int32


def test_long_texts_lose_nothing_where_their_columns_are_joined() -> None:
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 50, size=200_000)
    lines = [b" ".join(b"w%d" % i for i in part) for part in np.split(ids, 1000)]
    words, corpus = intern(lines)
    assert [words[i] for i in corpus.tokens] == [b"w%d" % i for i in ids]
    assert corpus.tokens.dtype == np.int32
    assert corpus.sentences.tolist() == list(range(0, 200_001, 200))


def test_the_digest_tells_words_and_divisions_apart() -> None:
    texts = [b"a b,c", b"a b,d", b"a,b c", b"a b,,c", b"a b c", b""]
    vocabulary = Vocabulary((b"a", b"b", b"c", b"d"))
    digests = [encode(t.split(b","), vocabulary).digest() for t in texts]
    assert len(set(digests)) == len(texts)
    assert digests[0] == encode([b"", b"a  b", b"c "], vocabulary).digest()


def test_columns_of_nested_lists_may_have_empty_documents_and_sentences() -> None:
    documents = [[[3, 4], []], [], [[5]]]
    corpus = Corpus.of(documents)
    assert nested(corpus) == documents
    assert corpus.tokens.dtype == np.int32
    assert (corpus.n_documents, corpus.n_sentences) == (3, 3)
    assert nested(Corpus.of([])) == []


@given(text, st.integers(0, 5))
def test_longer_sentences_are_left_out_and_documents_without_any_other(
    lines: list[bytes], most: int
) -> None:
    _, corpus = intern(lines)
    short = [[s for s in document if len(s) <= most] for document in nested(corpus)]
    assert nested(corpus.without_longer(most)) == [document for document in short if document]


@given(text, st.integers(1, 5))
def test_stretches_hold_the_text_in_parts_of_equal_length(lines: list[bytes], number: int) -> None:
    _, corpus = intern(lines)
    found = nested(corpus.in_stretches(number))
    assert [s for part in found for s in part] == [s for part in nested(corpus) for s in part]
    assert len(found) == min(number, corpus.n_sentences)
    sizes = list(map(len, found))
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_documents_may_be_made_of_any_sentences_of_a_corpus() -> None:
    documents = [[[3, 4], [5]], [[], [6, 7, 8]]]
    flat = [sentence for document in documents for sentence in document]
    chosen = [[3, 0], [], [1, 1, 2]]
    found = Corpus.of(documents).rearranged([np.array(own, dtype=np.int64) for own in chosen])
    assert nested(found) == [[flat[s] for s in own] for own in chosen]
    assert nested(Corpus.of(documents).rearranged([])) == []


def test_passages_are_cut_from_each_document_and_only_their_last_sentence_is_predicted() -> None:
    text = Corpus.of([[[3], [4, 5], [6], [7], [8]], [[9]], [[3, 4], []]])
    text = replace(text, side={"topics": SideText(np.arange(8, dtype=np.int32), np.arange(9))})
    found = text.in_passages(2)
    expected = Corpus.of([[[3], [4, 5]], [[6], [7]], [[3, 4], []]])
    for name in ("tokens", "sentences", "documents"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))
    assert found.predicted is not None
    assert found.predicted.tolist() == [False, True] * 3
    assert found.side["topics"].tokens.tolist() == [0, 1, 2, 3, 6, 7]
    assert found.digest() != replace(found, predicted=None).digest()
    assert text.in_passages(6).n_sentences == 0
