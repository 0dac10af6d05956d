"""Perplexity of a text under an n-gram model; it does not depend on the documents."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.evaluation import MOST_NATS, Perplexity
from lm.ngrams import NGramError
from lm.ngrams.model import NGramModel
from lm.vocabulary import UNKNOWN


def perplexity(model: NGramModel, corpus: Corpus, *, per_document: bool = False) -> Perplexity:
    """Perplexity of a corpus with at least one word; per_document: with that of its documents.

    NGramError if it overflows.
    """
    nats = -model.scores(corpus.tokens, corpus.sentences)
    whole = _of_sentences(model, corpus, nats, (0, corpus.n_sentences))
    if not per_document:
        return whole
    spans = pairwise(corpus.documents.tolist())
    documents = tuple(_of_sentences(model, corpus, nats, span) for span in spans)
    return replace(whole, documents=documents)


def _of_sentences(
    model: NGramModel, corpus: Corpus, nats: NDArray[np.float64], span: tuple[int, int]
) -> Perplexity:
    """Perplexity of the sentences of a span, given the nats (S, 2) of each: words, and `</s>`."""
    first, last = span
    tokens = corpus.tokens[corpus.sentences[first] : corpus.sentences[last]]
    words, ends = nats[first:last].sum(axis=0).tolist()
    if not max(words, words + ends) < MOST_NATS * max(1, len(tokens)):
        raise NGramError("the n-gram model has no probability left for the text")
    oov = int(np.count_nonzero(tokens == UNKNOWN))
    counts = last - first, len(tokens), oov
    return Perplexity(*counts, words + ends, words, normalised=model.normalised)
