"""Stupid back-off (Brants et al. 2007, section 4): relative frequencies, α for every step back.

S(w | h) = f(h w) / f(h) if f(h w) > 0, else α S(w | h′), with α = 0.4 and S(w) = f(w) / L for a text
of L words and ends of sentences. S is no probability: it does not sum to 1. The paper leaves open
what a word has that is not in the text; here one more step back leads to 1 / (V − 1), the words
other than `<s>`. https://aclanthology.org/D07-1090/
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lm.ngrams.counting import NGramCounts
from lm.ngrams.model import NO_PROBABILITY, NGramModel
from lm.vocabulary import START, Vocabulary

ALPHA = 0.4


@dataclass(frozen=True, slots=True)
class StupidBackoff:
    """The smoothing."""

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
        model = NGramModel(
            vocabulary, ngrams, log10_probs.astype(np.float32), log10_backoffs, unseen=step
        )
        return model, (f"α {self.alpha}",)
