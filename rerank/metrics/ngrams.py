"""Clipped matches of n-grams: those of references in a trie, those of a hypothesis looked up.

Tokens are numbers in 0 … 2³²−1: words, or characters. All of it is compiled, for the compiled
functions of `rerank.metrics.bleu` and `rerank.metrics.chrf`.

The n-grams are the nodes of the trie, kept in one hash table with open addressing: a node is named
by its slot + 1 (the root is 0) and found by (parent, last token), so that equal keys are equal
n-grams, whatever the hash.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit

_KEY, _ALLOWED, _USED, _USER = 0, 1, 2, 3  # columns; used: count in the sequence numbered `user`
FREE = -1
GOLDEN = -7046029254386353131  # 2**64 / golden ratio, odd, as int64: multiplicative hashing


@njit(cache=True)
def trie(ids: NDArray[np.int64], starts: NDArray[np.int64], order: int) -> NDArray[np.int64]:
    """N-grams up to `order` of the references `starts` (R+1,), each with its largest count.

    ids: (L,) tokens; reference r is ids[starts[r]:starts[r + 1]]. O(order · tokens) time and
    memory. The result is for `add_matches`.
    """
    size = 2
    while size < 2 * order * (starts[-1] - starts[0]):  # at most half full
        size *= 2
    table = np.full((size, 4), FREE)
    for r in range(len(starts) - 1):
        for i in range(starts[r], starts[r + 1]):
            node = 0
            for j in range(i, min(i + order, starts[r + 1])):
                slot = slot_of(table, node << 32 | ids[j])
                if table[slot, _KEY] == FREE:
                    table[slot, _KEY], table[slot, _ALLOWED] = node << 32 | ids[j], 0
                used = _use(table[slot], r)
                table[slot, _ALLOWED] = max(table[slot, _ALLOWED], used)
                node = slot + 1
    return table


@njit(cache=True)
def add_matches(
    table: NDArray[np.int64], ids: NDArray[np.int64], user: int, counts: NDArray[np.int64]
) -> None:
    """Add the clipped matches of a hypothesis `ids` (L,), by order, to `counts` (order,).

    `user` tells hypotheses apart: a number not used with this table before, no less than that
    of its references. O(order · L).
    """
    for i in range(len(ids)):
        node = 0
        for n in range(min(len(counts), len(ids) - i)):
            slot = slot_of(table, node << 32 | ids[i + n])
            if table[slot, _KEY] == FREE:
                break  # no reference has this n-gram, nor a longer one
            if _use(table[slot], user) <= table[slot, _ALLOWED]:
                counts[n] += 1
            node = slot + 1


@njit(cache=True)
def slot_of(table: NDArray[np.int64], key: int) -> int:
    """Slot of a key in the first column, or the free one where it belongs."""
    mask = len(table) - 1
    slot = (key * GOLDEN >> 32) & mask
    while table[slot, _KEY] != key and table[slot, _KEY] != FREE:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True)
def _use(entry: NDArray[np.int64], user: int) -> int:
    """How often the sequence `user` has now used an n-gram."""
    if entry[_USER] != user:
        entry[_USER], entry[_USED] = user, 0
    entry[_USED] += 1
    return int(entry[_USED])


@njit(cache=True)
def numbered_ngrams(
    ids: NDArray[np.int64], starts: NDArray[np.int64], order: int
) -> tuple[NDArray[np.int64], int]:
    """Numbers (L, order) of the n-grams that begin at each token, 0 past the end; the next number.

    Equal n-grams have equal numbers, from 1 in the order in which they come. ids: (L,) tokens;
    text k is ids[starts[k]:starts[k + 1]]. O(order · L) time; the hash table doubles when it is
    half full, so that its memory is that of the distinct n-grams.
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
                if table[slot, _KEY] == FREE:
                    table[slot, 0], table[slot, 1] = key, n
                    n += 1
                node = table[slot, 1]
                found[i, j] = node
                if 2 * n > len(table):
                    table = _doubled(table)
    return found, n


@njit(cache=True)
def _doubled(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The hash table of keys and numbers in twice the memory."""
    doubled = np.full((2 * len(table), 2), FREE)
    for entry in table:
        if entry[_KEY] != FREE:
            doubled[slot_of(doubled, entry[_KEY])] = entry
    return doubled
