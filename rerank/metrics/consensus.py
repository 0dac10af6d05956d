"""Expected utilities of the candidates of a sentence, for minimum Bayes risk decoding.

A utility says how good a candidate is if another is right. Both here need only what the right one
is expected to hold of each n-gram, so that the K² pairs of a list are never compared: a sentence
takes O(Σ n-grams) time, and the memory of its own distinct n-grams; nothing is kept between calls.

Sentences count from 0 among those that have candidates, as in `decoders.problem`; probabilities
are not logarithms.

Tromble et al. (2008), https://aclanthology.org/D08-1065; DeNero et al. (2009),
https://aclanthology.org/P09-1064; Popović (2015), https://aclanthology.org/W15-3049;
Vamvas & Sennrich (2024), https://aclanthology.org/2024.acl-short.71.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from itertools import chain, count

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of
from rerank.corpus.kbest import KBest
from rerank.metrics import bleu, chrf
from rerank.metrics.ngrams import FREE, slot_of


class ExpectedUtility(ABC):
    """Expected utility of the candidates in the lists of a document."""

    def __init__(self, kbest: KBest) -> None:
        self.kbest = kbest
        self._present = np.flatnonzero(kbest.counts)

    @abstractmethod
    def expected(self, t: int, marginals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected utility of each candidate of sentence t, (K_t,).

        marginals: (K_t,) probability that a candidate is right.
        """

    def _rows(self, t: int, marginals: NDArray[np.float64]) -> range:
        """Rows of the candidates of sentence t, as many as there are marginals."""
        rows = self.kbest.rows(int(self._present[t]))
        if marginals.shape != (len(rows),):
            raise ValueError(f"marginals {marginals.shape} of {len(rows)} candidates")
        return rows


