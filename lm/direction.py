"""The order in which a model reads words and sentences, if it is not that of the text.

A backward model (`Config.backward`) reads the words of each sentence from right to left: it
predicts the last word first, and `</s>` after the first word. A model of reversed documents
(`Config.reverse_documents`) reads the sentences of a document from the last to the first: the
contexts of a sentence are those of the sentences after it, and words are read as usual. Either is
an ordinary model of the reordered text, and a model may be both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lm.corpus import Corpus


def reversed_words(tokens: NDArray[np.int32], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """The words (N,) of each sentence from its last to its first; offsets: (S + 1,). O(N)."""
    return tokens[mirrored(offsets)]


def reversed_sentences(corpus: Corpus) -> Corpus:
    """The corpus with the sentences of each document from the last to the first. O(N).

    The documents stay in their order, and so do the words of a sentence.
    """
    order = mirrored(corpus.documents)
    lengths = np.diff(corpus.sentences)[order]
    sentences = np.concatenate([[0], np.cumsum(lengths)])
    moved = np.repeat(corpus.sentences[:-1][order] - sentences[:-1], lengths)
    tokens = corpus.tokens[np.arange(len(corpus.tokens)) + moved]
    side = {kind: text.take(order) for kind, text in corpus.side.items()}
    return replace(corpus, tokens=tokens, sentences=sentences, side=side)


def in_reading_order(
    corpus: Corpus, *, backward: bool | None, reverse_documents: bool | None = None
) -> Corpus:
    """The corpus as a model reads it; see the two fields of `lm.config.Config`."""
    if reverse_documents:
        corpus = reversed_sentences(corpus)
    if backward:
        corpus = replace(corpus, tokens=reversed_words(corpus.tokens, corpus.sentences))
    return corpus


def mirrored(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices (N,) of N things where each group offsets[g]:offsets[g + 1] is in reverse order.

    Columns beside the words of a corpus, one value a sentence, follow `corpus.documents`.
    """
    mirror = np.repeat(offsets[:-1] + offsets[1:] - 1, np.diff(offsets))
    return mirror - np.arange(len(mirror))
