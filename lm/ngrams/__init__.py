"""N-gram language models: counts by sorting, smoothing, scores; ARPA files in `lm.ngrams.arpa`.

A model of order N predicts a word from the N − 1 words before it in its sentence. It sees nothing
of other sentences, so its order as a document model is 0. log p(w | h) is that of the n-gram (h, w)
if the model has it, else the back-off weight of h plus log p(w | h′), where h′ is h without its
first word. The back-off weight of a context that the model does not have is 0, as in KenLM and
SRILM, or that of stupid back-off.

The n-grams are a trie of prefixes with links to suffixes. Node 0 is the empty n-gram; the node of
(h, w) is the child w of the node of h. Nodes are numbered by order, parent and w, so that the
children of a node are neighbours, and bisection finds a word among them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lm.corpus import Corpus
from lm.vocabulary import END, START, UNKNOWN, Vocabulary

MOST_ORDER = 6
Nodes = NDArray[np.int32]
NO_PROBABILITY = -99.0  # log10 of 0, of <s> in ARPA files
UNKNOWN_MISSING = -100.0  # log10 p of unknown words in a file without <unk>, as in KenLM
Log10s = NDArray[np.float32]


class NGramError(Exception):
    """A model that cannot be made, or that has no score: what was expected, found, and the cure."""


@dataclass(frozen=True, slots=True, eq=False)
class NGrams:
    """M − 1 n-grams of the orders 1 to N over V words; those of order 1 are all words.

    levels: (N + 2,) the n-grams of order n are the nodes levels[n] to levels[n + 1] − 1.
    words: (M,) last word of each; 0 for the empty n-gram. children: (C + 1,) the children of node c
    are children[c] to children[c + 1] − 1, for the C nodes of orders below N, the contexts.
    suffixes: (M,) the longest of an n-gram's proper suffixes that has a node.
    Memory: 8 bytes an n-gram, and 4 a context.
    """

    levels: tuple[int, ...]
    words: Nodes
    children: Nodes
    suffixes: Nodes

    @classmethod
    def of_words(cls, v: int) -> NGrams:
        """The n-grams of order 1."""
        words = np.concatenate([[0], np.arange(v)]).astype(np.int32)
        children = np.array([1, 1 + v], dtype=np.int32)
        return cls((0, 1, 1 + v), words, children, np.zeros(1 + v, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def order(self) -> int:
        """N."""
        return len(self.levels) - 2

    @property
    def n_contexts(self) -> int:
        """C."""
        return len(self.children) - 1

    @property
    def n_words(self) -> int:
        """V."""
        return self.levels[2] - self.levels[1]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of n-grams of each order, (N,)."""
        return tuple(b - a for a, b in zip(self.levels[1:], self.levels[2:], strict=False))

    def level(self, n: int) -> slice:
        """The nodes of order n."""
        return slice(self.levels[n], self.levels[n + 1])

    def parents(self) -> Nodes:
        """Parent (M,) of each node, 0 of node 0."""
        contexts = np.arange(self.n_contexts, dtype=np.int32)
        return np.concatenate([contexts[:1], np.repeat(contexts, np.diff(self.children))])

    def extended(self, parents: Nodes, words: Nodes, suffixes: Nodes | None = None) -> NGrams:
        """These n-grams and distinct ones (m,) of the next order, in ascending (parent, word)."""
        start, stop = self.levels[-2:]
        of_each = np.bincount(parents - start, minlength=stop - start)
        if stop + len(words) >= 2**31:
            raise NGramError("expected fewer than 2^31 n-grams, found more; choose a lower order")
        last = self.children[-1] + np.cumsum(of_each, dtype=np.int32)
        children = np.concatenate([self.children, last])
        if suffixes is None:
            suffixes = _suffixes(self.words, self.children, self.suffixes, parents, words)
        return NGrams(
            (*self.levels, stop + len(words)),
            np.concatenate([self.words, words]),
            children,
            np.concatenate([self.suffixes, suffixes]),
        )

    def nodes(self, ngrams: NDArray[np.int32]) -> Nodes:
        """Nodes (m,) of n-grams (m, n) of one order n ≤ N; −1 where there is none."""
        nodes: Nodes = _nodes(self.words, self.children, ngrams)
        return nodes


@njit(cache=True, nogil=True)
def child(words: Any, children: Any, node: Any, word: Any) -> Any:
    """The child of a context by a word, −1 if it has none; O(log children)."""
    if node == 0:
        return word + 1
    low, end = children[node], children[node + 1]
    high = end
    while low < high:
        middle = (low + high) // 2
        if words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < end and words[low] == word else -1


@njit(cache=True, nogil=True)
def _nodes(words: Any, children: Any, ngrams: Any) -> Any:
    nodes = np.empty(len(ngrams), np.int32)
    for i in range(len(ngrams)):
        node = 0
        for j in range(ngrams.shape[1]):
            node = child(words, children, node, ngrams[i, j])
            if node < 0:
                break
        nodes[i] = node
    return nodes


@njit(cache=True, nogil=True)
def _suffixes(words: Any, children: Any, suffixes: Any, parents: Any, last: Any) -> Any:
    """The suffix of (h, w) is the child w of the longest suffix of h that has this child."""
    nodes = np.empty(len(last), np.int32)
    for i in range(len(last)):
        context, node = suffixes[parents[i]], -1
        while node < 0:
            node = child(words, children, context, last[i])
            context = suffixes[context]
        nodes[i] = node
    return nodes


@dataclass(frozen=True, slots=True, eq=False)
class NGramModel:
    """Base-10 logarithms of probabilities (M,) of n-grams and of back-offs (C,) of contexts.

    unseen: that of the back-off of any context without a node; other than 0 in stupid back-off.
    Words outside the vocabulary are `<unk>`. Memory: 12 bytes an n-gram, and 8 a context.
    """

    vocabulary: Vocabulary
    ngrams: NGrams
    log10_probs: Log10s
    log10_backoffs: Log10s
    unseen: float = 0.0

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
        """Scores (S, 3) of sentences in nats: of words after `<s>`, of `</s>`, of unknown words.

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


@njit(cache=True, nogil=True)
def _scores(tokens: Any, sentences: Any, levels: Any, ngrams: Any, weights: Any) -> Any:
    """Sums (S, 3) of base-10 logarithms: of words, of `</s>`, and of the unknown ones of the words.

    The state is the longest suffix of the history that is a context; it has order m at a word with
    a history of `length` words, of which N − 1 count.
    """
    words, children, suffixes = ngrams
    log10_probs, log10_backoffs, unseen = weights
    most = len(levels) - 3
    sums = np.zeros((len(sentences) - 1, 3))
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
            sums[s, 2] += score if word == UNKNOWN else 0.0
            context = node if node < len(children) - 1 else suffixes[node]
            m, length = most, min(length + 1, most)
    return sums


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
            discount = np.array([0.0, *discounts])[np.minimum(adjusted, 3)]
            totals = np.bincount(contexts, weights=adjusted, minlength=number)
            removed = np.bincount(contexts, weights=discount, minlength=number)
            followed = totals > 0
            backoffs = np.where(followed, removed / np.where(followed, totals, 1), 1.0)
            probs = (adjusted - discount) / totals[contexts] + backoffs[contexts] * lower[shorter]
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
