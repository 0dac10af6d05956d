"""Words straight from bytes: sacrebleu, with Python's str.split, is the truth."""

import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from support.lists import kbest

from rerank.metrics.bleu import Bleu
from rerank.metrics.texts import Texts

WHITE = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace()]
# Bytes like those of white space: U+0080, U+0084, U+1681, U+200B, U+2027, U+202A, U+205E, U+3001
# and others; bytes of white space inside other characters; a word that is the start of another.
NEARLY = "\x80\x84\x86\xa1\u1681\u169a\u200b\u2027\u202a\u2030\u205e\u2060\u3001\u3040\ufeff\0"
LETTERS = st.sampled_from([*"aab", "é", "\u0140", "中", "文", "\U0001f600", "\U000a0080", *NEARLY])
WORDS = st.one_of(st.sampled_from(["a", "a", "b", "ab"]), st.text(LETTERS, min_size=1, max_size=3))
PIECES = st.one_of(WORDS, st.just(" "), st.sampled_from(WHITE))
LINES = st.one_of(
    st.lists(PIECES, max_size=14).map("".join),
    st.lists(WORDS, max_size=9).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
).map(str.encode)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[list[bytes]], list[list[bytes]]]:
    """Hypotheses (maybe none) and references (at least one) of each sentence."""
    n = draw(st.integers(0, 4))
    hypotheses = [draw(st.lists(LINES, max_size=4)) for _ in range(n)]
    return hypotheses, [draw(st.lists(LINES, min_size=1, max_size=3)) for _ in range(n)]


def truth_of(groups: list[list[bytes]], references: list[list[bytes]]) -> list[list[int]]:
    """Statistics by sacrebleu, which splits words by Python's `str.split`."""
    tool = BLEU(tokenize="none")
    return [
        [*row[2:], row[1]]
        for group, lines in zip(groups, references, strict=True)
        for line in group
        for row in tool._extract_corpus_statistics([line.decode()], [[r.decode()] for r in lines])
    ]


@given(corpora())
def test_statistics_are_those_of_words_split_by_python(
    corpus: tuple[list[list[bytes]], list[list[bytes]]],
) -> None:
    found = Bleu().statistics(*corpus)
    assert found.dtype == np.int64
    assert found.tolist() == truth_of(*corpus)


def test_every_character_of_unicode_is_white_space_or_not_as_python_says() -> None:
    """All of them, each between two letters; white space makes two words of three characters."""
    lines = [f"a{chr(c)}b".encode() for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
    rows = Bleu().statistics([lines], [[b"a b"]])
    truth = [len(line.decode().split()) for line in lines]
    assert rows[:, 4].tolist() == truth
    assert sum(n == 2 for n in truth) == len(WHITE)


def test_lists_are_counted_where_they_lie_and_gaps_as_empty_lines() -> None:
    lists = [[], ["a b", "a  c\u3000d "], [], ["", "b \xa0"], []]
    groups = [[text.strip(" ").encode() for text in own] or [b""] for own in lists]
    references = [[b"a b c"], [b"a c d", b"c"], [b"b"], [b"b a"], [b""]]
    texts = Texts.of_lists(kbest(lists))
    assert list(texts) == groups
    assert Bleu().statistics(texts, references).tolist() == truth_of(groups, references)


def test_long_lines_of_many_words_are_counted_right() -> None:
    rng = np.random.default_rng(1)
    lines = [
        " ".join(map(str, rng.integers(0, k, size=k).tolist())).encode() for k in (1, 9, 300, 5000)
    ]
    references = [[line] for line in lines]
    found = Bleu().statistics([lines] * 4, references)
    assert found.tolist() == truth_of([lines] * 4, references)


def test_a_line_of_100_000_words_takes_linear_time() -> None:
    line = b"a b " * 50_000
    started = time.perf_counter()
    row = Bleu().statistics([[line]], [[line]])[0]
    assert row.tolist() == [100_000, 99_999, 99_998, 99_997] * 2 + [100_000]
    assert time.perf_counter() - started < 5  # a quadratic count would take minutes


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        Texts.of([[b"a", b"\xe2\x80"]])
    with pytest.raises(UnicodeDecodeError):
        Texts.of([[b"\xe2", b"\x80\x80"]])  # half a character in each of two lines
