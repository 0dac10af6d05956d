"""Edit distances over words: of the candidates of a list, and of a text to its references.

Levenshtein's distance: insertions, deletions and substitutions cost 1 each. Of the candidates of a
list it gives the diversity. K candidates of a list, L words of all of them.

A text of a whole document is parted into segments by the least sum of the distances between each
and the nearest of its references, as mwerSegmenter does (Matusov et al. 2005, section 3,
https://aclanthology.org/2005.iwslt-1.19).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise, zip_longest
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit

Tokens: TypeAlias = Sequence[Hashable]


@dataclass(frozen=True, slots=True)
class Diversity:
    """How different the candidates of a list are.

    distance: mean edit distance of all pairs, in words; relative: mean over pairs of distance /
    length of the longer candidate, 0..1, and 0 for two empty ones. None for a single candidate.
    """

    candidates: int
    distinct: int
    distance: float | None
    relative: float | None


def diversity(candidates: Sequence[Tokens]) -> Diversity:
    """Diversity of a list. O(L²) time, O(L) memory."""
    distinct = len(set(map(tuple, candidates)))
    pairs = len(candidates) * (len(candidates) - 1) // 2
    if not pairs:
        return Diversity(len(candidates), distinct, None, None)
    vocabulary: defaultdict[Hashable, int] = defaultdict(count().__next__)
    words = np.array([vocabulary[word] for tokens in candidates for word in tokens], np.int64)
    distance, relative = _sums(words, np.cumsum([0, *map(len, candidates)], dtype=np.int64))
    return Diversity(len(candidates), distinct, distance / pairs, relative / pairs)


@njit(cache=True)
def _sums(words: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[int, float]:
    """Sums over all pairs of the distances, and of the distances / longer lengths.

    words: (L,) as numbers; starts: (K+1,) of the candidates among them.
    """
    total, relative = 0, 0.0
    for i in range(len(starts) - 1):
        ours = words[starts[i] : starts[i + 1]]
        for j in range(i):
            others = words[starts[j] : starts[j + 1]]
            distance = _distance(ours, others)
            total += distance
            relative += distance / max(len(ours), len(others), 1)
    return total, relative


@njit(cache=True)
def _distance(ours: NDArray[np.int64], others: NDArray[np.int64]) -> int:
    """Levenshtein's distance of words, by one row of the table of the dynamic program."""
    row = np.arange(len(others) + 1)
    for i in range(len(ours)):
        diagonal, row[0] = row[0], i + 1
        for j in range(1, len(row)):
            replaced = diagonal + (ours[i] != others[j - 1])
            diagonal = row[j]
            row[j] = min(replaced, row[j - 1] + 1, diagonal + 1)
    return int(row[-1])


# Segments of a text

Numbers = NDArray[np.int64]
# Thai, Lao, Burmese, Khmer; kana, Han, and their punctuation
_UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef"
    "\U00020000-\U0003ffff]"
)
_WORD = re.compile(rf"{_UNSPACED}|(?:(?!{_UNSPACED})\w)+|[^\w\s]")
_CLOSING = "\"'”’»」』）)\\]"
_SENTENCE_END = re.compile(rf"[.!?…。！？｡][{_CLOSING}\s]*$")
_BEHIND = re.compile(rf"[{_CLOSING}.,!?;:…。！？｡、，；：]")
_FAR = 1 << 60
EDIT = 10  # cost of an edit; other costs are those of beginning a segment at a word
_NEW_LINE, _NEW_SENTENCE, _WITHIN_SENTENCE, _NEVER = 0, 1, 5 * EDIT, -1
_LONG = 7  # words of a sentence that does not come again by chance
_ENDING = 12  # characters in which the end of a sentence is looked for


@dataclass(frozen=True, slots=True)
class Parted:
    """The segments (K,) of a text, and the numbers of those that need a look.

    omitted: empty, though their references are not; merged: likewise, but a segment beside them has
    more words than its own reference by half of theirs; repeated: with a sentence that the text has
    more often than the references.
    """

    segments: list[str]
    omitted: list[int]
    merged: list[int]
    repeated: list[int]


