"""Text as columns, vocabularies, side information and directions, against lists of lists."""

from collections import Counter
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import lm.corpus
from lm.corpus import (
    Corpus,
    build_vocabulary,
    encode,
    in_reading_order,
    intern,
    with_last_words_twice,
)
from lm.side_information import SentenceNumbers, SideText
from lm.vocabulary import END, SPECIAL, START, UNKNOWN, Vocabulary
from lm.vocabulary import words_of as words_of_line

text = st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"c", b"<unk>", b""]), max_size=4).map(b" ".join),
    max_size=12,
)
ids = st.lists(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), max_size=4)


def documents_of(lines: list[bytes]) -> list[list[list[bytes]]]:
    """Runs of lines that hold words."""
    sentences = [line.split() for line in lines]
    return [list(run) for filled, run in groupby(sentences, key=bool) if filled]


def nested(corpus: Corpus) -> list[list[list[int]]]:
    sentences = np.split(corpus.tokens, corpus.sentences[1:-1]) if corpus.n_sentences else []
    bounds = zip(corpus.documents, corpus.documents[1:], strict=False)
    return [[s.tolist() for s in sentences[a:b]] for a, b in bounds]


def spelled(words: list[bytes], corpus: Corpus) -> list[list[list[bytes]]]:
    return [[[words[i] for i in s] for s in d] for d in nested(corpus)]


@given(text, st.integers(0, 4))
def test_blank_lines_part_documents_and_lines_are_sentences(lines: list[bytes], size: int) -> None:
    words, corpus = intern(lines)
    assert spelled(words, corpus) == documents_of(lines)
    assert len(set(words)) == len(words)
    vocabulary = Vocabulary((b"c", b"a"))
    result = encode(lines, vocabulary)
    assert nested(result) == [[vocabulary.encode(s) for s in d] for d in documents_of(lines)]
    assert result.n_unknown == sum(s.count(0) for d in nested(result) for s in d)
    counter = Counter(w for line in lines for w in line.split() if w != b"<unk>")
    expected = tuple(w for w, _ in counter.most_common(size))
    assert build_vocabulary(words, corpus, size).words == expected


def test_unknown_words_are_spelled_and_others_are_left() -> None:
    lines = [b"ab \xe6\x8a\xb1\xe6\xad\x89 a", b"", b"<unk> ab c\xff </s>", b"c"]
    words, corpus = intern(lines, "equals")
    result = spelled(*lm.corpus.spelled(words, corpus, {b"ab", b"a"}))
    assert result == [
        [[b"ab", b"\xe6\x8a\xb1", b"\xe6\xad\x89", b"a"], [],
            [b"<unk>", b"ab", b"c", b"\xff", b"</s>"], [b"c"]],
    ]  # fmt: skip


def test_the_digest_tells_words_divisions_and_side_information_apart() -> None:
    texts = [b"a b,c", b"a b,d", b"a,b c", b"a b,,c", b"a b c", b""]
    vocabulary = Vocabulary((b"a", b"b", b"c", b"d"))
    digests = [encode(t.split(b","), vocabulary).digest() for t in texts]
    plain = Corpus.of([[[3], [4]]])
    for side in ([[5], [6]], [[5, 6], []], [[6], [5]]):
        digests.append(replace(plain, side={"source": side_text(side)}).digest())
    digests.append(replace(plain, predicted=np.array([True, False])).digest())
    assert len({*digests, plain.digest()}) == len(digests) + 1
    assert digests[0] == encode([b"", b"a  b", b"c "], vocabulary).digest()


