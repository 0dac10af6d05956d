"""Prefix tries of k-best lists: every distinct prefix of the candidates once.

A forest holds tries level by level and without padding; the root of each is `<s>`. Where the
hidden state sees no context all lists share a root, else each list and context has its root. A
recurrence runs once per node: 2.6 tokens a node in a Moses 100-best list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from lm.backend import on_device
from lm.corpus import Corpus
from lm.sentences import Positions
from lm.vocabulary import START

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """K-best lists as columns of word ids (without `<s>` and `</s>`).

    tokens: (N,) int32 ids; offsets: (n + 1,) of the candidates in tokens; lists: (T + 1,)
    of the lists in candidates.
    """

    tokens: NDArray[np.int32]
    offsets: Indices
    lists: Indices

    @classmethod
    def of(cls, lists: Sequence[Sequence[Sequence[int]]]) -> Candidates:
        """Columns of nested lists of ids."""
        columns = Corpus.of(lists)
        return cls(columns.tokens, columns.sentences, columns.documents)

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """All lists of the parts, in order."""
        tokens = np.concatenate([part.tokens for part in parts])
        offsets = _end_to_end([part.offsets for part in parts])
        return cls(tokens, offsets, _end_to_end([part.lists for part in parts]))

    def __len__(self) -> int:
        return len(self.lists) - 1

    @property
    def counts(self) -> tuple[int, ...]:
        """K_t of each list."""
        return tuple(np.diff(self.lists).tolist())

    @property
    def n_candidates(self) -> int:
        """n, the number of candidates of all lists."""
        return len(self.offsets) - 1

    def each(self) -> list[Candidates]:
        """The lists, one by one."""
        return [self.part(t, t + 1) for t in range(len(self))]

    def one(self, t: int, k: int) -> Candidates:
        """The list of candidate k of list t alone."""
        row = int(self.lists[t]) + k
        tokens = self.tokens[self.offsets[row] : self.offsets[row + 1]]
        return Candidates(tokens, np.array([0, len(tokens)]), np.array([0, 1]))

    def texts(self) -> list[NDArray[np.int32]]:
        """The words of every candidate."""
        return [self.tokens[a:b] for a, b in pairwise(self.offsets.tolist())]

    def part(self, begin: int, end: int) -> Candidates:
        """Lists begin..end-1; views, nothing is copied but the offsets."""
        lists = self.lists[begin : end + 1]
        offsets = self.offsets[lists[0] : lists[-1] + 1]
        tokens = self.tokens[offsets[0] : offsets[-1]]
        return Candidates(tokens, offsets - offsets[0], lists - lists[0])


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Tries over n candidates, nodes ordered by level, then by parent.

    levels: (L + 1,) node offsets of the levels; the roots are the nodes before levels[1].
    parent, token, root: (N,) of each node; a root's parent is itself, its token `<s>`.
    end: (n,) node in which each candidate ends.
    """

    levels: tuple[int, ...]
    parent: Indices
    token: Indices
    root: Indices
    end: Indices

    def __len__(self) -> int:
        return len(self.parent)

    def positions(self, device: torch.device) -> Positions:
        """The nodes as positions of the candidates; a root's context is its number."""
        before = np.where(np.arange(len(self)) < self.levels[1], -1, self.parent)
        columns = (self.token, before, self.root, self.end)
        words, previous, root, end = on_device(columns, device)
        return Positions(words, previous, root, end, len(self.levels) - 2)

    def restricted(self, ends: Indices) -> tuple[Indices, Forest]:
        """The nodes (ascending) on the paths to some ends, and their forest; O(n log n) time."""
        paths = [np.unique(ends)]
        while (paths[-1] >= self.levels[1]).any():  # not all are roots
            paths.append(np.unique(self.parent[paths[-1]]))
        nodes = np.unique(np.concatenate(paths))
        levels = np.searchsorted(nodes, self.levels)
        depth = int(np.searchsorted(levels, len(nodes))) + 1
        parent, end = np.searchsorted(nodes, self.parent[nodes]), np.searchsorted(nodes, ends)
        kept = tuple(levels[:depth].tolist())
        return nodes, Forest(kept, parent, self.token[nodes], self.root[nodes], end)

    def edges(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Parents (M,) and words (M,) of the nodes that are not roots."""
        inner = self.levels[1]
        parent, token = on_device((self.parent[inner:], self.token[inner:]), device)
        return parent, token

    def sums(self, into: Tensor, leave: Tensor) -> NDArray[np.float64]:
        """Sums (n, C) from root to `</s>` for each candidate, in float64 from the root outwards.

        into: (M, C) log-probabilities of the words of `edges`; leave: (N, C) those of `</s>`.
        O(N C) time.
        """
        terms = into.cpu().numpy(), leave.cpu().numpy()
        sums: NDArray[np.float64] = _path_sums(self.parent, self.levels[1], self.end, *terms)
        return sums


def build(candidates: Candidates, rows: Indices, roots: Indices, n_roots: int) -> Forest:
    """The forest of candidates `rows` (n,) below the roots `roots` (n,); O(tokens), compiled."""
    levels, *columns = _build(candidates.tokens, candidates.offsets, rows, roots, n_roots)
    return Forest(tuple(levels.tolist()), *columns)


def build_shared(candidates: Candidates) -> Forest:
    """The forest of all candidates below a single root."""
    n = candidates.n_candidates
    return build(candidates, np.arange(n), np.zeros(n, dtype=np.int64), 1)


def _end_to_end(offsets: Sequence[Indices]) -> Indices:
    """Offsets (n + 1,) of parts as those of the whole."""
    return np.cumsum(np.concatenate([[0], *(np.diff(part) for part in offsets)]))


@njit(cache=True, nogil=True)
def _build(tokens: Any, offsets: Any, rows: Any, roots: Any, n_roots: Any) -> Any:
    """(levels, parent, token, root, end): nodes found by hashing, then numbered breadth first."""
    most = n_roots
    for row in rows:
        most += offsets[row + 1] - offsets[row]
    size = 16
    while size < 2 * most:
        size *= 2
    table = np.full(size, -1, np.int64)
    parent, token = np.empty(most, np.int64), np.empty(most, np.int64)
    parent[:n_roots], token[:n_roots] = np.arange(n_roots), START
    end = np.empty(len(rows), np.int64)
    n = n_roots
    for i in range(len(rows)):
        node = roots[i]
        for place in range(offsets[rows[i]], offsets[rows[i] + 1]):
            word = np.int64(tokens[place])
            slot = ((node * 0x9E3779B1 + word) * 0x85EBCA6B >> 7) & (size - 1)
            while table[slot] >= 0 and (parent[table[slot]] != node or token[table[slot]] != word):
                slot = (slot + 1) & (size - 1)
            if table[slot] < 0:
                table[slot], parent[n], token[n] = n, node, word
                n += 1
            node = table[slot]
        end[i] = node
    return _breadth_first(parent[:n], token[:n], n_roots, end)


@njit(cache=True, nogil=True)
def _breadth_first(parent: Any, token: Any, n_roots: Any, end: Any) -> Any:
    """The nodes renumbered level by level, within a level by parent."""
    n = len(parent)
    first = np.zeros(n + 2, np.int64)  # children of a node: sibling[first[node] : first[node + 1]]
    for node in range(n_roots, n):
        first[parent[node] + 2] += 1
    first = np.cumsum(first)
    sibling = np.empty(n, np.int64)
    for node in range(n_roots, n):
        sibling[first[parent[node] + 1]] = node
        first[parent[node] + 1] += 1
    order, place, root = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    above = np.empty(n, np.int64)
    order[:n_roots] = root[:n_roots] = above[:n_roots] = np.arange(n_roots)
    levels, begin, stop = [0], 0, n_roots
    while begin < stop:
        levels.append(stop)
        filled = stop
        for i in range(begin, stop):
            place[order[i]] = i
            for child in sibling[first[order[i]] : first[order[i] + 1]]:
                order[filled], above[filled], root[filled] = child, i, root[i]
                filled += 1
        begin, stop = stop, filled
    return np.array(levels), above, token[order], root, place[end]


@njit(cache=True, nogil=True)
def _path_sums(parent: Any, n_roots: Any, end: Any, into: Any, leave: Any) -> Any:
    reach = np.zeros((len(parent), into.shape[1]))
    for node in range(n_roots, len(parent)):
        for c in range(reach.shape[1]):
            reach[node, c] = into[node - n_roots, c] + reach[parent[node], c]
    sums = np.empty((len(end), reach.shape[1]))
    for i in range(len(end)):
        for c in range(reach.shape[1]):
            sums[i, c] = reach[end[i], c] + leave[end[i], c]
    return sums