def parted(text: str, references: Sequence[Sequence[str]]) -> Parted:
    """The segments of a text, as many as there are: references[k] of segment k, one or more."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    matches = list(_WORD.finditer(text))
    words = np.array([numbers[match[0].casefold()] for match in matches], np.int64)
    targets: list[int] = []
    spans = np.full((len(references), max(map(len, references)), 2), -1)
    closed = np.zeros(len(references), np.bool_)
    for k, lines in enumerate(references):
        for r, line in enumerate(lines):
            line_words = [numbers[word.casefold()] for word in _WORD.findall(line)]
            spans[k, r] = len(targets), len(targets) + len(line_words)
            targets += line_words
        ends = sum(_SENTENCE_END.search(line[-_ENDING:]) is not None for line in lines)
        closed[k] = 2 * ends > len(lines)
    costs = _costs(text, matches)
    starts = segment_starts(words, costs, np.array(targets, np.int64), spans, closed)
    places = [matches[i].start() if i < len(matches) else len(text) for i in starts]
    segments = [" ".join(text[a:b].split()) for a, b in pairwise([0, *places[1:], len(text)])]
    sizes = np.diff([*starts, len(matches)])
    excess = sizes - (spans[:, :, 1] - spans[:, :, 0]).max(axis=1)
    empty = np.flatnonzero((sizes == 0) & (excess < 0)).tolist()
    merged = [
        k
        for k in empty
        if any(
            2 * excess[beside[0]] >= -excess[k]
            for beside in (np.flatnonzero(sizes[:k])[::-1], k + np.flatnonzero(sizes[k:]))
            if len(beside)
        )
    ]
    repeated = _repeated(text, list(map("\n".join, zip_longest(*references, fillvalue=""))))
    return Parted(
        segments,
        [k for k in empty if k not in merged],
        merged,
        sorted({bisect_right(starts, word) - 1 for word in repeated}),
    )


def _repeated(text: str, references: Sequence[str]) -> list[int]:
    """First words of the sentences that a text has more often than each of the references."""
    most: Counter[tuple[str, ...]] = Counter()
    for reference in references:
        most |= Counter(sentence for _, sentence in _sentences(reference))
    seen: Counter[tuple[str, ...]] = Counter()
    places = []
    for place, sentence in _sentences(text):
        seen[sentence] += 1
        if len(sentence) > _LONG and seen[sentence] > max(1, most[sentence]):
            places.append(place)
    return places


def _sentences(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The number of the first word, and the words, of each sentence or line of a text."""
    words = list(_WORD.finditer(text))
    costs = _costs(text, words)
    starts = np.flatnonzero((costs == _NEW_LINE) | (costs == _NEW_SENTENCE)).tolist()
    for start, stop in pairwise(starts):
        yield start, tuple(word[0].casefold() for word in words[start:stop])


def _costs(text: str, words: Sequence[re.Match[str]]) -> Numbers:
    """What it costs to begin a segment at each word, and at the end: (L + 1,)."""
    costs = np.full(len(words) + 1, _NEW_LINE)
    for j, (before, word) in enumerate(pairwise(words), 1):
        between = text[before.end() : word.start()]
        spaced = between or re.search(_UNSPACED, before[0] + word[0])
        if not spaced or (not between and _BEHIND.match(word[0])):
            costs[j] = _NEVER
        elif "\n" not in between:
            ends = _SENTENCE_END.search(text, max(0, before.end() - _ENDING), before.end())
            costs[j] = _NEW_SENTENCE if ends else _WITHIN_SENTENCE
    return costs


def segment_starts(
    words: Numbers, costs: Numbers, targets: Numbers, spans: Numbers, closed: NDArray[np.bool_]
) -> list[int]:
    """The first word of each segment (K,) of words (L,), as numbers.

    costs: (L + 1,) of beginning a segment at each word behind a segment that is closed, negative
    where none begins; an edit costs `EDIT`. targets: words of the references; spans: (K, R, 2)
    begin and end in them of reference r of segment k, negative for a reference that there is not.
    """
    starts = [0] * len(spans)
    tasks = [(0, len(words), 0, len(spans))]
    while tasks:
        begin, end, first, last = tasks.pop()
        if last - first < 2 or begin == end:
            starts[first:last] = [begin] * (last - first)
            continue
        middle = (first + last) // 2
        part = words[begin:end], costs[begin : end + 1], targets, spans[first:last]
        place = begin + _middle(*part, closed[first:last], middle - first)
        tasks += [(begin, place, first, middle), (place, end, middle, last)]
    return starts


@njit(cache=True)
def _middle(
    words: Numbers,
    costs: Numbers,
    targets: Numbers,
    spans: Numbers,
    closed: NDArray[np.bool_],
    middle: int,
) -> int:
    """The first word of segment `middle` in a segmentation of least cost."""
    n, edit = len(words), EDIT
    total = np.full(n + 1, _FAR)  # least cost of the segments so far, up to each word
    total[0] = 0
    origin = np.zeros(n + 1, np.int64)  # first word of the middle segment then
    row, origin_of = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    for k in range(len(spans)):
        if k:
            for j in range(n + 1):
                if costs[j] < 0:
                    total[j] = _FAR
                elif closed[k - 1]:
                    total[j] += costs[j]
        if k == middle:
            origin[:] = np.arange(n + 1)
        best, best_origin = np.full(n + 1, _FAR), np.zeros(n + 1, np.int64)
        for r in range(spans.shape[1]):
            begin, end = spans[k, r]
            if begin < 0:
                continue
            row[:], origin_of[:] = total, origin
            for j in range(1, n + 1):
                if row[j - 1] + edit < row[j]:
                    row[j], origin_of[j] = row[j - 1] + edit, origin_of[j - 1]
            for i in range(begin, end):
                diagonal, of_diagonal = row[0], origin_of[0]
                row[0] += edit
                for j in range(1, n + 1):
                    cost, of_cost = diagonal, of_diagonal
                    diagonal, of_diagonal = row[j], origin_of[j]
                    if words[j - 1] != targets[i]:
                        cost += edit
                    if diagonal + edit < cost:
                        cost, of_cost = diagonal + edit, of_diagonal
                    if row[j - 1] + edit < cost:
                        cost, of_cost = row[j - 1] + edit, origin_of[j - 1]
                    row[j], origin_of[j] = cost, of_cost
            for j in range(n + 1):
                if row[j] < best[j]:
                    best[j], best_origin[j] = row[j], origin_of[j]
        total, origin = best, best_origin
    return int(origin[n])
