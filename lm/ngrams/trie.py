"""N-grams as a trie of prefixes with links to suffixes: the table of an n-gram model.

Node 0 is the empty n-gram; the node of an n-gram (h, w) is the child w of the node of h. Nodes are
numbered order by order, within an order by parent, then by w, so that the children of a node are
neighbours and a word is found among them by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from lm.ngrams import NGramError

Nodes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class NGrams:
    """M − 1 n-grams of the orders 1 to N over V words; those of order 1 are all words.

    levels: (N + 2,) the n-grams of order n are the nodes levels[n] to levels[n + 1] − 1.
    words: (M,) last word of each; 0 for the empty one. children: (C + 1,) the children of node c
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
        """Parent (M,) of each node; node 0 is its own."""
        contexts = np.arange(self.n_contexts, dtype=np.int32)
        return np.concatenate([contexts[:1], np.repeat(contexts, np.diff(self.children))])

    def extended(self, parents: Nodes, words: Nodes, suffixes: Nodes | None = None) -> NGrams:
        """These n-grams and those (m,) of the next order, in ascending (parent, word), distinct.

        suffixes: found by looking them up unless they are given.
        """
        start, stop = self.levels[-2:]
        of_each = np.bincount(parents - start, minlength=stop - start)
        last = self.children[-1] + np.cumsum(of_each)
        if last[-1] >= 2**31:
            raise NGramError("expected fewer than 2^31 n-grams, found more; choose a lower order")
        children = np.concatenate([self.children, last.astype(np.int32)])
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
        found: Nodes = _nodes(self.words, self.children, ngrams)
        return found


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
    found = np.empty(len(ngrams), np.int32)
    for i in range(len(ngrams)):
        node = 0
        for j in range(ngrams.shape[1]):
            node = child(words, children, node, ngrams[i, j])
            if node < 0:
                break
        found[i] = node
    return found


@njit(cache=True, nogil=True)
def _suffixes(words: Any, children: Any, suffixes: Any, parents: Any, own: Any) -> Any:
    """The suffix of (h, w) is the child w of the longest suffix of h that has one."""
    found = np.empty(len(own), np.int32)
    for i in range(len(own)):
        context, node = suffixes[parents[i]], -1
        while node < 0:
            node = child(words, children, context, own[i])
            context = suffixes[context]
        found[i] = node
    return found
