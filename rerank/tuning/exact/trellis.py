"""Viterbi search of a block of sentences at one step, forward and back.

Pairs of neighbouring candidates are lines in the step along a direction. A block is some sentences
in a row with candidates fixed on either side of it, and some candidates of each. The search finds
its best path, and how far the best path through each candidate is below: the max-marginals.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Trellis(NamedTuple):
    """Lines of all pairs of neighbouring candidates of T sentences: base + step · slope.

    offsets: (T+1,), candidates of sentence t are offsets[t]:offsets[t+1], at least one; starts:
    (T+1,), its pairs are starts[t]:starts[t+1], a row of them for each candidate before, for the
    first sentence one row. A pair's line includes that of its later candidate alone.
    """

    offsets: Ints
    starts: Ints
    base: Floats
    slope: Floats


class Block(NamedTuple):
    """Neighbouring sentences on an interval: candidates that may be best, paths best at its ends.

    first: number of the first sentence; left, right: choices next to the block, −1: there are none
    begins: (L+1,) of the sentences in `alive`: candidates, ascending
    gaps: (2, …) from the best score at each end down to the best through each of them
    paths: (2, L) choices that are best at each end; ends: (2,) steps
    """

    first: int
    left: int
    right: int
    begins: Ints
    alive: Ints
    gaps: Floats
    paths: Ints
    ends: Floats


class BlockSearch(NamedTuple):
    """Result of a search at one step: best score, best choices (L,), gaps of candidates."""

    score: float
    path: Ints
    gaps: Floats


@njit(cache=True, nogil=True)
def whole_block(trellis: Trellis, lo: float, hi: float) -> Block:
    """All candidates of all sentences; gaps and paths are not filled in."""
    length, n = len(trellis.offsets) - 1, trellis.offsets[-1]
    alive = np.empty(n, np.int64)
    for t in range(length):
        for i in range(trellis.offsets[t], trellis.offsets[t + 1]):
            alive[i] = i - trellis.offsets[t]
    paths = np.zeros((2, length), np.int64)
    return Block(0, -1, -1, trellis.offsets, alive, np.zeros((2, n)), paths, np.array([lo, hi]))


@njit(cache=True, nogil=True)
def place(trellis: Trellis, t: int, before: int, choice: int) -> int:
    """Place of a pair; `before` is −1 at the beginning of the document."""
    row = trellis.starts[t] + max(before, 0) * (trellis.offsets[t + 1] - trellis.offsets[t])
    return int(row + choice)


@njit(cache=True, nogil=True)
def best_of_block(trellis: Trellis, block: Block, step: float) -> BlockSearch:
    """Viterbi search forward, for the path, and back, for the gaps. O(Σ m_{t-1} m_t)."""
    begins, alive, length = block.begins, block.alive, len(block.begins) - 1
    sums = np.full(len(alive), -np.inf)
    pointers = np.empty(len(alive), np.int64)
    for x in range(begins[1]):
        at = place(trellis, block.first, block.left, alive[x])
        sums[x] = trellis.base[at] + step * trellis.slope[at]
    for i in range(1, length):
        for y in range(begins[i - 1], begins[i]):
            row = place(trellis, block.first + i, alive[y], 0)
            for x in range(begins[i], begins[i + 1]):
                at = row + alive[x]
                this = sums[y] + (trellis.base[at] + step * trellis.slope[at])
                if this > sums[x]:  # the first of equals: the tie rule
                    sums[x], pointers[x] = this, y
    back = _search_back(trellis, block, step)
    last, best = begins[length - 1], -np.inf
    for x in range(begins[length - 1], begins[length]):
        if sums[x] + back[x] > best:
            last, best = x, sums[x] + back[x]
    path = np.empty(length, np.int64)
    for i in range(length - 1, -1, -1):
        path[i], last = alive[last], pointers[last]
    return BlockSearch(best, path, np.maximum(best - (sums + back), 0.0))


@njit(cache=True, nogil=True)
def _search_back(trellis: Trellis, block: Block, step: float) -> Floats:
    """Best score after each alive candidate, the pair with the right neighbour included."""
    begins, alive, length = block.begins, block.alive, len(block.begins) - 1
    sums = np.full(len(alive), -np.inf)
    for x in range(begins[length - 1], begins[length]):
        sums[x] = 0.0
        if block.right >= 0:
            at = place(trellis, block.first + length, alive[x], block.right)
            sums[x] = trellis.base[at] + step * trellis.slope[at]
    for i in range(length - 1, 0, -1):
        for y in range(begins[i - 1], begins[i]):
            row = place(trellis, block.first + i, alive[y], 0)
            for x in range(begins[i], begins[i + 1]):
                at = row + alive[x]
                sums[y] = max(sums[y], sums[x] + (trellis.base[at] + step * trellis.slope[at]))
    return sums


@njit(cache=True, nogil=True)
def path_score(trellis: Trellis, block: Block, path: Ints, step: float) -> float:
    """Score of a path of a block, summed as `best_of_block` does."""
    total, before = 0.0, block.left
    for i in range(len(path)):
        at = place(trellis, block.first + i, before, path[i])
        total += trellis.base[at] + step * trellis.slope[at]
        before = path[i]
    if block.right >= 0:
        at = place(trellis, block.first + len(path), before, block.right)
        total += trellis.base[at] + step * trellis.slope[at]
    return total


@njit(cache=True, nogil=True)
def path_size(trellis: Trellis, block: Block, step: float) -> float:
    """Sum of the absolute values that the scores of a block's paths add up."""
    total = 0.0
    for side in range(2):
        before = block.left
        for i in range(len(block.paths[side])):
            at = place(trellis, block.first + i, before, block.paths[side, i])
            total += abs(trellis.base[at]) + abs(step * trellis.slope[at])
            before = block.paths[side, i]
    return total
