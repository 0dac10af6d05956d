"""Sentences corrupted as machine translations are, for contexts to be taken from.

At test time the sentences before are candidates of a k-best list. A model that has read nothing
but clean text in training trusts their words too much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm.corpus import Corpus

# shares of the words of a corrupted sentence: words are dropped and moved, as in the noise of
# Lample et al. 2018 (https://arxiv.org/abs/1711.00043), and replaced, as wrong translations are
DROPPED = 0.1
REPLACED = 0.1
SWAPPED = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """B sentences, and behind them C corrupted copies of some, as a text of B + C sentences.

    sources: (B + C,) which of the B sentences each is or copies; left: (B,) the sentence of the
    text that stands for each of the B in the contexts after it: its copy, if it has one.
    """

    text: Corpus
    sources: NDArray[np.int64]
    left: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Corruption:
    """Makes corrupted copies of sentences, of each with probability `share`."""

    share: float
    rng: np.random.Generator

    def copies(self, corpus: Corpus, chosen: NDArray[np.int64]) -> Copies:
        """The sentences `chosen` (B,) of a corpus, and copies of some; O(words) time."""
        copied = np.flatnonzero(self.rng.random(len(chosen)) < self.share)
        clean, owners = _words(corpus, chosen)
        corrupted = self._corrupted(corpus, *_words(corpus, chosen[copied]))
        lengths = np.bincount(owners, minlength=len(chosen))
        of_copies = np.bincount(corrupted[1], minlength=len(copied))
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([lengths, of_copies]))])
        tokens = np.concatenate([clean, corrupted[0]])
        left = np.arange(len(chosen))
        left[copied] = len(chosen) + np.arange(len(copied))
        sources = np.concatenate([np.arange(len(chosen)), copied])
        return Copies(Corpus(tokens, offsets, np.array([0, len(sources)])), sources, left)

    def _corrupted(
        self, corpus: Corpus, words: NDArray[np.int32], owners: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Words of sentences after corruption; owners: (N,) sentence of each word, ascending."""
        fate = self.rng.random(len(words))
        kept = fate >= DROPPED
        words, owners, fate = words[kept].copy(), owners[kept], fate[kept]
        replaced = fate < DROPPED + REPLACED
        # a random token of the text is a draw from its unigram distribution
        drawn = self.rng.integers(max(1, len(corpus.tokens)), size=int(replaced.sum()))
        words[replaced] = corpus.tokens[drawn]
        # a swapped word goes behind its right neighbour, unless it is the last one
        place = np.arange(len(words)) + 1.5 * (self.rng.random(len(words)) < SWAPPED)
        return words[np.lexsort((place, owners))], owners


def _words(
    corpus: Corpus, chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Words of some sentences, one after the other, and (N,) position in `chosen` of each."""
    starts, lengths = corpus.sentences[chosen], np.diff(corpus.sentences)[chosen]
    owners = np.repeat(np.arange(len(chosen)), lengths)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return corpus.tokens[starts[owners] + within], owners
