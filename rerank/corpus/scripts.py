"""Which scripts the letters of texts are of, and how much of a text is repeated, in one pass.

n texts, S scripts. O(bytes) time.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import TextColumn
from rerank.files.compilation import njit

Integers = NDArray[np.int64]
_RANGES = """
Latin 41-5A 61-7A C0-D6 D8-F6 F8-24F 1E00-1EFF
Greek 370-3FF 1F00-1FFF
Cyrillic 400-52F
Armenian 531-58F
Hebrew 590-5FF
Arabic 600-6FF 750-77F 8A0-8FF FB50-FEFC
Devanagari 900-97F
Bengali 980-9FF
Gurmukhi A00-A7F
Gujarati A80-AFF
Oriya B00-B7F
Tamil B80-BFF
Telugu C00-C7F
Kannada C80-CFF
Malayalam D00-D7F
Sinhala D80-DFF
Thai E00-E7F
Lao E80-EFF
Tibetan F00-FFF
Burmese 1000-109F
Georgian 10A0-10FF
Ethiopic 1200-137F
Khmer 1780-17FF
kana 3041-30FF 31F0-31FF
Hangul 1100-11FF 3130-318F AC00-D7AF
Han 3400-4DBF 4E00-9FFF F900-FAFF 20000-2FFFF
"""
SCRIPTS = {  # ranges of code points of the letters, both ends included
    name: [tuple(int(end, 16) for end in ends.split("-")) for ends in ranges]
    for name, *ranges in map(str.split, _RANGES.strip().splitlines())
}
_KANA, _HAN = map([*SCRIPTS].index, ("kana", "Han"))
_UNSEGMENTED = [*map([*SCRIPTS].index, ("Thai", "Lao", "Burmese", "Khmer", "kana", "Han"))]
_UNUSUAL = b"<>[]`\xc3\xc4"  # bytes of which tokens of tools have one
_NEARLY_ALL = 0.8  # of the letters
_FEW_LETTERS = 4  # of another script, that say nothing
_LEAST_RUN = 16  # tokens of a phrase that stands there three times or more, together
_LONGEST_PHRASE = 200  # tokens
_LEAST_TOKENS = 16  # of a text whose trigrams are counted
_LONG_TOKEN = 24  # characters of a token in which characters may be repeated


@cache
def _scripts() -> NDArray[np.int8]:
    """The script of each code point below 0x30000, by its place in `SCRIPTS`; −1 of none."""
    table = np.full(0x30000, -1, np.int8)
    for place, ranges in enumerate(SCRIPTS.values()):
        for first, last in ranges:
            table[first : last + 1] = place
    return table


def measured(texts: TextColumn) -> tuple[Integers, NDArray[np.float64], NDArray[np.bool_]]:
    """Letters of each script (n, S), how much is repeated (n, 2), and which have unusual bytes.

    Repeated, 0 to 1, are the longest run of one phrase, and trigrams that the text has before.
    """
    blob = np.frombuffer(texts.blob, np.uint8)
    unsegmented = np.zeros(len(SCRIPTS) + 1, np.bool_)  # the last: of no script, at place −1
    unsegmented[list(_UNSEGMENTED)] = True
    letters = np.zeros((len(texts), len(SCRIPTS)), np.int64)
    repeated = np.zeros((len(texts), 2))
    unusual = np.zeros(256, np.bool_)
    unusual[list(_UNUSUAL)] = True
    found = np.zeros(len(texts), np.bool_)
    _measure(blob, texts.spans, _scripts(), unsegmented, unusual, letters, repeated, found)
    return letters, repeated, found


@njit(cache=True)
def _measure(
    blob: NDArray[np.uint8],
    spans: Integers,
    scripts: NDArray[np.int8],
    unsegmented: NDArray[np.bool_],
    unusual: NDArray[np.bool_],
    letters: Integers,
    repeated: NDArray[np.float64],
    found: NDArray[np.bool_],
) -> None:
    """Letters of each text by script, and the shares of its tokens that are repetitions.

    Tokens are words, and characters of scripts without spaces.
    """
    sizes = spans[:, 1] - spans[:, 0]
    tokens = np.zeros(sizes.max() + 1 if len(sizes) else 1, np.uint64)
    for row in range(len(spans)):
        n, size, same = 0, 0, 0
        hashed, before, before_that = np.uint64(0), np.int64(0), np.int64(0)
        place, stop = spans[row, 0], spans[row, 1]
        while place < stop:
            byte = np.int64(blob[place])
            found[row] |= unusual[byte]
            width = 1 if byte < 0xC0 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            point = byte if width == 1 else byte & (0x7F >> width)
            for i in range(place + 1, min(place + width, stop)):
                point = (point << 6) | (np.int64(blob[i]) & 0x3F)
            place += width
            script = scripts[point] if point < len(scripts) else -1
            if script >= 0:
                letters[row, script] += 1
            alone = unsegmented[script]
            if (point == 32 or alone) and size:
                tokens[n] = hashed
                n, size, same, hashed = n + 1, 0, 0, np.uint64(0)
            if alone:
                tokens[n] = np.uint64(point)
                n += 1
            elif point != 32:
                hashed = (hashed ^ np.uint64(point)) * np.uint64(1099511628211)
                same = same + 1 if point in (before, before_that) else 0
                if same >= _LONG_TOKEN:  # as of "hahaha…"
                    repeated[row, 0] = 1.0
                before, before_that = point, before
                size += 1
        if size:
            tokens[n] = hashed
            n += 1
        repeated[row, 0] = max(repeated[row, 0], _longest_run(tokens[:n]) / max(1, n))
        repeated[row, 1] = _old_trigrams(tokens[:n]) / max(1, n)


@njit(cache=True)
def _longest_run(tokens: NDArray[np.uint64]) -> int:
    """Tokens of the longest run of a phrase that stands there three times or more; 0: none."""
    n, most = len(tokens), 0
    for period in range(1, min(n // 3, _LONGEST_PHRASE) + 1):
        run = 0
        for i in range(period, n):
            run = run + 1 if tokens[i] == tokens[i - period] else 0
            if run >= 2 * period and run + period >= _LEAST_RUN:
                most = max(most, run + period)
    return most


@njit(cache=True)
def _old_trigrams(tokens: NDArray[np.uint64]) -> int:
    """How many trigrams of a text of `_LEAST_TOKENS` or more stand there before."""
    n, old = len(tokens) - 2, 0
    if len(tokens) >= _LEAST_TOKENS:
        trigrams, factor = np.zeros(n, np.uint64), np.uint64(0x9E3779B97F4A7C15)
        for i in range(n):
            trigrams[i] = ((tokens[i] * factor ^ tokens[i + 1]) * factor) ^ tokens[i + 2]
        trigrams.sort()
        old = int((trigrams[1:] == trigrams[:-1]).sum())
    return old


def other_script(letters: Integers, total: Integers) -> NDArray[np.bool_]:
    """Which candidates (n,) are of another script than nearly all letters of the lists, (S,)."""
    groups = letters.copy()
    total = total.copy()
    japanese = total[_KANA] > 0.1 * (total[_KANA] + total[_HAN])
    if japanese:  # Han alone is Chinese, if it is long
        groups[:, _KANA] += np.where(groups[:, _KANA] > 0, groups[:, _HAN], 0)
        groups[:, _HAN] = np.where(letters[:, _KANA] > 0, 0, groups[:, _HAN])
        total[_KANA] += total[_HAN]
        total[_HAN] = 0
    own = int(total.argmax())
    if total[own] < _NEARLY_ALL * max(1, total.sum()):
        return np.zeros(len(letters), np.bool_)
    others = groups.sum(axis=1) - groups[:, own]
    few = np.where(groups[:, _HAN] > 0, 2 * _FEW_LETTERS if japanese else 2, _FEW_LETTERS)
    most: NDArray[np.bool_] = (others >= few) & (2 * others > groups.sum(axis=1))
    return most
