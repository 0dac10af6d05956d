"""Whether two texts have the same sentence at the same line.

A line that one text lacks moves all later ones, and a sorted copy has no line at its place: scores
are then those of other sentences. Lines are compared by their character trigrams, which needs no
words, with the lines at the same place and at places beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from rerank.notices import Notices

_MOST_LINES = 1000  # lines of a text that are compared, at equal distances
_LONGEST = 1000  # characters of a line
_MOVES = (1, -1, 2, -2)
_FEWEST, _FEWEST_MOVED = 20, 10  # lines, for what may be chance
_MEAN_GAIN = 0.1  # of similarity, in lines that fit another place
_LEAST_EXCESS = 0.03  # of similarity at the same line over that of any two lines: 0.26 at BLEU 6.5


def note_alignment(
    hypotheses: Sequence[bytes],
    references: Sequence[bytes],
    notices: Notices,
    *,
    source: str = "",
    of_list: bool = False,
) -> None:
    """Add a notice where hypotheses fit references of other lines, or hardly any.

    references: one of each hypothesis; of_list: whether the hypotheses are those of a k-best list.
    O(lines × bytes of a line) time for at most 1000 lines.
    """
    n = min(len(hypotheses), len(references))
    step = -(-n // _MOST_LINES)
    if n < _FEWEST or 2 * len({*references[:n:step]}) < n // step:  # lines that are alike
        return
    places = [i for i in range(0, n, step) if hypotheses[i] and references[i]]
    own = [_trigrams(hypotheses[i]) for i in places]

    def similarities(move: int) -> list[float]:
        others = (_trigrams(references[(i + move) % n]) for i in places)
        return [2 * len(a & b) / max(1, len(a) + len(b)) for a, b in zip(own, others, strict=True)]

    here = similarities(0)
    for move in _MOVES:
        gains = [there - own for own, there in zip(here, similarities(move), strict=True)]
        gain, start, stop = _largest_sum(gains)
        if stop - start >= _FEWEST_MOVED and gain >= _MEAN_GAIN * (stop - start):
            first, last = places[start], places[stop - 1]
            cure = "is a line missing or too many before these? align both files"
            if step == 1 and last >= n - 3 and not of_list:
                edits = {1: f"{first + 1}s/^/\\n/; $d", -1: f"{max(1, first)}d; $s/$/\\n/"}.get(
                    move, ""
                )
                cure += f", as hypotheses by: sed '{edits}'" if edits else ""
            notices.add(
                f"hypotheses of lines {first + 1} to {last + 1} fit references {abs(move)} line"
                f"{'s' * (abs(move) > 1)} {'later' if move > 0 else 'earlier'}; {cure}",
                source=source,
                count=last - first + 1,
            )
            return
    any_two = sum(similarities(n // 2)) / max(1, len(here))
    if sum(here) / max(1, len(here)) - any_two < _LEAST_EXCESS:
        notices.add(
            "hypotheses are no more like the references of their lines than like others; are both "
            "files in the same order and language?",
            source=source,
            count=n,
        )


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
