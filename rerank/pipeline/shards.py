"""Shards of a run: its documents dealt by cost, so that several processes can score them.

The scores of a shard go to the score cache, which finds them by content: shards of other lists,
models or options are other entries, and cannot be mixed. Every process computes the same shards.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rerank.corpus.kbest import KBest


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several shards: its number, from 1 on, and how many there are."""

    number: int
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    def documents(self, costs: Sequence[int]) -> frozenset[int]:
        """Numbers of the documents of this shard, from 0 on, given the cost of each document."""
        return frozenset(deal(costs, self.total)[self.number - 1])


def deal(costs: Sequence[int], n: int) -> list[list[int]]:
    """Documents (numbers from 0) of n shards, longest first, each to the shard of least cost.

    Graham (1969), https://doi.org/10.1137/0117039: the largest sum is at most 4/3 − 1/(3n) of the
    least possible one. Ties go to the lower document and the lower shard. O(D log(D n)).
    """
    shards: list[list[int]] = [[] for _ in range(n)]
    loads = [(0, shard) for shard in range(n)]
    for document in sorted(range(len(costs)), key=lambda d: (-costs[d], d)):
        load, shard = loads[0]
        shards[shard].append(document)
        heapq.heapreplace(loads, (load + costs[document], shard))
    return shards


def cost(kbest: KBest, order: int | None) -> int:
    """Predicted cost of scoring a document: words of its candidates, for each context of theirs.

    At a bounded order above 0, the contexts of a sentence are the candidates of the one before;
    otherwise their number does not depend on the lists.
    """
    words = np.array([len(text.split()) + 1 for text in kbest.texts.to_list()], np.int64)
    if order:
        counts = kbest.counts[kbest.counts > 0]
        contexts = np.array([1, *counts], np.int64)[: len(counts)]
        words *= np.repeat(contexts, counts)
    return int(words.sum())