class LinearBleu(ExpectedUtility):
    """BLEU made linear: θ₀|e| + Σ_w θ_|w| c_w(e) δ_w(e'), a sum over the n-grams w of e.

    c_w counts w in e, δ_w is 1 where e' holds w, θ₀ = −1 and θ_n = 1 / (4 p rⁿ⁻¹): Tromble et al.
    (2008) with T = 1, since T is one factor of all utilities. p is the precision of unigrams and r
    the ratio of each order's precision to the one below; theirs come from a development set, the
    defaults are those of Moses (`lmbr-p`, `lmbr-r`). Words are what ASCII spaces separate.
    """

    def __init__(self, kbest: KBest, *, precision: float = 0.8, decay: float = 0.6) -> None:
        super().__init__(kbest)
        orders = 1 / (bleu.ORDER * precision * decay ** np.arange(bleu.ORDER))
        self.thetas = np.concatenate([[-1.0], orders])  # θ₀ … θ₄, (5,)

    def expected(self, t: int, marginals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected utility of each candidate of sentence t, (K_t,), in words; exact."""
        rows = self._rows(t, marginals)
        vocabulary: defaultdict[bytes, int] = defaultdict(count().__next__)
        words = [[vocabulary[word] for word in self.kbest.tokens(row)] for row in rows]
        starts = offsets_of(np.array(list(map(len, words))))
        nodes, n = _ngrams(np.array([*chain.from_iterable(words)], np.int64), starts, bleu.ORDER)
        return _linear_gains(nodes, n, starts, np.array(marginals, np.float64), self.thetas)


class ExpectedChrf(ExpectedUtility):
    """chrF2, 0..100, against the n-gram counts that the right candidate is expected to have.

    Where one candidate is surely right it is sacrebleu's sentence chrF against that one, bit for
    bit; otherwise chrF of an expectation, which stands for the expectation of chrF (DeNero et al.
    2009; Vamvas & Sennrich 2024). N-grams are of 1 to 6 characters, without white space.
    """

    def expected(self, t: int, marginals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Utility of each candidate of sentence t against the expected counts, (K_t,)."""
        rows = self._rows(t, marginals)
        texts = ["".join(self.kbest.text(row).decode().split()) for row in rows]
        characters = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4").astype(np.int64)
        starts = offsets_of(np.array(list(map(len, texts))))
        nodes, n = _ngrams(characters, starts, chrf.ORDER)
        return _chrf(nodes, n, starts, np.array(marginals, np.float64))


UTILITIES: Mapping[str, type[ExpectedUtility]] = {"bleu": LinearBleu, "chrf": ExpectedChrf}


# Distinct n-grams are the nodes of a trie, numbered from 1 as they come (the root, 0, stands for
# none). A node is found by (parent, last token) in a hash table with open addressing, which
# doubles when it is half full: its memory is that of the distinct n-grams.
@njit(cache=True)
def _doubled(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The hash table, of keys and nodes, in twice the memory."""
    doubled = np.full((2 * len(table), 2), FREE)
    for entry in table:
        if entry[0] != FREE:
            doubled[slot_of(doubled, entry[0])] = entry
    return doubled


@njit(cache=True)
def _ngrams(
    ids: NDArray[np.int64], starts: NDArray[np.int64], order: int
) -> tuple[NDArray[np.int64], int]:
    """Nodes (L, order) of the n-grams that begin at each token, 0 past the end; how many there are.

    ids: (L,) tokens of all candidates, below 2³²; candidate k is starts[k]:starts[k + 1].
    """
    table = np.full((1024, 2), FREE)
    found = np.zeros((len(ids), order), np.int64)
    n = 1
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            node = 0
            for j in range(min(order, starts[k + 1] - i)):
                key = node << 32 | ids[i + j]
                slot = slot_of(table, key)
                if table[slot, 0] == FREE:
                    table[slot, 0], table[slot, 1] = key, n
                    n += 1
                node = table[slot, 1]
                found[i, j] = node
                if 2 * n > len(table):
                    table = _doubled(table)
    return found, n


@njit(cache=True)
def _linear_gains(
    nodes: NDArray[np.int64],
    n: int,
    starts: NDArray[np.int64],
    marginals: NDArray[np.float64],
    thetas: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Gain of each candidate under the posteriors of its n-grams (Tromble et al. 2008)."""
    posteriors, last = np.zeros(n), np.full(n, -1)
    for k in range(len(marginals)):
        for i in range(starts[k], starts[k + 1]):
            for node in nodes[i]:
                if last[node] != k:  # once a candidate, however often it holds the n-gram
                    last[node] = k
                    posteriors[node] += marginals[k]
    posteriors[0] = 0.0
    gains = np.zeros(len(marginals))
    for k in range(len(marginals)):
        gains[k] = thetas[0] * (starts[k + 1] - starts[k])
        for i in range(starts[k], starts[k + 1]):
            for j in range(nodes.shape[1]):
                gains[k] += thetas[j + 1] * posteriors[nodes[i, j]]
    return gains


@njit(cache=True)
def _chrf(
    nodes: NDArray[np.int64],
    n: int,
    starts: NDArray[np.int64],
    marginals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """ChrF2 of each candidate against the expected counts."""
    order = nodes.shape[1]
    expected, totals = np.zeros(n), np.zeros(order)
    for k in range(len(marginals)):
        for i in range(starts[k], starts[k + 1]):
            for node in nodes[i]:
                expected[node] += marginals[k]
        for j in range(order):
            totals[j] += marginals[k] * max(starts[k + 1] - starts[k] - j, 0)
    expected[0] = 0.0
    scores, counts = np.zeros(len(marginals)), np.zeros(n)
    lengths, matches = np.zeros(order), np.zeros(order)
    for k in range(len(marginals)):
        for i in range(starts[k], starts[k + 1]):
            for node in nodes[i]:
                counts[node] += 1.0
        matches[:] = 0.0
        for i in range(starts[k], starts[k + 1]):
            for j in range(order):
                matches[j] += min(counts[nodes[i, j]], expected[nodes[i, j]])
                counts[nodes[i, j]] = 0.0  # each distinct n-gram once
        for j in range(order):
            lengths[j] = max(starts[k + 1] - starts[k] - j, 0)
        scores[k] = chrf.f_score(lengths, totals, matches)
    return scores
