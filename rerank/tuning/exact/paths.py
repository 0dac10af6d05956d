"""The best path of a chain at every step along a direction: parametric Viterbi search.

Each path is a line in the step, the best score their upper envelope, convex. If one path is best at
both ends of an interval it is best all over. Else the lines of the two best paths cross inside:
search there; if nothing lies above the crossing the envelope breaks there, if a path does it
divides the interval (M. J. Eisner and D. G. Severance, "Mathematical techniques for efficient
record segmentation in large shared databases", 1976, https://doi.org/10.1145/321978.321982).

Two facts make that cheap. The best score of paths through a candidate is convex as well: where its
chord over an interval lies below the crossing, no best path of the interval takes the candidate.
And where a sentence has one candidate left, the sentences before and after it are independent: each
such block is searched alone, with its own crossing, which is nearer to its own envelope.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.compilation import njit

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
_NEAR = 2.0**-42  # paths whose scores differ by less, relative to sums of a document, are equal


class Trellis(NamedTuple):
    """Lines of all pairs of neighbouring candidates of S sentences: base + step · slope.

    offsets: (S+1,), candidates of sentence t are offsets[t]:offsets[t+1], at least one; starts:
    (S+1,), its pairs are starts[t]:starts[t+1], a row of them for each candidate before, for the
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
def places(trellis: Trellis, block: Block, path: Ints) -> Ints:
    """Places of the pairs along a path of a block; the last is that with the right neighbour."""
    found, before = np.empty(len(path) + (block.right >= 0), np.int64), block.left
    for i in range(len(found)):
        now = path[i] if i < len(path) else block.right
        found[i] = place(trellis, block.first + i, before, now)
        before = now
    return found


@njit(cache=True, nogil=True)
def path_score(trellis: Trellis, block: Block, path: Ints, step: float) -> float:
    """Score of a path of a block, summed as `best_of_block` does."""
    total = 0.0
    for at in places(trellis, block, path):
        total += trellis.base[at] + step * trellis.slope[at]
    return total


@njit(cache=True, nogil=True)
def path_size(trellis: Trellis, block: Block, step: float) -> float:
    """Sum of the absolute values that the scores of a block's paths add up."""
    total = 0.0
    for side in range(2):
        for at in places(trellis, block, block.paths[side]):
            total += abs(trellis.base[at]) + abs(step * trellis.slope[at])
    return total


class Breaks(NamedTuple):
    """Where the best path changes, and to which candidates.

    first: (S,) choices at the lower end
    steps, sentences, choices: (x,) changes, those of one of the m breaks together; of each
    sentence, not altogether, with ascending steps
    number: m; complete: whether these are all breaks; False where there are more than the limit
    """

    first: Ints
    steps: Floats
    sentences: Ints
    choices: Ints
    number: int
    complete: bool


@njit(cache=True, nogil=True)
def parametric_viterbi(trellis: Trellis, lo: float, hi: float, most: int) -> Breaks:
    """Best paths of a trellis for all steps from lo to hi; no more than about `most` breaks.

    With lo = hi it is Viterbi search at one step. Of equal paths the one is taken that decoders
    take (`decoders.problem`), as far as sums are exact. O(Σ m_{t-1} m_t) for each of one or two
    searches a break, m: candidates of a block alive around it; two over all pairs come before.
    """
    steps, sentences, choices, number = [0.0], [0], [0], 0  # a first item says the type
    whole = whole_block(trellis, lo, hi)
    scale = 0.0
    for side in range(1 if lo == hi else 2):
        found = best_of_block(trellis, whole, whole.ends[side])
        whole.paths[side], whole.gaps[side] = found.path, found.gaps
        scale = max(scale, path_size(trellis, whole, whole.ends[side]))
    near = _NEAR * scale
    waiting = [whole]
    while lo < hi and len(waiting) and number < most:
        block = waiting.pop()
        c, slack = _crossing(trellis, block)
        if slack < 0:
            continue
        left = _pruned(block, c, slack + near)
        ranges = _undecided(left)
        if len(ranges) != 2 or ranges[1] - ranges[0] < len(left.begins) - 1:
            for r in range(len(ranges) - 2, -1, -2):
                waiting.append(_part(left, ranges[r], ranges[r + 1]))
            continue
        if len(left.alive) > len(left.begins):  # else the two paths are all there are
            found = best_of_block(trellis, left, c)
            gain = found.score - max(
                path_score(trellis, left, left.paths[0], c),
                path_score(trellis, left, left.paths[1], c),
            )
            if gain > near and block.ends[0] < c < block.ends[1]:
                waiting.append(_half(left, found, c, 1))
                waiting.append(_half(left, found, c, 0))  # next: breaks come in order
                continue
        number += 1
        for i in range(len(left.begins) - 1):
            if left.paths[0, i] != left.paths[1, i]:
                steps.append(c)
                sentences.append(left.first + i)
                choices.append(left.paths[1, i])
    return Breaks(
        whole.paths[0],
        np.array(steps)[1:],
        np.array(sentences)[1:],
        np.array(choices)[1:],
        number,
        lo == hi or len(waiting) == 0,
    )


