"""N-gram models estimated from a text: counts by sorting, Kneser–Ney smoothing, stupid back-off."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.ngrams import NO_PROBABILITY, NGramError, NGramModel, NGrams
from lm.vocabulary import END, START, Vocabulary

Counts = NDArray[np.int64]
Discounts = tuple[float, float, float]
Floats = NDArray[np.float64]
FALLBACK: Discounts = (0.5, 1.0, 1.5)  # those of lmplz --discount_fallback
ALPHA = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class NGramCounts:
    """The n-grams of a text and how often each occurs: (m_n,) for each order n, from 1 on.

    Every sentence is `<s>`, its words, `</s>`; n-grams do not cross sentences. A word of the
    vocabulary that is not in the text has the count 0.
    """

    ngrams: NGrams
    counts: tuple[Counts, ...]

    def continuations(self) -> tuple[Counts, ...]:
        """Adjusted counts of each order, from which Kneser–Ney smoothing is estimated.

        Of the highest order, and of n-grams that begin with `<s>`, the counts; of the others the
        number of words that occur before them (Chen & Goodman 1999, section 2.7). That of `<s>`
        alone is 0, because it is not predicted.
        """
        ngrams, of_orders = self.ngrams, [*self.counts]
        first, stop = 1 + START, 2 + START  # nodes that begin with <s>
        for n, counts in enumerate(self.counts[:-1], 1):
            level = ngrams.level(n)
            left = ngrams.suffixes[ngrams.level(n + 1)] - level.start
            adjusted = np.bincount(left, minlength=level.stop - level.start)
            begin = slice(first - level.start, stop - level.start)
            adjusted[begin] = counts[begin]
            of_orders[n - 1] = adjusted
            first, stop = ngrams.children[first], ngrams.children[stop]
        of_orders[0] = of_orders[0].copy()
        of_orders[0][START] = 0
        return tuple(of_orders)


def count_ngrams(corpus: Corpus, n_words: int, order: int) -> NGramCounts:
    """N-grams of the orders 1 to `order` of a corpus in the ids of a vocabulary of n_words.

    An n-gram at a position of the text is the pair of the (n − 1)-gram that ends before it and the
    word there: each order is a sort of a 64-bit key a position. O(order · N log N) time; about 60
    bytes a word of the text, and 8 to 16 an n-gram.
    """
    bounds = corpus.sentences + 2 * np.arange(len(corpus.sentences))
    stream = np.empty(bounds[-1], dtype=np.int32)  # the sentences between <s> and </s>
    mark = np.zeros(len(stream), dtype=np.bool_)
    mark[bounds[:-1]] = mark[bounds[1:] - 1] = True
    stream[~mark] = corpus.tokens
    stream[bounds[:-1]], stream[bounds[1:] - 1] = START, END
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


@dataclass(frozen=True, slots=True)
class KneserNey:
    """Interpolated modified Kneser–Ney smoothing (Chen & Goodman 1999, sections 2.7 and 3).

    p(w | h) = (a(h w) − D(a(h w))) / a(h ·) + γ(h) p(w | h′)
    γ(h) = (D1 N1(h ·) + D2 N2(h ·) + D3 N3+(h ·)) / a(h ·)

    where a are the adjusted counts (`NGramCounts.continuations`), a(h ·) their sum over words after
    h, N_c(h ·) the number of words w with a(h w) = c, and h′ is h without its first word. The
    recursion ends in the uniform distribution over the V − 1 words other than `<s>`, as in KenLM's
    lmplz, so that `<unk>` always has a probability. https://doi.org/10.1006/csla.1999.0128

    fallback: discounts of orders whose counts of counts give none.
    """

    fallback: Discounts | None = None

    def estimate(
        self, counts: NGramCounts, vocabulary: Vocabulary
    ) -> tuple[NGramModel, tuple[str, ...]]:
        """The model of a text, and its discounts; NGramError without any. O(M) time, 50 M bytes."""
        ngrams, parents = counts.ngrams, counts.ngrams.parents()
        log10_probs = np.full(len(ngrams), NO_PROBABILITY, dtype=np.float32)
        log10_backoffs = np.zeros(ngrams.n_contexts, dtype=np.float32)
        lower = np.full(1, 1 / (ngrams.n_words - 1))
        notes, below = [], 0  # first node of the order below
        for n, adjusted in enumerate(counts.continuations(), 1):
            level = ngrams.level(n)
            discounts, note = self._discounts(adjusted, n)
            notes.append(note)
            contexts, shorter = parents[level] - below, ngrams.suffixes[level] - below
            number = level.start - below
            probs, backoffs = _interpolated(adjusted, discounts, contexts, number, lower[shorter])
            log10_probs[level] = _log10(probs)
            log10_backoffs[below : level.start] = _log10(backoffs)
            lower, below = probs, level.start
        log10_probs[1 + START] = NO_PROBABILITY
        log10_probs[0] = log10_backoffs[0] = 0.0
        return NGramModel(vocabulary, ngrams, log10_probs, log10_backoffs), tuple(notes)

    def _discounts(self, adjusted: Counts, n: int) -> tuple[Discounts, str]:
        """Discounts of order n, or those of the fallback, and a note on them."""
        try:
            discounts, how = closed_form(adjusted, n), ""
        except NGramError:
            if self.fallback is None:
                raise
            discounts, how = self.fallback, " (fallback)"
        d1, d2, d3 = discounts
        return discounts, f"{n}-grams D1 {d1:.3f}, D2 {d2:.3f}, D3+ {d3:.3f}{how}"


def closed_form(adjusted: Counts, n: int) -> Discounts:
    """D1, D2, D3+ from the numbers n_c of n-grams with adjusted count c = 1 to 4, equation 26.

    D_c = c − (c + 1) Y n_{c + 1} / n_c with Y = n_1 / (n_1 + 2 n_2). NGramError if n_1, n_2 or n_3
    is 0, or a discount negative.
    """
    of_count = np.bincount(np.minimum(adjusted, 5), minlength=5).tolist()
    for c, times in enumerate(("once", "twice", "three times"), 1):
        if not of_count[c]:
            raise NGramError(
                f"expected {n}-grams that occur once, twice and three times, from which "
                f"discounts are estimated, found none that occur {times}"
            )
    y = of_count[1] / (of_count[1] + 2 * of_count[2])
    d1, d2, d3 = (c - (c + 1) * y * of_count[c + 1] / of_count[c] for c in (1, 2, 3))
    if min(d1, d2, d3) < 0:
        numbers = ", ".join(f"{of_count[c]:,} of {c}" for c in (1, 2, 3, 4))
        raise NGramError(
            f"expected discounts of at least 0 for {n}-grams, found {d1:.3f}, {d2:.3f}, "
            f"{d3:.3f}, from the numbers of {n}-grams with small counts: {numbers}"
        )
    return d1, d2, d3


def _interpolated(
    adjusted: Counts,
    discounts: Discounts,
    contexts: NDArray[np.int32],
    number: int,
    lower: Floats,
) -> tuple[Floats, Floats]:
    """Probabilities of n-grams, given p(w | h′) and contexts 0 … number − 1, and γ of these."""
    discount = np.array([0.0, *discounts])[np.minimum(adjusted, 3)]
    totals = np.bincount(contexts, weights=adjusted, minlength=number)
    removed = np.bincount(contexts, weights=discount, minlength=number)
    followed = totals > 0
    backoffs = np.where(followed, removed / np.where(followed, totals, 1), 1.0)
    probs = (adjusted - discount) / totals[contexts] + backoffs[contexts] * lower
    return probs, backoffs


def _log10(values: Floats) -> NDArray[np.float32]:
    """Base-10 logarithms; −99 of 0, as where all discounts of a context are 0."""
    logs: NDArray[np.float32] = np.log10(np.maximum(values, 1e-99)).astype(np.float32)
    return logs


@dataclass(frozen=True, slots=True)
class StupidBackoff:
    """Stupid back-off (Brants et al. 2007, section 4): relative frequencies, α for a step back.

    S(w | h) = f(h w) / f(h) if f(h w) > 0, else α S(w | h′), with S(w) = f(w) / L for a text of L
    words and ends of sentences. S does not sum to 1. What the paper leaves open, words that are not
    in the text: another step back, to 1 / (V − 1). https://aclanthology.org/D07-1090/
    """

    alpha: float = ALPHA

    def estimate(
        self, counts: NGramCounts, vocabulary: Vocabulary
    ) -> tuple[NGramModel, tuple[str, ...]]:
        """The model of a text, and a note on it. O(M) time; about 40 bytes an n-gram."""
        ngrams, parents = counts.ngrams, counts.ngrams.parents()
        frequency = np.concatenate([[0], *counts.counts])
        frequency[0] = counts.counts[0].sum() - counts.counts[0][START]
        scores = frequency / frequency[parents].clip(min=1)
        scores[1:][frequency[1:] == 0] = self.alpha / (ngrams.n_words - 1)
        log10_probs = np.log10(scores, where=scores > 0, out=np.zeros_like(scores))
        log10_probs[1 + START] = NO_PROBABILITY
        step = math.log10(self.alpha)
        log10_backoffs = np.full(ngrams.n_contexts, step, dtype=np.float32)
        log10_backoffs[0] = 0.0
        model = NGramModel(
            vocabulary, ngrams, log10_probs.astype(np.float32), log10_backoffs, unseen=step
        )
        return model, (f"α {self.alpha}",)
