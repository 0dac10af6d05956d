"""Expected utilities of the candidates of a sentence, for minimum Bayes risk decoding.

A utility says how good a candidate is if another is the right translation. `LinearBleu` and the
aggregates need only what the right translation is expected to hold of each n-gram, so that the K²
pairs of a list are never compared: O(Σ n-grams) time. The pairwise utilities are the definition of
minimum Bayes risk (Kumar & Byrne 2004, https://aclanthology.org/N04-1022), Σ_l p_l ·
metric(candidate, candidate l).

Sentences count from 0 among those that have candidates, as in `decoders.problem`; probabilities
are not logarithms. Words and characters are those of `rerank.metrics.bleu` and `chrf`.

Tromble et al. (2008), https://aclanthology.org/D08-1065; DeNero et al. (2009),
https://aclanthology.org/P09-1064; Popović (2015), https://aclanthology.org/W15-3049;
Vamvas & Sennrich (2024), https://aclanthology.org/2024.acl-short.71.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.errors import InputError, RerankError
from rerank.files.compilation import njit
from rerank.metrics import bleu, chrf
from rerank.metrics.ngrams import numbered_ngrams, numbered_words

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_BITS = 63  # of a word: the sign stays 0


class ExpectedUtility(ABC):
    """Expected utility of the candidates in the lists of a document."""

    def __init__(self, kbest: KBest) -> None:
        self.kbest = kbest
        self._present = np.flatnonzero(kbest.counts)
        self._blob = np.frombuffer(kbest.texts.blob, np.uint8)

    @abstractmethod
    def expected(self, t: int, marginals: Floats) -> Floats:
        """Expected utility of each candidate of sentence t, in the shape of the marginals.

        marginals: (K_t,) probability that a candidate is right; or (A, K_t), A distributions.
        """

    def words(self, t: int) -> Floats:
        """Number of words of each candidate of sentence t, (K_t,)."""
        return np.diff(numbered_words(self._blob, self._spans(t))[1]).astype(np.float64)

    def _spans(self, t: int) -> Integers:
        """Where the candidates of sentence t are in the bytes of the texts, (K_t, 2)."""
        rows = self.kbest.rows(int(self._present[t]))
        return self.kbest.texts.spans[rows.start : rows.stop]


class TextUtility(ExpectedUtility):
    """Expected utility that is computed from the bytes of the candidates."""

    def expected(self, t: int, marginals: Floats) -> Floats:
        """Expected utility, as of `ExpectedUtility`; ValueError for another number of marginals."""
        spans = self._spans(t)
        if marginals.shape[-1:] != (len(spans),):
            raise ValueError(f"marginals {marginals.shape} of {len(spans)} candidates")
        gains = self.gains(self._blob, spans, np.array(marginals, np.float64, ndmin=2))
        return gains.reshape(marginals.shape)

    @abstractmethod
    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """Utilities (A, K) of the candidates at spans (K, 2) of the blob under marginals (A, K)."""


class LinearBleu(TextUtility):
    """BLEU made linear: θ₀|e| + Σ_w θ_|w| c_w(e) δ_w(e'), a sum over the n-grams w of e.

    c_w counts w in e, δ_w is 1 where e' holds w, θ₀ = −1 and θ_n = 1 / (4 p rⁿ⁻¹): Tromble et al.
    (2008) with T = 1. p is the precision of unigrams and r the ratio of each order's precision to
    that of the order below; the defaults are those of Moses (`lmbr-p`, `lmbr-r`). The unit is a
    word; expectations are exact.
    """

    def __init__(self, kbest: KBest, *, precision: float = 0.8, decay: float = 0.6) -> None:
        super().__init__(kbest)
        orders = 1 / (bleu.ORDER * precision * decay ** np.arange(bleu.ORDER))
        self.thetas = np.concatenate([[-1.0], orders])  # θ₀ … θ₄, (5,)

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """Expected linear BLEU (A, K)."""
        ids, starts, _ = numbered_words(blob, spans)
        return _linear(_counted(ids, starts, bleu.ORDER), marginals, self.thetas)


class AggregateBleu(TextUtility):
    """Sentence BLEU, 0..100, against the n-gram counts expected of the right candidate.

    Where a candidate is surely right it is sacrebleu's `sentence_bleu` against it; otherwise BLEU
    of an expectation stands for the expectation of BLEU (DeNero et al. 2009), as in `mbrs`.
    """

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """BLEU (A, K) against expected counts."""
        ids, starts, _ = numbered_words(blob, spans)
        texts = _counted(ids, starts, bleu.ORDER)
        return _bleu(texts.lengths, *_aggregated(texts, marginals))


class AggregateChrf(TextUtility):
    """chrF2, 0..100, against the n-gram counts expected of the right candidate.

    Where a candidate is surely right it is sacrebleu's sentence chrF against it, bit for bit;
    otherwise chrF of an expectation stands for the expectation of chrF (Vamvas & Sennrich 2024).
    """

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """chrF2 (A, K) against expected counts."""
        texts = _counted(*chrf.numbered_characters(blob, spans), chrf.ORDER)
        return _chrf(texts.lengths, *_aggregated(texts, marginals))


class NgramCounts(NamedTuple):
    """Counts of the distinct n-grams of K candidates.

    Candidate k has the entries starts[k]:starts[k + 1]: the number of an n-gram, below `size`, its
    order less 1, and how often the candidate holds it. lengths: (K, order) n-grams of each order.
    """

    starts: Integers
    ngrams: Integers
    orders: Integers
    times: Floats
    lengths: Floats
    size: int


@njit(cache=True)
def _counted(ids: Integers, starts: Integers, order: int) -> NgramCounts:
    """Counts of the n-grams of texts ids[starts[k]:starts[k + 1]]."""
    numbers, size = numbered_ngrams(ids, starts, order)
    k_all = len(starts) - 1
    ends, lengths = np.zeros(k_all + 1, np.int64), np.zeros((k_all, order))
    ngrams, orders = np.empty(numbers.size, np.int64), np.empty(numbers.size, np.int64)
    times, entry = np.empty(numbers.size), np.full(size, -1)
    m = 0
    for k in range(k_all):
        for j in range(order):
            lengths[k, j] = max(starts[k + 1] - starts[k] - j, 0)
        for i in range(starts[k], starts[k + 1]):
            for j in range(min(order, starts[k + 1] - i)):
                ngram = numbers[i, j]
                if entry[ngram] < ends[k]:  # the first of this candidate
                    entry[ngram] = m
                    ngrams[m], orders[m], times[m] = ngram, j, 0.0
                    m += 1
                times[entry[ngram]] += 1.0
        ends[k + 1] = m
    return NgramCounts(ends, ngrams[:m], orders[:m], times[:m], lengths, size)


@njit(cache=True)
def _linear(texts: NgramCounts, marginals: Floats, thetas: Floats) -> Floats:
    """Gains (A, K) under the posteriors of n-grams (Tromble et al. 2008)."""
    gains = np.zeros_like(marginals)
    for a in range(len(marginals)):
        posteriors = np.zeros(texts.size)
        for k in range(marginals.shape[1]):
            for e in range(texts.starts[k], texts.starts[k + 1]):
                posteriors[texts.ngrams[e]] += marginals[a, k]
        for k in range(marginals.shape[1]):
            gains[a, k] = thetas[0] * texts.lengths[k, 0]
            for e in range(texts.starts[k], texts.starts[k + 1]):
                theta = thetas[texts.orders[e] + 1]
                gains[a, k] += theta * texts.times[e] * posteriors[texts.ngrams[e]]
    return gains


@njit(cache=True)
def _aggregated(texts: NgramCounts, marginals: Floats) -> tuple[Floats, Floats]:
    """Expected lengths (A, order) of the right candidate, and clipped matches (A, K, order)."""
    order, k_all = texts.lengths.shape[1], marginals.shape[1]
    lengths = np.zeros((len(marginals), order))
    matches = np.zeros((len(marginals), k_all, order))
    for a in range(len(marginals)):
        expected = np.zeros(texts.size)
        for k in range(k_all):
            for e in range(texts.starts[k], texts.starts[k + 1]):
                expected[texts.ngrams[e]] += marginals[a, k] * texts.times[e]
            for j in range(order):
                lengths[a, j] += marginals[a, k] * texts.lengths[k, j]
        for k in range(k_all):
            for e in range(texts.starts[k], texts.starts[k + 1]):
                matched = min(texts.times[e], expected[texts.ngrams[e]])
                matches[a, k, texts.orders[e]] += matched
    return lengths, matches


@njit(cache=True)
def _bleu(lengths: Floats, references: Floats, matches: Floats) -> Floats:
    """BLEU (A, K) of candidates of lengths (K, 4), given what `_aggregated` returns."""
    scores = np.zeros(matches.shape[:2])
    for a in range(matches.shape[0]):
        for k in range(matches.shape[1]):
            scores[a, k] = sentence_bleu(lengths[k], references[a, 0], matches[a, k])
    return scores


@njit(cache=True)
def sentence_bleu(lengths: Floats, reference: float, matches: Floats) -> float:
    """BLEU, 0..100, of a candidate: sacrebleu's `sentence_bleu`, for expected counts too.

    lengths: (4,) n-grams of the candidate; reference: its length; matches: (4,)
    """
    if matches[0] == 0.0:
        return 0.0
    total, smooth, n = 0.0, 1.0, 0
    while n < len(lengths) and lengths[n] > 0.0:
        if matches[n] == 0.0:
            smooth *= 0.5
        total += math.log((matches[n] if matches[n] > 0.0 else smooth) / lengths[n])
        n += 1
    return 100.0 * math.exp(total / n + min(0.0, 1.0 - reference / lengths[0]))


@njit(cache=True)
def _chrf(lengths: Floats, references: Floats, matches: Floats) -> Floats:
    """chrF2 (A, K) of candidates of lengths (K, 6), given what `_aggregated` returns."""
    scores = np.zeros(matches.shape[:2])
    for a in range(matches.shape[0]):
        for k in range(matches.shape[1]):
            scores[a, k] = chrf.f_score(lengths[k], references[a], matches[a, k])
    return scores


# All pairs of candidates


class PairwiseBleu(TextUtility):
    """Expected sentence BLEU, 0..100: sacrebleu's `sentence_bleu`, `smooth exp`, of all pairs."""

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """Expected sentence BLEU (A, K)."""
        ids, starts, _ = numbered_words(blob, spans)
        logs = np.log(np.arange(1.0, np.diff(starts).max() + 1))
        sets = _sets(ids, starts, bleu.ORDER)
        columns, idle = np.ascontiguousarray(marginals.T), np.asarray(~marginals.any(axis=0))
        return _expected_bleu(sets, np.diff(starts), columns, idle, logs).T

    def matches(self, t: int) -> Integers:
        """Clipped matches (K, K, 4) of the n-grams of any two candidates of sentence t."""
        ids, starts, _ = numbered_words(self._blob, self._spans(t))
        return _all_matches(_sets(ids, starts, bleu.ORDER), np.diff(starts))


class PairwiseChrf(TextUtility):
    """Expected sentence chrF, 0..100: sacrebleu's, bit for bit, of all pairs.

    beta: weight of recall; the default is that of chrF2.
    """

    def __init__(self, kbest: KBest, *, beta: float = chrf.BETA) -> None:
        super().__init__(kbest)
        self.beta = float(beta)

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """Expected chrF (A, K)."""
        ids, starts = chrf.numbered_characters(blob, spans)
        sets = _sets(ids, starts, chrf.ORDER)
        columns, idle = np.ascontiguousarray(marginals.T), np.asarray(~marginals.any(axis=0))
        return _expected_chrf(sets, np.diff(starts), columns, idle, self.beta).T

    def characters(self, t: int) -> Floats:
        """Number of characters of each candidate of sentence t without white space, (K_t,)."""
        starts = chrf.numbered_characters(self._blob, self._spans(t))[1]
        return np.diff(starts).astype(np.float64)


class TextSets(NamedTuple):
    """Elements of K texts as bits: element e of text k is bit e % 63 of bits[k, e // 63].

    The i-th occurrence of an n-gram in a text is an element, so that the clipped matches of two
    texts are the size of the intersection. Those of one text alone have no bit, and `common`
    (order,) counts those in all texts. With V others a sentence takes O(K² V / 63) time. Order j
    has the words ends[j]:ends[j + 1].
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
    """Elements (L, order) of the n-grams, 0 past the end; the order of each, how many have it."""
    elements, size = numbered_ngrams(ids, starts, order)
    most = size + elements.size
    later, orders, holders = np.zeros((3, most), np.int64)
    latest, owner = np.zeros(size, np.int64), np.full(size, -1)
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            for j in range(min(order, starts[k + 1] - i)):
                ngram = element = elements[i, j]
                if owner[ngram] == k:
                    element = later[latest[ngram]]
                    if element == 0:
                        element = later[latest[ngram]] = size
                        size += 1
                owner[ngram], latest[ngram] = k, element
                elements[i, j], orders[element] = element, j
                holders[element] += 1
    return elements, orders[:size], holders[:size]


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
    matches = np.zeros((len(lengths), len(lengths), order), np.int64)
    for k in range(len(lengths)):
        for r in range(k):
            _intersect(sets, k, r, matches[k, r])
            matches[r, k] = matches[k, r]
        for j in range(order):
            matches[k, k, j] = max(lengths[k] - j, 0)  # those it alone has are in no set
    return matches


@njit(cache=True)
def _population(word: int) -> int:
    """How many of 63 bits are set."""
    word -= word >> 1 & 0x5555555555555555
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333)
    return ((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101 >> 56


@njit(cache=True)
def _expected_bleu(
    sets: TextSets, lengths: Integers, marginals: Floats, idle: NDArray[np.bool_], logs: Floats
) -> Floats:
    """Expected sentence BLEU (K, A); idle: (K,) impossible candidates; logs: ln 1, ln 2, …."""
    gains, matches = np.zeros_like(marginals), np.zeros(bleu.ORDER, np.int64)
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
    """`sentence_bleu` of whole numbers, by their logarithms."""
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
def _expected_chrf(
    sets: TextSets, sizes: Integers, marginals: Floats, idle: NDArray[np.bool_], beta: float
) -> Floats:
    """Expected chrF (K, A) of texts of `sizes` (K,) characters, as `_expected_bleu` has it."""
    gains, matches = np.zeros_like(marginals), np.zeros(chrf.ORDER, np.int64)
    lengths = np.zeros((len(sizes), chrf.ORDER), np.int64)
    for j in range(chrf.ORDER):
        lengths[:, j] = np.maximum(sizes - j, 0)
    for k in range(len(lengths)):
        if not idle[k]:
            gains[k] += chrf.f_score(lengths[k], lengths[k], lengths[k], beta) * marginals[k]
        for r in range(k):
            if idle[k] and idle[r]:
                continue
            _intersect(sets, k, r, matches)
            gains[k] += chrf.f_score(lengths[k], lengths[r], matches, beta) * marginals[r]
            gains[r] += chrf.f_score(lengths[r], lengths[k], matches, beta) * marginals[k]
    return gains


# Utilities of other people


class PairUtility(TextUtility):
    """A utility of pairs of texts: of each candidate if another one is right.

    `pairs(texts)` returns rows (K, K): row k of candidate k, column r where r is right. An entry
    point of `rerank.utilities` is such a class.
    """

    @abstractmethod
    def pairs(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Utilities (K, K) of the candidates of a sentence."""

    def gains(self, blob: NDArray[np.uint8], spans: Integers, marginals: Floats) -> Floats:
        """As of `ExpectedUtility`; RerankError for anything but finite numbers (K, K)."""
        texts = [blob[a:b].tobytes().decode() for a, b in spans.tolist()]
        what, size = f"utility {type(self).__name__}", len(texts)
        try:
            rows = np.array(self.pairs(texts), np.float64)
        except Exception as fault:
            kind = type(fault).__name__
            raise RerankError(f"{what}: expected rows of numbers, found {kind}: {fault}") from fault
        if rows.shape != (size, size) or not np.isfinite(rows).all():
            raise RerankError(
                f"{what}: expected finite numbers ({size}, {size}), found an array {rows.shape}"
            )
        return marginals @ rows.T


@lru_cache(1)
def _arrays(path: str) -> Mapping[str, Floats]:
    """The arrays of a file of utilities, each read when it is asked for."""
    try:
        arrays = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as fault:
        raise InputError(f"expected a file of numpy.savez: {fault}", source=path) from None
    if not isinstance(arrays, Mapping):
        raise InputError("expected a file of numpy.savez, found a single array", source=path)
    return arrays


class FileUtility(ExpectedUtility):
    """Utilities in a file of `numpy.savez`: an array (K, K) by the number of each sentence."""

    def __init__(self, kbest: KBest, path: str) -> None:
        super().__init__(kbest)
        self.path = path

    def expected(self, t: int, marginals: Floats) -> Floats:
        """Expected utility, as of `ExpectedUtility`; InputError without the array of a sentence."""
        sentence = int(self._present[t])
        rows, name = self.kbest.rows(sentence), str(self.kbest.first + sentence)
        kept, arrays = self.kbest.ranks[rows.start : rows.stop], _arrays(self.path)
        table = arrays[name] if name in arrays else np.zeros((0, 0))
        size = int(kept.max()) + 1
        square = table.ndim == 2 and table.shape[0] == table.shape[1] >= size
        if not (square and table.dtype.kind in "fiu" and np.isfinite(table).all()):
            raise InputError(
                f"expected an array {name!r} of finite numbers, ({size}, {size}) for the "
                f"candidates of source line {name} (from 0), found {table.dtype} {table.shape}",
                source=self.path,
            )
        return marginals @ table[np.ix_(kept, kept)].T.astype(np.float64)
