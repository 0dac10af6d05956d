"""Whether two texts have the same sentence at the same line.

A line that one text lacks moves all later ones, and a sorted copy has no line at its place: scores
are then those of other sentences. Lines are compared by their character trigrams, which needs no
words, with the lines at the same place, at places beside it, and with those that share rare ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, permutations
from statistics import fmean
from typing import Any, TypeAlias

from rerank.errors import shown
from rerank.notices import Notices

_MOST_LINES = 1000
_LONGEST = 1000  # characters of a line
_MOVES = (1, -1, 2, -2)
_FEWEST, _FEWEST_MOVED = 20, 10  # lines, for what may be chance
_MEAN_GAIN = 0.1  # of similarity, in lines that fit another place
_LEAST_EXCESS = 0.03  # of similarity at the same line over that of any two lines: 0.26 at BLEU 6.5
_FEWEST_ELSEWHERE = 0.05  # share of the lines that fit other lines
_MUCH_MORE = 0.3  # by which these are more similar there
_FEWEST_TRIGRAMS = 20
_RARE = 5  # lines with a trigram
_MOVED_TOGETHER = 0.8  # share of these that are at the same distance
_REPEATED, _FEWEST_REPEATED = 0.02, 5  # share of the lines, and lines, with one text
_DIFFERENT = 0.8  # of the lines with it have another text beside it


Trigrams: TypeAlias = Callable[[bytes], set[str]]


def remembered_trigrams() -> Trigrams:
    """Trigrams of a line, which are remembered of the last 1000 lines."""
    return lru_cache(_MOST_LINES)(_trigrams)


def note_alignment(
    texts: Mapping[str, Sequence[bytes]],
    notices: Notices,
    *,
    source: str = "",
    most: int = _MOST_LINES,
    trigrams: Trigrams | None = None,
) -> None:
    """Add a notice where lines of a text fit other lines of the other one, or hardly any.

    texts: by their names in messages; most: number of lines of the first, at equal distances, that
    are compared; trigrams: of the other text, from `remembered_trigrams`, where several texts are
    compared with it. O(most × bytes of a line) time, and O(bytes) for lines that are repeated.
    """
    _note_repeated(texts, notices, source)
    (name, lines), (other_name, others) = texts.items()
    n = min(len(lines), len(others))
    most = min(most, _MOST_LINES)
    step = -(-n // most) or 1
    places = [i for i in range(0, n, step) if lines[i] and others[i]]
    if n < _FEWEST or not places or 2 * len({*others[:n:step]}) < n // step:  # lines are alike
        return
    ours = [_trigrams(lines[i]) for i in places]
    pair = _Pair(places, ours, others[:n], trigrams or remembered_trigrams())
    here, elsewhere = pair.similarities(0), pair.elsewhere()
    (usual, together), *_ = Counter(j - i for i, j in elsewhere.items()).most_common(1) or [(0, 0)]
    moves = _MOVES if usual in (0, *_MOVES) else (usual, *_MOVES)
    called: dict[str, Any] = {"source": source, "ours": name, "theirs": other_name}
    if together < _MOVED_TOGETHER * len(elsewhere):
        i, j = next(iter(elsewhere.items()))
        notices.add("other-order", count=len(elsewhere), at=i + 1, other=j + 1, **called)
    elif moved := next(filter(None, (pair.moved(move, here) for move in moves)), None):
        move, first, last = moved
        where = f"{abs(move)} line{'s' * (abs(move) > 1)} {'later' if move > 0 else 'earlier'}"
        called |= {"first": first + 1, "last": last + 1, "where": where}
        notices.add("shifted-lines", count=last - first + 1, **called)
    elif fmean(here) - fmean(pair.similarities(n // 2)) < _LEAST_EXCESS:
        notices.add("unlike-lines", count=n, **called)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two texts: trigrams of the lines at some places of the first, and all lines of the other."""

    places: Sequence[int]
    ours: Sequence[set[str]]
    others: Sequence[bytes]
    trigrams: Trigrams

    def similarities(self, move: int) -> list[float]:
        """Those of each line with the other text's so many lines later."""
        n = len(self.others)
        moved = (self.trigrams(self.others[(i + move) % n]) for i in self.places)
        return [_similarity(*pair) for pair in zip(self.ours, moved, strict=True)]

    def moved(self, move: int, here: Sequence[float]) -> tuple[int, int, int] | None:
        """The move, and the first and last of the lines in a row that fit there much better.

        here: similarities at the same place.
        """
        pairs = zip(self.similarities(move), here, strict=True)
        gain, start, stop = _largest_sum([there - similarity for there, similarity in pairs])
        if stop - start >= _FEWEST_MOVED and gain >= _MEAN_GAIN * (stop - start):
            return move, self.places[start], self.places[stop - 1]
        return None

    def elsewhere(self) -> dict[int, int]:
        """For lines that are much more like another one: its place; none if they are few.

        Short lines may be alike by chance. Lines that share rare trigrams are compared.
        """
        others = {i: self.trigrams(self.others[i]) for i in self.places}
        lines = Counter(chain.from_iterable(others.values()))
        rare = {trigram for trigram, n in lines.items() if n <= _RARE}
        where: dict[str, list[int]] = {}
        for j, other in others.items():
            for trigram in other & rare:
                where.setdefault(trigram, []).append(j)
        moved: dict[int, int] = {}
        for i, text in zip(self.places, self.ours, strict=True):
            shared = Counter(chain.from_iterable(where[trigram] for trigram in text & rare))
            del shared[i]
            if len(text) >= _FEWEST_TRIGRAMS and shared:
                j = max(shared, key=lambda j: (shared[j], -j))
                if _similarity(text, others[j]) > _similarity(text, others[i]) + _MUCH_MORE:
                    moved[i] = j
        enough = len(moved) >= max(_FEWEST_MOVED, _FEWEST_ELSEWHERE * len(self.places))
        return moved if enough else {}


