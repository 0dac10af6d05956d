"""An n-gram model with back-off, as ARPA files hold it, and its scores of sentences.

log p(w | h) is that of the n-gram (h, w) if the model has it, else the back-off weight of h plus
log p(w | h′), where h′ is h without its first word. The back-off weight of a context that the model
does not have is 0, as in KenLM and SRILM, or that of stupid back-off.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lm.ngrams.trie import NGrams, child
from lm.vocabulary import END, START, UNKNOWN, Vocabulary

NO_PROBABILITY = -99.0  # log10 of 0, of <s> in ARPA files
UNKNOWN_MISSING = (
    -100.0
)  # log10 probability of unknown words where a file has no <unk>, as in KenLM

Log10s = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class NGramModel:
    """Base-10 logarithms of the probabilities (M,) of n-grams and of the back-offs (C,) of contexts.

    unseen: that of the back-off of any context without a node; other than 0 in stupid back-off.
    Words outside the vocabulary are `<unk>`. Memory: 12 bytes an n-gram, and 8 a context.
    """

    vocabulary: Vocabulary
    ngrams: NGrams
    log10_probs: Log10s
    log10_backoffs: Log10s
    unseen: float = 0.0

    @property
    def order(self) -> int:
        """N, the words of the longest n-grams."""
        return self.ngrams.order

    @property
    def normalised(self) -> bool:
        """Whether scores are log-probabilities; those of stupid back-off do not sum to 1."""
        return self.unseen == 0

    @property
    def unknown_share(self) -> float:
        """Probability of `<unk>` without a context; 0 where the model has none."""
        log10_prob = float(self.log10_probs[1 + UNKNOWN])
        return 10.0**log10_prob if log10_prob > NO_PROBABILITY else 0.0

    def scores(
        self, tokens: NDArray[np.int32], sentences: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Scores (S, 2) of sentences in nats: of their words after `<s>`, and of `</s>`.

        tokens: (L,) ids; sentences: (S + 1,) offsets into them. The score of a sentence does not
        depend on the others, to the last bit. O(L · N log V) time, compiled.
        """
        ngrams = self.ngrams
        sums: NDArray[np.float64] = _scores(
            tokens,
            sentences,
            np.array(ngrams.levels),
            (ngrams.words, ngrams.children, ngrams.suffixes),
            (self.log10_probs, self.log10_backoffs, self.unseen),
        )
        return sums * math.log(10)

    def digest(self) -> str:
        """Digest of the words and of all numbers, in hexadecimal digits."""
        state = hashlib.sha256(repr((self.ngrams.levels, self.unseen)).encode())
        state.update(b"\n".join(self.vocabulary.words))
        ngrams = self.ngrams
        for column in (ngrams.words, ngrams.children, self.log10_probs, self.log10_backoffs):
            state.update(np.ascontiguousarray(column).data)
        return state.hexdigest()


@njit(cache=True, nogil=True)
def _scores(tokens: Any, sentences: Any, levels: Any, ngrams: Any, weights: Any) -> Any:
    """Sums (S, 2) of base-10 logarithms.

    The state is the longest suffix of the history that is a context; it has order m at a word with
    a history of `length` words, of which N − 1 count.
    """
    words, children, suffixes = ngrams
    log10_probs, log10_backoffs, unseen = weights
    most = len(levels) - 3
    sums = np.zeros((len(sentences) - 1, 2))
    for s in range(len(sums)):
        context, m, length = (1 + START, 1, 1) if most > 0 else (0, 0, 0)
        for place in range(sentences[s], sentences[s + 1] + 1):
            word = END if place == sentences[s + 1] else tokens[place]
            score, steps = 0.0, 0
            node = child(words, children, context, word)
            while node < 0:
                score += log10_backoffs[context]
                context, steps = suffixes[context], steps + 1
                node = child(words, children, context, word)
            if unseen != 0:
                while context < levels[m]:
                    m -= 1
                score += unseen * (length - m - steps)
            score += log10_probs[node]
            sums[s, 1 if place == sentences[s + 1] else 0] += score
            context = node if node < len(children) - 1 else suffixes[node]
            m, length = most, min(length + 1, most)
    return sums
