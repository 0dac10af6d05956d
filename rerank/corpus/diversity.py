"""Diversity of a k-best list: edit distances between candidates, and a diverse choice of them.

The edit distance of two candidates is Levenshtein's over words: insertions, deletions and
substitutions cost 1 each. K candidates of a list, L words of all of them.

Myers (1999), https://doi.org/10.1145/316542.316550; Gonzalez (1985),
https://doi.org/10.1016/0304-3975(85)90224-5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit

Tokens: TypeAlias = Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class Diversity:
    """How different the candidates of one list are.

    distinct: number of different candidates; distance: mean edit distance of all pairs, in words;
    relative: mean over pairs of distance / length of the longer candidate, 0..1, and 0 for two
    empty candidates. Both are None for a list of one candidate.
    """

    candidates: int
    distinct: int
    distance: float | None
    relative: float | None


def diversity(candidates: Sequence[Tokens]) -> Diversity:
    """Diversity of one list. O(K L ⌈m/64⌉) time for candidates of m words, O(K + L) memory.

    100 candidates of 10 words take 0.5 to 0.8 ms on one core, of 30 words 1.1 to 1.8 ms.
    """
    distinct = len(set(map(tuple, candidates)))
    pairs = len(candidates) * (len(candidates) - 1) // 2
    if not pairs:
        return Diversity(len(candidates), distinct, None, None)
    distance, relative = _sums(*_numbered(candidates))
    return Diversity(len(candidates), distinct, distance / pairs, relative / pairs)


def farthest_first(candidates: Sequence[Tokens], k: int) -> NDArray[np.int64]:
    """Ranks (min(k, K),), rising, of candidates that are far from each other.

    Farthest-point clustering (Gonzalez 1985): the first candidate, then repeatedly the candidate
    whose distance to its nearest chosen candidate is largest; ties go to the lower rank. The
    largest distance from a candidate to its nearest chosen one is at most twice the minimum over
    all choices of k. The choice for k contains the choice for k − 1.
    O(k L ⌈m/64⌉) time for candidates of m words, O(K + L) memory.
    """
    if k >= len(candidates):
        return np.arange(len(candidates))
    ids, starts, n_words = _numbered(candidates)
    chosen = [0]
    nearest = _distances(0, 0, ids, starts, n_words)
    for _ in range(k - 1):
        nearest[chosen[-1]] = -1  # below the 0 of its duplicates
        chosen.append(int(nearest.argmax()))
        np.minimum(nearest, _distances(chosen[-1], 0, ids, starts, n_words), out=nearest)
    return np.sort(chosen)


def _numbered(candidates: Sequence[Tokens]) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Word numbers (L,), starts of the candidates in them (K+1,), size of the vocabulary."""
    vocabulary: defaultdict[Hashable, int] = defaultdict(count().__next__)
    numbers = [vocabulary[token] for tokens in candidates for token in tokens]
    starts = np.cumsum([0, *map(len, candidates)], dtype=np.int64)
    return np.array(numbers, np.int64), starts, len(vocabulary)


# The table of the dynamic program has a row for each word of the pattern and a column for each word
# of a text. 64 rows are computed at a time: the differences between neighbouring rows of a column
# are the bits of one number, computed from the differences along the row above the 64.
_BITS = 64
_ONE = np.uint64(1)
_NONE = np.uint64(0)


@njit(cache=True)
def _distances(
    pattern: int, first: int, ids: NDArray[np.int64], starts: NDArray[np.int64], n_words: int
) -> NDArray[np.int64]:
    """Edit distances (K − first,) of one candidate to those from `first` on."""
    steps = np.ones(len(ids), np.int8)  # along the last row so far, of all texts; row 0 rises by 1
    places = np.empty(n_words, np.uint64)  # bits of the rows at which each word stands
    begin, end = starts[pattern], starts[pattern + 1]
    for top in range(begin, end, _BITS):
        rows = ids[top : min(top + _BITS, end)]
        places[:] = 0
        for i in range(len(rows)):
            places[rows[i]] |= _ONE << np.uint64(i)
        for j in range(first, len(starts) - 1):
            text = slice(starts[j], starts[j + 1])
            _descend(ids[text], places, np.uint64(len(rows) - 1), steps[text])
    distances = np.empty(len(starts) - 1 - first, np.int64)
    for j in range(first, len(starts) - 1):
        total = end - begin  # down the column before the text, then along the last row
        for p in range(starts[j], starts[j + 1]):
            total += steps[p]
        distances[j - first] = total
    return distances


@njit(cache=True)
def _descend(
    text: NDArray[np.int64],
    places: NDArray[np.uint64],
    last: np.uint64,
    steps: NDArray[np.int8],
) -> None:
    """Replace the differences along the row above a block of rows by those along its row `last`.

    Myers (1999), the step of his block-based algorithm, for each word of the text.
    """
    rises, falls = ~_NONE, _NONE  # down the column: +1 and −1
    for p in range(len(text)):
        rise, fall = np.uint64(steps[p] > 0), np.uint64(steps[p] < 0)
        equal = places[text[p]]
        vertical = equal | falls
        equal |= fall
        horizontal = (((equal & rises) + rises) ^ rises) | equal
        up = falls | ~(horizontal | rises)
        down = rises & horizontal
        steps[p] = np.int8((up >> last) & _ONE) - np.int8((down >> last) & _ONE)
        up, down = (up << _ONE) | rise, (down << _ONE) | fall
        rises, falls = down | ~(vertical | up), up & vertical


@njit(cache=True)
def _sums(ids: NDArray[np.int64], starts: NDArray[np.int64], n_words: int) -> tuple[int, float]:
    """Sums over all pairs of the distances, and of the distances / longer lengths."""
    total, relative = 0, 0.0
    for i in range(len(starts) - 2):
        distances = _distances(i, i + 1, ids, starts, n_words)
        for j in range(i + 1, len(starts) - 1):
            distance = distances[j - i - 1]
            longer = max(starts[i + 1] - starts[i], starts[j + 1] - starts[j])
            total += distance
            if longer:
                relative += distance / longer
    return total, relative
