"""Expected utilities over all pairs of candidates of a sentence: sentence BLEU and chrF.

The utility of a candidate is Σ_l p_l · metric(candidate, candidate l), the definition of minimum
Bayes risk (Kumar & Byrne 2004, https://aclanthology.org/N04-1022). The i-th occurrence of an n-gram
in a text is one element of a set, so that the clipped matches of two texts are the size of the
intersection of their sets. The sets are bits: an n-gram that one candidate alone holds has none,
one that all hold is counted once. With V other elements a sentence takes O(K² V / 63) time and
O(K V / 63) memory beside the n-grams themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit
from rerank.metrics import bleu, chrf
from rerank.metrics.consensus import ExpectedUtility, Floats, Integers
from rerank.metrics.ngrams import numbered_ngrams
from rerank.metrics.texts import numbered_words

_BITS = 63  # of a word: the sign stays 0


class PairwiseBleu(ExpectedUtility):
    """Expected sentence BLEU, 0..100: sacrebleu's `sentence_bleu`, `smooth exp`, of all pairs."""

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """Expected sentence BLEU (A, K)."""
        ids, starts, _ = numbered_words(blob, spans)
        logs = np.log(np.arange(1.0, np.diff(starts).max() + 1))
        sets = _sets(ids, starts, bleu.ORDER)
        return _expected_bleu(sets, np.diff(starts), np.ascontiguousarray(marginals.T), logs).T

    def matches(self, t: int) -> Integers:
        """Clipped matches (K, K, 4) of the n-grams of any two candidates of sentence t."""
        ids, starts, _ = numbered_words(self._blob, self._spans(t))
        return _all_matches(_sets(ids, starts, bleu.ORDER), np.diff(starts))


class PairwiseChrf(ExpectedUtility):
    """Expected sentence chrF2, 0..100: sacrebleu's, bit for bit, of all pairs."""

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """Expected chrF2 (A, K)."""
        ids, starts = chrf.numbered_characters(blob, spans)
        sets = _sets(ids, starts, chrf.ORDER)
        return _expected_chrf(sets, np.diff(starts), np.ascontiguousarray(marginals.T)).T


def leave_one_out(utility: ExpectedUtility, t: int, votes: Floats) -> Floats:
    """Mean utility (K,) of each candidate of sentence t against the outputs of the other systems.

    votes: (K,) numbers of systems, M in all, whose output each candidate is. Of the M − 1 others of
    a candidate, votes − 1 have the same text. 0 where M = 1. utility: `PairwiseBleu` or
    `PairwiseChrf`; the cost is that of one expectation, O(K² V / 63) for V different n-grams.
    """
    systems = float(votes.sum())
    if systems == 1:
        return np.zeros_like(votes)
    expected = utility.expected(t, votes / systems)
    own = 100.0 * (utility.words(t) > 0)  # of a text against itself
    return np.maximum((systems * expected - own) / (systems - 1), 0.0)  # rounding goes below


class TextSets(NamedTuple):
    """Elements of K texts as bits: element e of text k is bit e % 63 of bits[k, e // 63].

    Order j has the words ends[j]:ends[j + 1]; `common` (order,) counts the elements in all texts.
    """

    bits: Integers
    ends: Integers
    common: Integers