@njit(cache=True, nogil=True)
def _crossing(trellis: Trellis, block: Block) -> tuple[float, float]:
    """Where the lines of a block's two paths cross, and the height of the best scores' chord there.

    The height is above the crossing; −1 where the paths are one.
    """
    falls = rises = 0.0
    one = places(trellis, block, block.paths[0])
    other = places(trellis, block, block.paths[1])
    for i in range(len(one)):
        if one[i] != other[i]:
            falls += trellis.base[one[i]] - trellis.base[other[i]]
            rises += trellis.slope[other[i]] - trellis.slope[one[i]]
    if (one == other).all():
        return 0.0, -1.0
    a, b = block.ends
    if rises <= 0:  # as good at both ends, up to rounding
        return b, 0.0
    c = min(max(falls / rises, a), b)
    return c, rises * (b - c) * (c - a) / (b - a)


@njit(cache=True, nogil=True)
def _pruned(block: Block, c: float, slack: float) -> Block:
    """The block without the candidates whose chord at c is more than `slack` below the best's."""
    a, b = block.ends
    share = (c - a) / (b - a)
    begins, alive = np.zeros_like(block.begins), np.empty_like(block.alive)
    gaps, m = np.empty_like(block.gaps), 0
    for i in range(len(begins) - 1):
        for x in range(block.begins[i], block.begins[i + 1]):
            k = block.alive[x]
            chord = (1 - share) * block.gaps[0, x] + share * block.gaps[1, x]
            if chord <= slack or k == block.paths[0, i] or k == block.paths[1, i]:
                alive[m], gaps[0, m], gaps[1, m] = k, block.gaps[0, x], block.gaps[1, x]
                m += 1
        begins[i + 1] = m
    return Block(
        block.first,
        block.left,
        block.right,
        begins,
        alive[:m],
        gaps[:, :m].copy(),
        block.paths,
        block.ends,
    )


@njit(cache=True, nogil=True)
def _undecided(block: Block) -> list[int]:
    """First and last sentence + 1, in the block, of each run of sentences with a choice left."""
    ranges, run = [0 for _ in range(0)], False
    for i in range(len(block.begins) - 1):
        if (block.begins[i + 1] - block.begins[i] > 1) != run:
            run = not run
            ranges.append(i)
    if run:
        ranges.append(len(block.begins) - 1)
    return ranges


@njit(cache=True, nogil=True)
def _part(block: Block, first: int, end: int) -> Block:
    """Sentences first … end − 1 of a block, where those next to them are decided."""
    x, y = block.begins[first], block.begins[end]
    return Block(
        block.first + first,
        block.paths[0, first - 1] if first else block.left,
        block.paths[0, end] if end < len(block.begins) - 1 else block.right,
        block.begins[first : end + 1] - x,
        block.alive[x:y].copy(),
        block.gaps[:, x:y].copy(),
        block.paths[:, first:end].copy(),
        block.ends,
    )


@njit(cache=True, nogil=True)
def _half(block: Block, found: BlockSearch, c: float, side: int) -> Block:
    """The block before c (side 0) or after it (side 1), given what was found there."""
    gaps, paths, ends = block.gaps.copy(), block.paths.copy(), block.ends.copy()
    gaps[1 - side], paths[1 - side], ends[1 - side] = found.gaps, found.path, c
    return Block(block.first, block.left, block.right, block.begins, block.alive, gaps, paths, ends)
