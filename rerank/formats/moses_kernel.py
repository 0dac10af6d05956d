"""Lines of a Moses k-best list read by machine code: the common shape, or left to the grammar.

A line is taken if it has exactly the columns and labels of the first one, only blanks as white
space, and numbers that need no more than one rounding; then what is stored is what
`moses.parse` would give, bit for bit. Any other line, right or wrong, is marked as not done.
Indices into the bytes are −1 once a line has left the common shape.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.formats.moses import Layout
from rerank.formats.rows import Columns

Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]

_BLANK, _BAR, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _E = b" |+-.09e"
_ID_DIGITS = 9  # of a sentence id
_DIGITS = 18  # of a number: so many fit int64
_EXACT = 2**53  # integers up to here are float64s,
_POWERS = np.array([10.0**n for n in range(23)])  # and so are these powers of ten


class Template(NamedTuple):
    """`Layout` as arrays: label j, empty inside a block, is `labels[ends[j]:ends[j + 1]]`."""

    fields: int
    column: int
    labels: Bytes
    ends: Ints  # (F+1,)
    places: Ints  # (F,) column of the dense matrix for the j-th value of a line


def template(layout: Layout) -> Template:
    """The arrays of a layout."""
    labels = [label for label, _ in layout.values]
    return Template(
        fields=layout.fields,
        column=layout.column,
        labels=np.frombuffer(b"".join(labels), np.uint8),
        ends=np.cumsum([0, *map(len, labels)], dtype=np.int64),
        places=np.array([place for _, place in layout.values], dtype=np.int64),
    )


@njit(cache=True)
def read_lines(blob: Bytes, spans: Ints, template: Template, columns: Columns) -> None:
    """Store each line `blob[spans[row, 0]:spans[row, 1]]` that has the common shape. O(bytes)."""
    for row in range(len(spans)):
        i, end = spans[row]
        i = _read_text(blob, i, end, columns, row)
        for _ in range(template.column - 2):  # columns between text and features
            i = _next_column(blob, i, end)
        i = _read_dense(blob, i, end, template, columns.dense[row])
        fields = template.column + 1
        columns.totals[row] = np.nan
        if fields < template.fields:
            columns.totals[row], i = number(blob, _after_bars(blob, i, end), end)
            fields += 1
        i = _skip_blanks(blob, i, end)
        complete = i == end
        i = _after_bars(blob, i, end)
        while i >= 0:  # further columns
            i = _next_column(blob, i, end)
            fields, complete = fields + 1, True
        columns.done[row] = complete and fields == template.fields


@njit(cache=True)
def _read_text(blob: Bytes, i: int, end: int, columns: Columns, row: int) -> int:
    """Start of the third column, or −1; id and span of the text are stored."""
    i = _skip_blanks(blob, i, end)
    first, sentence = i, 0
    while i < end and _ZERO <= blob[i] <= _NINE:
        sentence = 10 * sentence + (blob[i] - _ZERO)
        i += 1
    if not 0 < i - first <= _ID_DIGITS:
        return -1
    start = _after_bars(blob, i, end)
    next_start = _next_column(blob, start, end)
    stop = next_start - 3
    while start < stop and blob[start] == _BLANK:
        start += 1
    while start < stop and blob[stop - 1] == _BLANK:
        stop -= 1
    columns.sentences[row] = sentence
    columns.text_spans[row, 0], columns.text_spans[row, 1] = start, stop
    return next_start


@njit(cache=True)
def _read_dense(blob: Bytes, i: int, end: int, template: Template, dense: Floats) -> int:
    """Index after the feature values that start at `i`, or −1; `dense` (F,) is filled."""
    for j in range(len(template.places)):
        i = _skip_blanks(blob, i, end)
        for b in range(template.ends[j], template.ends[j + 1]):
            if i < 0 or i == end or blob[i] != template.labels[b]:
                return -1
            i += 1
        dense[template.places[j]], i = number(blob, i, end)
        if i < 0 or (i < end and blob[i] != _BLANK and _after_bars(blob, i, end) < 0):
            return -1
    return i


@njit(cache=True)
def number(blob: Bytes, i: int, end: int) -> tuple[float, int]:
    """The number at `i`, after blanks, and the index behind it; −1 where it is not simple.

    One correctly rounded operation on two exact operands gives the float64 nearest to a decimal:
    Clinger (1990), https://doi.org/10.1145/93542.93557, section 3.
    """
    i = _skip_blanks(blob, i, end)
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
def _skip_blanks(blob: Bytes, i: int, end: int) -> int:
    """The first index from `i` that is no blank."""
    while 0 <= i < end and blob[i] == _BLANK:
        i += 1
    return i


@njit(cache=True)
def _after_bars(blob: Bytes, i: int, end: int) -> int:
    """The index after blanks and the `|||` at `i`, or −1 if it is not there."""
    i = _skip_blanks(blob, i, end)
    if i < 0 or i + 3 > end or not blob[i] == blob[i + 1] == blob[i + 2] == _BAR:
        return -1
    return i + 3


@njit(cache=True)
def _next_column(blob: Bytes, i: int, end: int) -> int:
    """The index after the next `|||` from `i` on, or −1 if there is none."""
    while 0 <= i <= end - 3:
        if blob[i] == blob[i + 1] == blob[i + 2] == _BAR:
            return i + 3
        i += 1
    return -1
