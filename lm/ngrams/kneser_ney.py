"""Interpolated modified Kneser–Ney smoothing (Chen & Goodman 1999, sections 2.7 and 3).

p(w | h) = (a(h w) − D(a(h w))) / a(h ·) + γ(h) p(w | h′)
γ(h) = (D1 N1(h ·) + D2 N2(h ·) + D3 N3+(h ·)) / a(h ·)

where a are the adjusted counts (`NGramCounts.continuations`), a(h ·) their sum over words after h,
N_c(h ·) the number of words w with a(h w) = c, and h′ is h without its first word. The recursion
ends in the uniform distribution over the V − 1 words other than `<s>`, so that `<unk>` has a
probability where the text has no unknown word. This is what KenLM's lmplz estimates.
https://doi.org/10.1006/csla.1999.0128
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lm.ngrams import NGramError
from lm.ngrams.counting import Counts, NGramCounts
from lm.ngrams.model import NO_PROBABILITY, NGramModel
from lm.vocabulary import START, Vocabulary

Discounts = tuple[float, float, float]
Floats = NDArray[np.float64]
FALLBACK: Discounts = (0.5, 1.0, 1.5)  # those of lmplz --discount_fallback


@dataclass(frozen=True, slots=True)
class KneserNey:
    """The smoothing; fallback: discounts of orders whose counts of counts give none."""

    fallback: Discounts | None = None

    def estimate(
        self, counts: NGramCounts, vocabulary: Vocabulary
    ) -> tuple[NGramModel, tuple[str, ...]]:
        """The model of a text, and for each order its discounts in words.

        NGramError if an order has no discounts and there is no `fallback`. O(M) time; about 50
        bytes an n-gram.
        """
        ngrams, parents = counts.ngrams, counts.ngrams.parents()
        log10_probs = np.full(len(ngrams), NO_PROBABILITY, dtype=np.float32)
        log10_backoffs = np.zeros(ngrams.n_contexts, dtype=np.float32)
        lower = np.full(1, 1 / (ngrams.n_words - 1))
        notes, below = [], 0  # first node of the order below
        for n, adjusted in enumerate(counts.continuations(), 1):
            own = ngrams.level(n)
            discounts, note = self._discounts(adjusted, n)
            notes.append(note)
            contexts, shorter = parents[own] - below, ngrams.suffixes[own] - below
            number = own.start - below
            probs, backoffs = _interpolated(adjusted, discounts, contexts, number, lower[shorter])
            log10_probs[own] = _log10(probs)
            log10_backoffs[below : own.start] = _log10(backoffs)
            lower, below = probs, own.start
        log10_probs[1 + START] = NO_PROBABILITY
        log10_probs[0] = log10_backoffs[0] = 0.0
        return NGramModel(vocabulary, ngrams, log10_probs, log10_backoffs), tuple(notes)

    def _discounts(self, adjusted: Counts, n: int) -> tuple[Discounts, str]:
        """Discounts of order n, or those of the fallback, and a note on them."""
        try:
            found, how = closed_form(adjusted, n), ""
        except NGramError:
            if self.fallback is None:
                raise
            found, how = self.fallback, " (fallback)"
        d1, d2, d3 = found
        return found, f"{n}-grams D1 {d1:.3f}, D2 {d2:.3f}, D3+ {d3:.3f}{how}"


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
                f"Kneser–Ney discounts are estimated, found none that occur {times}"
            )
    y = of_count[1] / (of_count[1] + 2 * of_count[2])
    d1, d2, d3 = (c - (c + 1) * y * of_count[c + 1] / of_count[c] for c in (1, 2, 3))
    if min(d1, d2, d3) < 0:
        numbers = ", ".join(f"{of_count[c]:,} {c} times" for c in (1, 2, 3, 4))
        raise NGramError(
            f"expected Kneser–Ney discounts of at least 0 for {n}-grams, found {d1:.3f}, {d2:.3f}, "
            f"{d3:.3f}, because of the {n}-grams so many occur c times: {numbers}"
        )
    return d1, d2, d3


def _interpolated(
    adjusted: Counts,
    discounts: Discounts,
    contexts: NDArray[np.int32],
    number: int,
    lower: Floats,
) -> tuple[Floats, Floats]:
    """p of the n-grams of an order, and γ of their contexts, which are all `number` of the one below.

    contexts: that of each n-gram, from 0; lower: p(w | h′) of each. γ is 1 where no word follows.
    """
    discount = np.array([0.0, *discounts])[np.minimum(adjusted, 3)]
    totals = np.bincount(contexts, weights=adjusted, minlength=number)
    removed = np.bincount(contexts, weights=discount, minlength=number)
    followed = totals > 0
    backoffs = np.where(followed, removed / np.where(followed, totals, 1), 1.0)
    probs = (adjusted - discount) / totals[contexts] + backoffs[contexts] * lower
    return probs, backoffs


def _log10(values: Floats) -> NDArray[np.float32]:
    """Base-10 logarithms; −99 of 0, as where all discounts of a context are 0."""
    return np.log10(np.maximum(values, 10.0**NO_PROBABILITY)).astype(np.float32)
