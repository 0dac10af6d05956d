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

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, count

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.corpus.columns import offsets_of
from rerank.corpus.kbest import KBest
from rerank.metrics import chrf

WORDS = 4  # longest n-gram of BLEU, in words
CHARACTERS = chrf.ORDER  # longest n-gram of chrF


@dataclass(frozen=True, slots=True, eq=False)
class LinearBleu:
    """BLEU made linear: θ₀|e| + Σ_w θ_|w| c_w(e) δ_w(e'), a sum over the n-grams w of e.

    c_w counts w in e, δ_w is 1 where e' holds w, θ₀ = −1 and θ_n = 1 / (4 p rⁿ⁻¹): Tromble et al.
    (2008) with T = 1, since T is one factor of all utilities. p is the precision of unigrams and r
    the ratio of each order's precision to the one below; theirs come from a development set, the
    defaults are those of Moses (`lmbr-p`, `lmbr-r`). Words are what ASCII spaces separate.

    kbest: the lists of a document; present: (S,) its sentences that have candidates
    """

    kbest: KBest
    present: NDArray[np.int64]
    precision: float = 0.8
    decay: float = 0.6

    @classmethod
    def of(cls, kbest: KBest) -> LinearBleu:
        """The utility on the lists of a document."""
        return cls(kbest, np.flatnonzero(kbest.counts))

    @property
    def thetas(self) -> NDArray[np.float64]:
        """θ₀ … θ₄, (5,)."""
        orders = 1 / (WORDS * self.precision * self.decay ** np.arange(WORDS))
        return np.concatenate([[-1.0], orders])

    def expected(self, t: int, marginals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected utility of each candidate of sentence t, (K_t,), in words; exact.

        marginals: (K_t,) probability that a candidate is right.
        """
        rows = _rows(self.kbest, self.present, t, marginals)
        vocabulary: defaultdict[bytes, int] = defaultdict(count().__next__)
        words = [[vocabulary[word] for word in self.kbest.tokens(row)] for row in rows]
        starts = offsets_of(np.array(list(map(len, words))))
        nodes, n = _ngrams(np.array([*chain.from_iterable(words)], np.int64), starts, WORDS)
        return _linear_gains(nodes, n, starts, np.array(marginals, np.float64), self.thetas)


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedChrf:
    """chrF2, 0..100, against the n-gram counts that the right candidate is expected to have.

    Where one candidate is surely right it is sacrebleu's sentence chrF against that one, bit for
    bit; otherwise chrF of an expectation, which stands for the expectation of chrF (DeNero et al.
    2009; Vamvas & Sennrich 2024). N-grams are of 1 to 6 characters, without white space.

    kbest: the lists of a document; present: (S,) its sentences that have candidates
    """

    kbest: KBest
    present: NDArray[np.int64]

    @classmethod
    def of(cls, kbest: KBest) -> ExpectedChrf:
        """The utility on the lists of a document."""
        return cls(kbest, np.flatnonzero(kbest.counts))

    def expected(self, t: int, marginals: NDArray[np.float64]) -> NDArray[np.float64]:
        """Utility of each candidate of sentence t against the expected counts, (K_t,).

        marginals: (K_t,) probability that a candidate is right.
        """
        rows = _rows(self.kbest, self.present, t, marginals)
        texts = ["".join(self.kbest.text(row).decode().split()) for row in rows]
        characters = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4").astype(np.int64)
        starts = offsets_of(np.array(list(map(len, texts))))
        nodes, n = _ngrams(characters, starts, CHARACTERS)
        return _chrf(nodes, n, starts, np.array(marginals, np.float64))


UTILITIES: Mapping[str, type[LinearBleu] | type[ExpectedChrf]] = {
    "bleu": LinearBleu,
    "chrf": ExpectedChrf,
}


def _rows(
    kbest: KBest, present: NDArray[np.int64], t: int, marginals: NDArray[np.float64]
) -> range:
    """Rows of the candidates of sentence t, as many as there are marginals."""
    rows = kbest.rows(int(present[t]))
    if marginals.shape != (len(rows),):
        raise ValueError(f"marginals {marginals.shape} of {len(rows)} candidates")
    return rows


# Distinct n-grams are the nodes of a trie, numbered from 1 as they come (the root, 0, stands for
# none). A node is found by (parent, last token) in a hash table with open addressing, which
# doubles when it is half full: its memory is that of the distinct n-grams.
_FREE = -1
_GOLDEN = -7046029254386353131  # 2**64 / golden ratio, odd, as int64: multiplicative hashing


@njit(cache=True)
def _slot(keys: NDArray[np.int64], key: int) -> int:
    """Slot of a key, or the free one where it belongs."""
    mask = len(keys) - 1
    slot = (key * _GOLDEN >> 32) & mask
    while keys[slot] != key and keys[slot] != _FREE:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _doubled(
    keys: NDArray[np.int64], nodes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same table in twice the room."""
    more_keys, more_nodes = np.full(2 * len(keys), _FREE), np.zeros(2 * len(keys), np.int64)
    for old in range(len(keys)):
        if keys[old] != _FREE:
            slot = _slot(more_keys, keys[old])
            more_keys[slot], more_nodes[slot] = keys[old], nodes[old]
    return more_keys, more_nodes


@njit(cache=True)
def _ngrams(
    ids: NDArray[np.int64], starts: NDArray[np.int64], order: int
) -> tuple[NDArray[np.int64], int]:
    """Nodes (L, order) of the n-grams that begin at each token, 0 past the end; how many there are.

    ids: (L,) tokens of all candidates, below 2³²; candidate k is starts[k]:starts[k + 1].
    """
    keys, numbers = np.full(1024, _FREE), np.zeros(1024, np.int64)
    found = np.zeros((len(ids), order), np.int64)
    n = 1
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            node = 0
            for j in range(min(order, starts[k + 1] - i)):
                key = node << 32 | ids[i + j]
                slot = _slot(keys, key)
                if keys[slot] == _FREE:
                    keys[slot], numbers[slot] = key, n
                    n += 1
                node = numbers[slot]
                found[i, j] = node
                if 2 * n > len(keys):
                    keys, numbers = _doubled(keys, numbers)
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