def _note_repeated(texts: Mapping[str, Sequence[bytes]], notices: Notices, source: str) -> None:
    """Add a notice of a line that stands beside many different ones of the other text."""
    pairs = [*zip(*texts.values(), strict=False)]
    for (name, other), place in zip(permutations(texts), (0, 1), strict=True):
        beside: dict[bytes, list[bytes]] = {}
        for pair in pairs:
            beside.setdefault(pair[place].strip(), []).append(pair[1 - place])
        beside.pop(b"", None)
        line, others = max(beside.items(), key=lambda item: len(item[1]), default=(b"", []))
        enough = len(others) >= max(_FEWEST_REPEATED, _REPEATED * len(pairs))
        if enough and len({*others}) >= _DIFFERENT * len(others):
            notices.add(
                "repeated-line",
                source=source,
                count=len(others),
                ours=name,
                theirs=other,
                text=shown(line),
            )


def _similarity(a: set[str], b: set[str]) -> float:
    """The share of trigrams that two texts have in common (Dice's coefficient)."""
    return 2 * len(a & b) / max(1, len(a) + len(b))


def _trigrams(line: bytes) -> set[str]:
    """The character trigrams of a line in lower case, without its white space."""
    text = "".join(line[:_LONGEST].decode(errors="replace").lower().split())
    return {text[i : i + 3] for i in range(max(1, len(text) - 2))}


def _largest_sum(values: Sequence[float]) -> tuple[float, int, int]:
    """The largest sum of values in a row, and where they begin and end (Kadane's algorithm)."""
    best, total, start = (0.0, 0, 0), 0.0, 0
    for i, value in enumerate(values):
        total += value
        if total <= 0:
            total, start = 0.0, i + 1
        elif total > best[0]:
            best = total, start, i + 1
    return best
