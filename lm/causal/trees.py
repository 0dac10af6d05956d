"""Prefix trees of token sequences as single inputs of a transformer.

All distinct prefixes of a list stand in one input, each attending to its own ancestors only (tree
attention: Miao et al. 2024, SpecInfer, https://arxiv.org/abs/2305.09781, section 4.2). Last tokens
of candidates are predicted but never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lm.trie import Candidates, Forest, build

MOST_NODES = 1536  # of a tree: attention within it is quadratic, smaller ones share less
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A prefix tree of some candidates, its Q read nodes level by level, the root first.

    rows: (n,) the candidates; tokens: (Q,) ids, of which that of the root is the last token of a
    context and not known here; depths: (Q,) from 0; ancestors: (Q, Q) whether column is row or an
    ancestor of it; parents, words: (M,) read node and token of each prediction, by parent.
    """

    forest: Forest
    rows: Indices
    tokens: Indices
    depths: Indices
    ancestors: NDArray[np.bool_]
    parents: Indices
    words: Indices
    n_tokens: int

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(cls, candidates: Candidates, rows: Indices) -> Tree:
        """The tree of candidates `rows`; O(tokens + Q²)."""
        forest = build(candidates, rows, np.zeros(len(rows), np.int64), 1)
        read = np.unique(np.append(forest.parent, 0))
        place = np.full(len(forest), -1)
        place[read] = np.arange(len(read))
        depths = np.searchsorted(forest.levels, read, side="right") - 1
        ancestors = np.eye(len(read), dtype=np.bool_)
        ends = np.searchsorted(depths, np.arange(depths[-1] + 2))
        for begin, end in zip(ends[1:-1].tolist(), ends[2:].tolist(), strict=True):
            ancestors[begin:end] |= ancestors[place[forest.parent[read[begin:end]]]]
        parents, words = place[forest.parent[1:]], forest.token[1:]
        n_tokens = int(np.diff(candidates.offsets)[rows].sum())
        tokens = forest.token[read]
        return cls(forest, rows, tokens, depths, ancestors, parents, words, n_tokens)

    def sums(self, log_probs: torch.Tensor) -> NDArray[np.float64]:
        """Sums (n,) along the paths of the candidates, of log-probabilities (M,)."""
        leave = torch.zeros(len(self.forest), 1)
        return self.forest.sums(log_probs.float().cpu()[:, None], leave)[:, 0]


def trees_of(candidates: Candidates, most: int = MOST_NODES) -> list[Tree]:
    """Trees that together hold all candidates, of at most `most` nodes if they can be split.

    Candidates with common prefixes stay together: they are split in lexicographic order.
    """
    texts = candidates.texts()
    order = sorted(range(len(texts)), key=lambda row: texts[row].tolist())
    return _split(candidates, np.array(order, np.int64), most)


def _split(candidates: Candidates, rows: Indices, most: int) -> list[Tree]:
    tokens = np.diff(candidates.offsets)[rows].sum() + 1
    if tokens > 16 * most and len(rows) > 1:  # do not even try
        halves = np.array_split(rows, 2)
        return [tree for half in halves for tree in _split(candidates, half, most)]
    tree = Tree.of(candidates, rows)
    if len(tree) <= most or len(rows) == 1:
        return [tree]
    return [tree for half in np.array_split(rows, 2) for tree in _split(candidates, half, most)]


def path_of(tokens: Sequence[int]) -> tuple[Indices, Indices, NDArray[np.bool_]]:
    """Tokens (Q,), depths and ancestors of a plain sequence, a tree of one branch."""
    n = len(tokens)
    return np.array(tokens, np.int64), np.arange(n), np.tril(np.ones((n, n), np.bool_))
