"""Compiled readers of tokens: decimal numbers, and words in a table, found by their bytes.

Numbers and lines that they cannot read are left to a grammar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import TextColumn
from rerank.files.compilation import njit

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_BLANK, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _E = b" +-.09e"
FREE = -1
GOLDEN = -7046029254386353131  # 2**64 / golden ratio, odd, as int64: multiplicative hashing
_PRIME = 1099511628211  # of the 64-bit FNV-1a hash
_DIGITS = 18  # of a number: so many fit int64
_EXACT = 2**53  # integers up to here are float64s,
_POWERS = np.array([10.0**n for n in range(23)])  # and so are these powers of ten


@njit(cache=True)
def number(blob: Bytes, i: int, end: int) -> tuple[float, int]:
    """The number at `i`, after blanks, and the index behind it; −1 if it needs two roundings.

    One correctly rounded operation on two exact operands gives the float64 nearest to a decimal:
    Clinger (1990), https://doi.org/10.1145/93542.93557, section 3.
    """
    i = skip_blanks(blob, i, end)
    if i < 0 or i == end:
        return 0.0, -1
    negative = blob[i] == _MINUS
    i += negative or blob[i] == _PLUS
    first, mantissa, scale = i, 0, 0
    while i < end and _ZERO <= blob[i] <= _NINE:
        mantissa = 10 * mantissa + (blob[i] - _ZERO)
        i += 1
    digits = i - first
    if i < end and blob[i] == _POINT:
        i += 1
        first = i
        while i < end and _ZERO <= blob[i] <= _NINE:
            mantissa = 10 * mantissa + (blob[i] - _ZERO)
            i += 1
        scale = first - i
        digits -= scale
    if i < end and blob[i] | 0x20 == _E:
        exponent, i = _exponent(blob, i + 1, end)
        scale += exponent
    if not 0 < digits <= _DIGITS or mantissa > _EXACT or abs(scale) >= len(_POWERS):
        return 0.0, -1
    value = mantissa * _POWERS[scale] if scale >= 0 else mantissa / _POWERS[-scale]
    return (-value if negative else value), i


@njit(cache=True)
def _exponent(blob: Bytes, i: int, end: int) -> tuple[int, int]:
    """The signed integer at `i`, at most 999 in size, and the index behind it, or −1."""
    negative = i < end and blob[i] == _MINUS
    if i < end and (negative or blob[i] == _PLUS):
        i += 1
    first, exponent = i, 0
    while i < end and _ZERO <= blob[i] <= _NINE:
        exponent = min(10 * exponent + (blob[i] - _ZERO), 999)
        i += 1
    return (-exponent if negative else exponent), (i if i > first else -1)


@njit(cache=True)
def skip_blanks(blob: Bytes, i: int, end: int) -> int:
    """The first index from `i` on that is not a blank."""
    while 0 <= i < end and blob[i] == _BLANK:
        i += 1
    return i


def read_numbers(lines: Sequence[bytes], width: int) -> tuple[NDArray[np.float64], list[int]]:
    """Values (n, width) of the lines, and the rows of the lines that are not simple.

    A simple line has `width` numbers between blanks that `number` can read; its values are those
    of `float`. The values of the other rows are undefined. O(bytes).
    """
    values = np.zeros((len(lines), width))
    done = np.zeros(len(lines), np.bool_)
    column = TextColumn.of(lines)
    _read(np.frombuffer(column.blob, np.uint8), column.spans, values, done)
    return values, np.flatnonzero(~done).tolist()


@njit(cache=True)
def _read(blob: Bytes, spans: Ints, values: Floats, done: NDArray[np.bool_]) -> None:
    """Fill `values` and `done` from the lines at `spans`."""
    for row in range(len(spans)):
        i, end = spans[row]
        for j in range(values.shape[1]):
            values[row, j], i = number(blob, i, end)
            if i < 0 or (i < end and blob[i] != _BLANK):
                i = -1
                break
        done[row] = skip_blanks(blob, i, end) == end


@njit(cache=True)
def word_slot(table: Ints, words: Bytes, word: Bytes) -> int:
    """Slot of a word among those of `words`, or the free one where it belongs.

    table: (S, 2) where a word begins and ends in `words`, or `FREE`; S is a power of 2, and larger
    than the number of words.
    """
    code = np.int64(0)
    for byte in word:
        code = (code ^ np.int64(byte)) * _PRIME
    mask = len(table) - 1
    slot = (code * GOLDEN >> 32) & mask
    while table[slot, 0] != FREE:
        begin, end = table[slot]
        if end - begin == len(word):
            same = 0
            while same < len(word) and words[begin + same] == word[same]:
                same += 1
            if same == len(word):
                break
        slot = (slot + 1) & mask
    return int(slot)
