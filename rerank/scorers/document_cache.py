"""A document cache as a feature of its own: words of a candidate that the document has had before.

The score of a candidate is Σ_w log(1 − λ + λ V c(w) / n) over its words, where c counts the n
words of the document's earlier sentences on the path, and V = 10,000. It is what the cache adds to
the log-probability under p(w) = (1 − λ) / V + λ c(w) / n: 0 in the first sentence, log(1 − λ) for a
new word, and for another one the more, the more often it was used. Words are split on ASCII space.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from decoders.problem import Array, DocumentProblem, Indices
from rerank.corpus.kbest import Document
from rerank.errors import UsageError
from rerank.formats.tokens import NUMBER

SHARE, VOCABULARY = 0.5, 10_000


class DocumentCache:
    """The scorer `document-cache`, of unbounded order; share: λ, or its text in the shell."""

    order = None

    def __init__(self, share: float | str = SHARE) -> None:
        number = not isinstance(share, str) or NUMBER.fullmatch(os.fsencode(share))
        self.share = float(share) if number else 0.0
        if not 0 < self.share < 1:
            raise UsageError(
                "expected a weight of the document cache above 0 and below 1, found "
                f"{share!r:.60}; give document-cache:{SHARE}"
            )

    def score(self, document: Document) -> CacheProblem:
        """Scores of a document's candidates after each history."""
        return CacheProblem([document.texts[t] for t in document.present], self.share)


@dataclass(frozen=True, slots=True, eq=False)
class WordCounts:
    """What the caches of N histories hold: counts (N, W + 1) of words, and the numbers of all (N,).

    W words can come again; the last column stands for the others and stays 0.
    """

    of_words: NDArray[np.int32]
    totals: NDArray[np.int64]


class CacheProblem(DocumentProblem):
    """Scores under document caches; a state is a batch of caches.

    lists: texts of the candidates of each sentence. Memory: 4 bytes for each history and each word
    that occurs in the lists of two sentences.
    """

    lengths: tuple[int, ...] = ()
    order: int | None = None

    def __init__(self, lists: Sequence[Sequence[str]], share: float) -> None:
        self.lengths, self.share = tuple(map(len, lists)), share
        words = [[[w for w in text.split(" ") if w] for text in texts] for texts in lists]
        sentences = Counter(chain(*(set(chain(*own)) for own in words)))
        again = {word: i for i, word in enumerate(w for w, n in sentences.items() if n > 1)}
        self._other = len(again)
        self._tokens = [
            [np.array([again.get(word, self._other) for word in one], np.intp) for one in own]
            for own in words
        ]

    def initial(self) -> WordCounts:
        """One empty cache."""
        return WordCounts(np.zeros((1, self._other + 1), np.int32), np.zeros(1, np.int64))

    def extend(self, states: WordCounts, t: int) -> tuple[Array, tuple[WordCounts, int]]:
        """Scores (N, K_t) after each of N histories; O(N · words of the list) time and memory."""
        words, starts = _joined(self._tokens[t], self._other)
        gains = self._gains(states.of_words[:, words], states.totals[:, None])
        gains[:, _ends(starts, len(words))] = 0.0
        return np.add.reduceat(gains, starts, axis=1), (states, t)

    def select(
        self, successors: tuple[WordCounts, int], parents: Indices, choices: Indices
    ) -> WordCounts:
        """The caches with the words of the chosen candidates."""
        states, t = successors
        return self._with(WordCounts(states.of_words[parents], states.totals[parents]), t, choices)

    def rescore(self, paths: Indices, t: int, horizon: int) -> Array:
        """Sums (N,) along each path; O(words of the paths) time."""
        n, sums = len(paths), np.zeros(len(paths))
        states = WordCounts(np.zeros((n, self._other + 1), np.int32), np.zeros(n, np.int64))
        for s in range(min(t + horizon + 1, len(self.lengths))):
            if s >= t:
                words, starts = _joined(
                    [self._tokens[s][k] for k in paths[:, s].tolist()], self._other
                )
                rows = np.repeat(np.arange(n), np.diff([*starts, len(words)]))
                gains = self._gains(states.of_words[rows, words], states.totals[rows])
                gains[_ends(starts, len(words))] = 0.0
                sums += np.add.reduceat(gains, starts)
            states = self._with(states, s, paths[:, s])
        return sums

    def _gains(self, counts: NDArray[np.int32], totals: NDArray[np.int64]) -> Array:
        """log(1 − λ + λ V c / n) of words; 0 where n is 0."""
        shares = counts / np.maximum(totals, 1)
        gains = np.log1p(self.share * (VOCABULARY * shares - 1))
        return np.where(totals > 0, gains, 0.0)

    def _with(self, states: WordCounts, t: int, choices: Indices) -> WordCounts:
        """New caches: those given, with the words of one candidate of sentence t each."""
        chosen = [self._tokens[t][k] for k in choices.tolist()]
        sizes = np.array([len(words) for words in chosen], np.int64)
        counts, rows = states.of_words.copy(), np.repeat(np.arange(len(chosen)), sizes)
        np.add.at(counts, (rows, np.concatenate([np.zeros(0, np.intp), *chosen])), 1)
        counts[:, self._other] = 0
        return WordCounts(counts, states.totals + sizes)


def _joined(candidates: Sequence[Indices], end: int) -> tuple[Indices, Indices]:
    """The words of all candidates, each followed by `end`, and where each candidate begins."""
    mark = np.array([end], np.intp)
    words = np.concatenate([part for one in candidates for part in (one, mark)])
    return words, np.cumsum([0, *(len(one) + 1 for one in candidates[:-1])])


def _ends(starts: Indices, n: int) -> Indices:
    """Where each candidate ends, of n words in all."""
    return np.append(starts[1:], n) - 1
