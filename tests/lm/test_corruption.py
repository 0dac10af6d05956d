"""Corrupted copies: how many, which words, and what stays as it is."""

import math
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from lm import corruption
from lm.corpus import Corpus
from lm.corruption import DROPPED, REPLACED, SWAPPED, Copies, Corruption

WORDS = 40_000


def counting(words: int, length: int) -> Corpus:
    """Sentences of `length` distinct words: 0, 1, 2, … through the text."""
    offsets = np.arange(0, words + 1, length)
    ends = np.array([0, len(offsets) - 1])
    return Corpus(np.arange(words, dtype=np.int32), offsets, ends)


def copies(corpus: Corpus, share: float = 1.0, seed: int = 0) -> Copies:
    chosen = np.arange(corpus.n_sentences)
    return Corruption(share, np.random.default_rng(seed)).copies(corpus, chosen)


def sentences(corpus: Corpus) -> list[list[int]]:
    bounds = zip(corpus.sentences, corpus.sentences[1:], strict=False)
    return [corpus.tokens[a:b].tolist() for a, b in bounds]


def rate(found: int, expected: float, of: int) -> bool:
    """Whether a count is within four standard deviations of a binomial's mean."""
    return abs(found - expected * of) < 4 * math.sqrt(expected * (1 - expected) * of)


def test_clean_sentences_come_first_and_copies_stand_for_some_of_them() -> None:
    text = counting(3000, 3)
    chosen = np.array([7, 2, 2, 9, 400, 31])
    made = Corruption(0.5, np.random.default_rng(4)).copies(text, chosen)
    clean = sentences(text)
    found = sentences(made.text)
    assert found[:6] == [clean[n] for n in chosen]
    copied = [n for n in range(6) if made.left[n] != n]
    assert 0 < len(copied) < 6
    assert made.sources.tolist() == [*range(6), *copied]
    assert made.left[copied].tolist() == list(range(6, 6 + len(copied)))
    assert made.text.n_sentences == 6 + len(copied)


def test_the_share_of_copies_is_the_one_asked_for() -> None:
    text = counting(WORDS, 4)
    made = copies(text, 0.3)
    assert rate(len(made.sources) - text.n_sentences, 0.3, text.n_sentences)
    assert len(copies(text, 0.0).sources) == text.n_sentences


def corrupted_by(monkeypatch: pytest.MonkeyPatch, kind: str) -> NDArray[np.int64]:
    """A long sentence of distinct words, corrupted in one way only."""
    for other in {"DROPPED", "REPLACED", "SWAPPED"} - {kind}:
        monkeypatch.setattr(corruption, other, 0.0)
    return np.array(sentences(copies(counting(WORDS, WORDS)).text)[1])


def test_words_are_dropped_at_the_stated_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    found = corrupted_by(monkeypatch, "DROPPED")
    assert (np.diff(found) > 0).all()
    assert rate(WORDS - len(found), DROPPED, WORDS)


def test_words_are_replaced_at_the_stated_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    found = corrupted_by(monkeypatch, "REPLACED")
    assert len(found) == WORDS
    assert rate(int((found != np.arange(WORDS)).sum()), REPLACED, WORDS)


def test_words_are_swapped_at_the_stated_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word goes behind its right neighbour if that one does not go behind its own."""
    found = corrupted_by(monkeypatch, "SWAPPED")
    assert sorted(found.tolist()) == list(range(WORDS))
    assert set((found - np.arange(WORDS)).tolist()) == {-1, 0, 1}
    assert rate(int((np.diff(found) < 0).sum()), SWAPPED * (1 - SWAPPED), WORDS)


def test_no_word_is_swapped_into_another_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("DROPPED", "REPLACED"):
        monkeypatch.setattr(corruption, kind, 0.0)
    text = counting(WORDS, 4)
    clean, found = sentences(text), sentences(copies(text).text)[text.n_sentences :]
    assert [sorted(sentence) for sentence in found] == clean
    assert found != clean


def test_replacements_follow_the_unigram_distribution_of_the_text() -> None:
    tokens = np.repeat(np.array([3, 4, 5], dtype=np.int32), [9000, 900, 100])
    text = Corpus(tokens, np.arange(0, 10_001, 10), np.array([0, 1000]))
    rare = Corruption(1.0, np.random.default_rng(0)).copies(text, np.full(4000, 999))
    counts = Counter(rare.text.tokens[int(rare.text.sentences[4000]) :].tolist())
    total = counts.total()
    share = REPLACED / (1 - DROPPED)
    assert rate(counts[3], 0.9 * share, total)
    assert rate(counts[4], 0.09 * share, total)


def test_empty_sentences_and_texts_can_be_copied() -> None:
    text = Corpus(np.zeros(0, dtype=np.int32), np.zeros(4, dtype=np.int64), np.array([0, 3]))
    made = copies(text)
    assert sentences(made.text) == [[]] * 6


@pytest.mark.parametrize("seed", [0, 1])
def test_copies_are_a_function_of_the_generator(seed: int) -> None:
    text = counting(300, 5)
    one, same, other = (copies(text, 0.5, s).text.tokens.tolist() for s in (seed, seed, seed + 2))
    assert one == same
    assert one != other
