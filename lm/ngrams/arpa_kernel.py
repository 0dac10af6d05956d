"""Compiled reader of the lines of an ARPA file; lines that it cannot read are left to a grammar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

_TAB, _NEWLINE, _BLANK, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _E = b"\t\n +-.09e"
_EXACT = 2**53  # integers up to here are float64s,
_POWERS = np.array([10.0**n for n in range(23)])  # and so are these powers of ten
_DIGITS = 15  # of a number: so many are below 2^53
_FACTOR, _OFFSET = 0x100000001B3, 0x4BF29CE484222325  # of the hash FNV-1a; the latter as int64

Bytes: TypeAlias = NDArray[np.uint8]


class WordTable(NamedTuple):
    """Words in a hash table with open addressing.

    slots: index of a word, or −1; spans: (W, 2) its bytes in the blob; ids: (W,).
    """

    slots: NDArray[np.int32]
    blob: Bytes
    spans: NDArray[np.int64]
    ids: NDArray[np.int32]

    @classmethod
    def of(cls, ids: Mapping[bytes, int]) -> WordTable:
        """The table of words and their ids."""
        ends = np.cumsum([len(word) for word in ids])
        spans = np.column_stack([np.concatenate([[0], ends[:-1]]), ends])
        blob = np.frombuffer(b"".join(ids), np.uint8)
        slots = np.full(1 << (2 * len(ids)).bit_length(), -1, np.int32)
        _fill(slots, blob, spans)
        return cls(slots, blob, spans, np.array([*ids.values()], np.int32))


@njit(cache=True, nogil=True)
def _fill(slots: Any, blob: Any, spans: Any) -> None:
    for i in range(len(spans)):
        code = _OFFSET
        for place in range(spans[i, 0], spans[i, 1]):
            code = (code ^ blob[place]) * _FACTOR
        slot = (code ^ (code >> 29)) & (len(slots) - 1)
        while slots[slot] >= 0:
            slot = (slot + 1) & (len(slots) - 1)
        slots[slot] = i


@njit(cache=True, nogil=True)
def _word(text: Any, place: Any, table: Any) -> Any:
    """The id of the word at `place`, −1 if it is unknown, and the index behind it."""
    begin, code = place, _OFFSET
    while text[place] != _BLANK and text[place] != _TAB and text[place] != _NEWLINE:
        code = (code ^ text[place]) * _FACTOR
        place += 1
    slot = (code ^ (code >> 29)) & (len(table.slots) - 1)
    while table.slots[slot] >= 0:
        i = table.slots[slot]
        first, end = table.spans[i]
        if end - first == place - begin:
            same = 0
            while same < place - begin and table.blob[first + same] == text[begin + same]:
                same += 1
            if same == place - begin:
                return table.ids[i], place
        slot = (slot + 1) & (len(table.slots) - 1)
    return np.int32(-1), place


@njit(cache=True, nogil=True)
def _number(text: Any, place: Any) -> Any:
    """The number at `place` and the index behind it; −1 if it is none or needs two roundings.

    One correctly rounded operation on two exact operands gives the float64 nearest to a decimal:
    Clinger (1990), https://doi.org/10.1145/93542.93557, section 3.
    """
    negative = text[place] == _MINUS
    place += negative or text[place] == _PLUS
    mantissa, digits, scale = 0, 0, 0
    while _ZERO <= text[place] <= _NINE and digits <= _DIGITS:
        mantissa, digits, place = 10 * mantissa + (text[place] - _ZERO), digits + 1, place + 1
    if text[place] == _POINT:
        place += 1
        while _ZERO <= text[place] <= _NINE and digits <= _DIGITS:
            mantissa, digits, place = 10 * mantissa + (text[place] - _ZERO), digits + 1, place + 1
            scale += 1
    if text[place] | 0x20 == _E:
        below = text[place + 1] == _MINUS
        place += 1 + (below or text[place + 1] == _PLUS)
        exponent, first = 0, place
        while _ZERO <= text[place] <= _NINE and place - first < 3:
            exponent, place = 10 * exponent + (text[place] - _ZERO), place + 1
        scale += exponent if below else -exponent
        digits = digits if place > first else 0
    if not 0 < digits <= _DIGITS or abs(scale) >= len(_POWERS):
        return 0.0, -1
    value = mantissa / _POWERS[scale] if scale >= 0 else mantissa * _POWERS[-scale]
    return (-value if negative else value), place


@njit(cache=True, nogil=True)
def _behind_blanks(text: Any, place: Any) -> Any:
    while text[place] == _BLANK or text[place] == _TAB:
        place += 1
    return place


@njit(cache=True, nogil=True)
def read_ngrams(
    text: Any, begin: Any, table: Any, row: Any, most: Any, words: Any, probs: Any, backoffs: Any
) -> Any:
    """Read the lines from index `begin` on into the rows from `row` on, as long as they are simple.

    text: ends with LF; words: (m, n) ids; probs, backoffs: (m,), the latter empty where no line may
    have one; most: largest size of a number. The row and the index of the line not read.
    """
    n = words.shape[1]
    while row < len(words):
        backoff, place = 0.0, begin
        prob, place = _number(text, place)
        for j in range(n):
            if place < 0:
                break
            blank = _behind_blanks(text, place)
            words[row, j], end = _word(text, blank, table)
            place = end if blank > place and words[row, j] >= 0 else -1
        if place >= 0:
            blank = _behind_blanks(text, place)
            if text[blank] != _NEWLINE and len(backoffs):
                backoff, place = _number(text, blank)
                blank = _behind_blanks(text, place) if place >= 0 else blank
            place = blank if place >= 0 and text[blank] == _NEWLINE else -1
        if place < 0 or not (-most <= prob <= 0) or not (-most <= backoff <= most):
            break
        probs[row] = prob
        if len(backoffs):
            backoffs[row] = backoff
        row, begin = row + 1, place + 1
    return row, begin
