"""Noise of training: dropout of numbers, and corrupted copies of sentences."""

import math

import numpy as np
import pytest
import torch

from lm.corpus import Corpus
from lm.reading import DROPPED, REPLACED, SWAPPED, Copies, Corruption, Noise

WORDS = 20_000


def rate(found: float, expected: float, of: int) -> bool:
    """Whether a count is within four standard deviations of a binomial's mean."""
    return abs(found - expected * of) < 4 * math.sqrt(expected * (1 - expected) * of)


def test_dropout_keeps_the_expected_value() -> None:
    noise = Noise(0.25, 0.0, torch.Generator().manual_seed(0))
    first, second = (noise.features(torch.ones(1000, 64)) for _ in range(2))
    assert set(first.flatten().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert rate(float((first == 0).sum()), 0.25, first.numel())
    assert not torch.equal(first, second)


# Corrupted copies
def counting(words: int, length: int) -> Corpus:
    """Sentences of `length` distinct words: 0, 1, 2, … through the text."""
    offsets = np.arange(0, words + 1, length)
    return Corpus(np.arange(words, dtype=np.int32), offsets, np.array([0, len(offsets) - 1]))


def copies(corpus: Corpus, share: float = 1.0, seed: int = 0) -> Copies:
    return Corruption(share, np.random.default_rng(seed)).copies(
        corpus, np.arange(corpus.n_sentences)
    )


def sentences(corpus: Corpus) -> list[list[int]]:
    return [words.tolist() for words in np.split(corpus.tokens, corpus.sentences[1:-1])]


@pytest.mark.parametrize("kind", ["DROPPED", "REPLACED", "SWAPPED"])
def test_words_are_corrupted_at_given_rates(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long sentence of distinct words, corrupted in one way only."""
    for other in {"DROPPED", "REPLACED", "SWAPPED"} - {kind}:
        monkeypatch.setattr(f"lm.reading.{other}", 0.0)
    result = np.array(sentences(copies(counting(WORDS, WORDS)).text)[1])
    if kind == "DROPPED":
        assert (np.diff(result) > 0).all()
        assert rate(WORDS - len(result), DROPPED, WORDS)
    elif kind == "REPLACED":
        assert rate(int((result != np.arange(WORDS)).sum()), REPLACED, WORDS)
    else:  # a word goes behind its right neighbour if that one does not go behind its own
        assert sorted(result.tolist()) == list(range(WORDS))
        assert set((result - np.arange(WORDS)).tolist()) == {-1, 0, 1}
        assert rate(int((np.diff(result) < 0).sum()), SWAPPED * (1 - SWAPPED), WORDS)
        text = counting(WORDS, 4)  # and never into another sentence
        own = sentences(copies(text).text)[text.n_sentences :]
        assert [sorted(sentence) for sentence in own] == sentences(text) != own