@njit(cache=True)
def _sets(ids: Integers, starts: Integers, order: int) -> TextSets:
    """The elements of texts ids[starts[k]:starts[k + 1]] that more than one text has."""
    elements, orders, holders = _elements(ids, starts, order)
    k_all, common, counts = len(starts) - 1, np.zeros(order, np.int64), np.zeros(order, np.int64)
    columns = np.full(len(holders), -1)
    for e in range(1, len(holders)):
        if holders[e] == k_all:
            common[orders[e]] += 1
        elif holders[e] > 1:
            columns[e] = counts[orders[e]]
            counts[orders[e]] += 1
    ends = np.zeros(order + 1, np.int64)
    for j in range(order):
        ends[j + 1] = ends[j] + (counts[j] + _BITS - 1) // _BITS
    bits = np.zeros((k_all, ends[order]), np.int64)
    for k in range(k_all):
        for i in range(starts[k], starts[k + 1]):
            for j in range(order):
                column = columns[elements[i, j]]
                if column >= 0:
                    bits[k, ends[j] + column // _BITS] |= 1 << (column % _BITS)
    return TextSets(bits, ends, common)


@njit(cache=True)
def _elements(ids: Integers, starts: Integers, order: int) -> tuple[Integers, Integers, Integers]:
    """Elements (L, order) of the n-grams, 0 past the end; the order of each, and how many have it.

    The first occurrence of an n-gram in a text has the n-gram's own number, later ones have others.
    """
    found, size = numbered_ngrams(ids, starts, order)
    most = size + found.size
    later, orders, holders = np.zeros((3, most), np.int64)
    latest, owner = np.zeros(size, np.int64), np.full(size, -1)
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            for j in range(min(order, starts[k + 1] - i)):
                ngram = element = found[i, j]
                if owner[ngram] == k:
                    element = later[latest[ngram]]
                    if element == 0:
                        element = later[latest[ngram]] = size
                        size += 1
                owner[ngram], latest[ngram] = k, element
                found[i, j], orders[element] = element, j
                holders[element] += 1
    return found, orders[:size], holders[:size]


@njit(cache=True)
def _intersect(sets: TextSets, k: int, r: int, matches: Integers) -> None:
    """Put the clipped matches of texts k ≠ r into `matches` (order,)."""
    for j in range(len(matches)):
        matches[j] = sets.common[j]
        for w in range(sets.ends[j], sets.ends[j + 1]):
            matches[j] += _population(sets.bits[k, w] & sets.bits[r, w])


@njit(cache=True)
def _all_matches(sets: TextSets, lengths: Integers) -> Integers:
    """Clipped matches (K, K, order) of texts of these lengths (K,)."""
    order = len(sets.common)
    found = np.zeros((len(lengths), len(lengths), order), np.int64)
    for k in range(len(lengths)):
        for r in range(k):
            _intersect(sets, k, r, found[k, r])
            found[r, k] = found[k, r]
        for j in range(order):
            found[k, k, j] = max(lengths[k] - j, 0)  # those it alone has are in no set
    return found


@njit(cache=True)
def _population(word: int) -> int:
    """How many of 63 bits are set."""
    word -= word >> 1 & 0x5555555555555555
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333)
    return ((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101 >> 56


@njit(cache=True)
def _expected_bleu(sets: TextSets, lengths: Integers, marginals: Floats, logs: Floats) -> Floats:
    """Expected sentence BLEU (K, A) under marginals (K, A); logs: ln 1, ln 2, … of all lengths."""
    gains, idle = np.zeros_like(marginals), _idle(marginals)
    matches = np.zeros(bleu.ORDER, np.int64)
    for k in range(len(lengths)):
        if not idle[k] and lengths[k] > 0:
            gains[k] += 100.0 * marginals[k]
        for r in range(k):
            if idle[k] and idle[r]:
                continue
            _intersect(sets, k, r, matches)
            if matches[0] > 0:
                gains[k] += _pair_bleu(lengths[k], lengths[r], matches, logs) * marginals[r]
                gains[r] += _pair_bleu(lengths[r], lengths[k], matches, logs) * marginals[k]
    return gains


@njit(cache=True)
def _pair_bleu(length: int, reference: int, matches: Integers, logs: Floats) -> float:
    """`rerank.metrics.consensus.sentence_bleu` of whole numbers, by their logarithms."""
    total, smooth, n = 0.0, 0.0, min(length, len(matches))
    for j in range(n):
        if matches[j] > 0:
            total += logs[matches[j] - 1]
        else:
            smooth -= math.log(2.0)
            total += smooth
        total -= logs[length - j - 1]
    return 100.0 * math.exp(total / n + min(0.0, 1.0 - reference / length))


@njit(cache=True)
def _expected_chrf(sets: TextSets, sizes: Integers, marginals: Floats) -> Floats:
    """Expected chrF2 (K, A) of texts of `sizes` (K,) characters under marginals (K, A)."""
    gains, idle = np.zeros_like(marginals), _idle(marginals)
    lengths = np.zeros((len(sizes), chrf.ORDER), np.int64)
    for j in range(chrf.ORDER):
        lengths[:, j] = np.maximum(sizes - j, 0)
    matches = np.zeros(chrf.ORDER, np.int64)
    for k in range(len(lengths)):
        if not idle[k]:
            gains[k] += chrf.f_score(lengths[k], lengths[k], lengths[k]) * marginals[k]
        for r in range(k):
            if idle[k] and idle[r]:
                continue
            _intersect(sets, k, r, matches)
            gains[k] += chrf.f_score(lengths[k], lengths[r], matches) * marginals[r]
            gains[r] += chrf.f_score(lengths[r], lengths[k], matches) * marginals[k]
    return gains


@njit(cache=True)
def _idle(marginals: Floats) -> NDArray[np.bool_]:
    """Which candidates (K,) are impossible under all of the marginals (K, A)."""
    idle = np.ones(len(marginals), np.bool_)
    for k in range(len(marginals)):
        for p in marginals[k]:
            idle[k] = idle[k] and p == 0.0
    return idle
