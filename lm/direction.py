"""Sentences read from right to left: the words of each in reverse order.

A backward model (`Config.backward`) is an ordinary model of such sentences: it predicts the last
word first, and `</s>` after the first word. Its contexts are those of the earlier sentences, in
the order of the document.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lm.corpus import Corpus


def reversed_words(tokens: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """The words (N,) of each sentence from its last to its first; offsets: (S + 1,). O(N)."""
    mirror = np.repeat(offsets[:-1] + offsets[1:] - 1, np.diff(offsets))
    return tokens[mirror - np.arange(len(tokens))]


def in_reading_order(corpus: Corpus, *, backward: bool | None) -> Corpus:
    """The corpus as a model reads it: each sentence reversed for a backward model."""
    if not backward:
        return corpus
    return replace(corpus, tokens=reversed_words(corpus.tokens, corpus.sentences))