@given(ids, st.integers(0, 5), st.integers(1, 5), st.data())
def test_sentences_are_left_out_joined_and_rearranged(
    documents: list[list[list[int]]], most: int, number: int, data: st.DataObject
) -> None:
    corpus, flat = Corpus.of(documents), [sentence for own in documents for sentence in own]
    assert nested(corpus) == documents
    short = [[s for s in document if len(s) <= most] for document in documents]
    assert nested(corpus.without_longer(most)) == [document for document in short if document]
    result = nested(corpus.in_stretches(number))
    assert [s for part in result for s in part] == flat
    assert len(result) == min(number, len(flat))
    assert max(map(len, result), default=0) - min(map(len, result), default=0) <= 1
    places = st.lists(st.integers(0, len(flat) - 1), max_size=4) if flat else st.just([])
    chosen = data.draw(st.lists(places, max_size=3))
    rearranged = corpus.rearranged([np.array(own, dtype=np.int64) for own in chosen])
    assert nested(rearranged) == [[flat[s] for s in own] for own in chosen]
    doubled = [[s + s[-1:] for s in d] for d in documents]
    assert nested(with_last_words_twice(corpus)) == doubled
    turned = in_reading_order(corpus, backward=None, reverse_documents=True)
    assert nested(turned) == [own[::-1] for own in documents]
    backward = in_reading_order(corpus, backward=True)
    assert nested(backward) == [[s[::-1] for s in own] for own in documents]


# Vocabularies
spelling = st.binary(min_size=1, max_size=4).filter(lambda w: b" " not in w and w not in SPECIAL)


@given(st.lists(spelling, unique=True, max_size=8), st.lists(spelling, max_size=8))
def test_known_words_have_ids_of_their_own(words: list[bytes], others: list[bytes]) -> None:
    vocabulary = Vocabulary(tuple(words))
    assert vocabulary.encode(words) == list(range(3, len(vocabulary)))
    back = dict(enumerate(words, start=3))
    for other, i in zip(others, vocabulary.encode(others), strict=True):
        assert back.get(i) == other if other in words else i == UNKNOWN
    assert vocabulary.decode(vocabulary.encode(words)) == words


def test_words_are_split_on_ascii_space_and_control_words_are_unknown() -> None:
    line = "a  b\tc\u00a0d\u3000e\u2028f ".encode()
    assert words_of_line(line) == [b"a", "b\tc\u00a0d\u3000e\u2028f".encode()]
    assert words_of_line(b"") == words_of_line(b"   ") == []
    assert (UNKNOWN, START, END) == (0, 1, 2)
    vocabulary = Vocabulary((b"a", b"b"))
    assert vocabulary.encode([b"<s>", b"a", b"</s>", b"<unk>"]) == [0, 3, 0, 0]
    assert vocabulary.decode([4, 0, 3, 2, 1]) == [b"b", b"<unk>", b"a", b"</s>", b"<s>"]


# Side information
def side_text(found: list[list[int]]) -> SideText:
    corpus = Corpus.of([found])
    return SideText(corpus.tokens, corpus.sentences)


def other_source(corpus: Corpus, kind: str) -> list[int]:
    """The only source word of the other sentence of each one, -1 for none."""
    (rows,) = corpus.side_rows([kind], np.arange(corpus.n_sentences), torch.device("cpu")).tensors
    return [max(row, default=0) - 1 for row in rows.tolist()]


def test_other_source_sentences_follow_theirs_where_some_are_left_out() -> None:
    """Sentence 1, of two words, is left out; a sentence whose parent it was has none."""
    side: dict[str, Any] = {"source": side_text([[10], [11], [12], [13]])}
    side["parents"] = SentenceNumbers.of(np.array([2, 3, 1, 0]))
    corpus = replace(Corpus.of([[[3], [3, 4], [5]], [[6]]]), side=side)
    assert other_source(corpus, "parent-source") == [12, 13, 11, 10]
    assert other_source(corpus, "next-source") == [11, 12, -1, -1]
    kept = corpus.without_longer(1)
    assert other_source(kept, "parent-source") == [12, -1, 10]
    assert other_source(kept.in_stretches(1), "parent-source") == [12, -1, 10]
    assert kept.digest() != corpus.digest()
