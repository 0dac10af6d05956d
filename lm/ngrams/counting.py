"""Counts of the n-grams of a text, by sorting.

An n-gram at a position of the text is the pair of the (n − 1)-gram that ends one word before it and
the word there. So the n-grams of each order are found by sorting one 64-bit key a position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.ngrams.trie import NGrams
from lm.vocabulary import END, START

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class NGramCounts:
    """The n-grams of a text and how often each occurs: (m_n,) for each order n, from 1 on.

    Every sentence is `<s>`, its words, `</s>`; n-grams do not cross sentences. A word of the
    vocabulary that is not in the text has the count 0.
    """

    ngrams: NGrams
    counts: tuple[Counts, ...]

    def continuations(self) -> tuple[Counts, ...]:
        """Adjusted counts of each order, which Kneser–Ney smoothing is estimated from.

        Of the highest order, and of n-grams that begin with `<s>`, the counts; of the others the
        number of words that occur before them (Chen & Goodman 1999, section 2.7). That of `<s>`
        alone is 0, because it is not predicted.
        """
        ngrams, found = self.ngrams, []
        first, stop = 1 + START, 2 + START  # nodes that begin with <s>
        for n, counts in enumerate(self.counts, 1):
            own = ngrams.level(n)
            adjusted = counts
            if n < ngrams.order:
                left = ngrams.suffixes[ngrams.level(n + 1)] - own.start
                adjusted = np.bincount(left, minlength=own.stop - own.start)
                begin = slice(first - own.start, stop - own.start)
                adjusted[begin] = counts[begin]
                first, stop = ngrams.children[first], ngrams.children[stop]
            if n == 1:
                adjusted = adjusted.copy()
                adjusted[START] = 0
            found.append(adjusted)
        return tuple(found)


def count_ngrams(corpus: Corpus, n_words: int, order: int) -> NGramCounts:
    """N-grams of the orders 1 to `order` of a corpus in the ids of a vocabulary of n_words.

    O(order · N log N) time; about 60 bytes a word of the text, and 8 to 16 an n-gram.
    """
    stream = _with_marks(corpus)
    ngrams = NGrams.of_words(n_words)
    counts = [np.bincount(stream, minlength=n_words)]
    nodes = 1 + stream  # of the n-gram that ends at each position
    inside = np.ones(len(stream), dtype=np.bool_)  # whether it lies in one sentence
    starts = stream == START
    for n in range(2, order + 1):
        inside = np.concatenate([[False], inside[:-1]]) & ~starts
        at = np.flatnonzero(inside)
        start = ngrams.levels[n - 1]
        keys = (nodes[at - 1].astype(np.int64) - start) * n_words + stream[at]
        distinct, number, count = np.unique(keys, return_inverse=True, return_counts=True)
        del keys
        suffixes = np.empty(len(distinct), dtype=np.int32)
        suffixes[number] = nodes[at]
        parents, words = np.divmod(distinct, n_words)
        nodes[at] = len(ngrams) + number
        ngrams = ngrams.extended(
            (start + parents).astype(np.int32), words.astype(np.int32), suffixes
        )
        counts.append(count.astype(np.int64))
    return NGramCounts(ngrams, tuple(counts))


def _with_marks(corpus: Corpus) -> NDArray[np.int32]:
    """The sentences of a corpus one after the other, each between `<s>` and `</s>`."""
    bounds = corpus.sentences + 2 * np.arange(len(corpus.sentences))
    stream = np.empty(bounds[-1], dtype=np.int32)
    mark = np.zeros(len(stream), dtype=np.bool_)
    mark[bounds[:-1]] = mark[bounds[1:] - 1] = True
    stream[~mark] = corpus.tokens
    stream[bounds[:-1]], stream[bounds[1:] - 1] = START, END
    return stream
