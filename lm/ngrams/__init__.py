"""N-gram language models: counting, smoothing, ARPA files, scoring.

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
