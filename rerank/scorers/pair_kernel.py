"""Compiled reader of the common form of pair-score lines; `PairScores` reads all other lines.

A line is read here if it begins with the id of the current document and holds plain integers, a
pair of the document that has no value yet, and a decimal number. The value is bit for bit that of
`PairScores`. Reading stops at the first other line, whether valid or not. Indices into the bytes
are −1 once a line has left the common form.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from rerank.formats.number_kernel import Bytes, Floats, Ints, number
from rerank.scorers.pair_grid import Grid

_TAB, _LF, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _E = b"\t\n+-.09e"
_INDEX_DIGITS = 9


@njit(cache=True)
def place_lines(
    blob: Bytes, i: int, name: Bytes, grid: Grid, scores: Floats, odd: Ints
) -> tuple[int, int, int]:
    """Index of the first line from `i` on that was not read, number of lines, number of odd ones.

    Every line ends with LF; name: of the document, with TAB; scores: values by pair, NaN if there
    is none yet; odd: output (m, 4), pair, span and line of numbers whose value needs more than
    one rounding and is left 0. O(bytes).
    """
    n = n_odd = 0
    while i < len(blob) and n_odd < len(odd):
        place, start = _place(blob, i, name, grid)
        if start < 0:
            break
        stop = start
        while blob[stop] != _LF:
            stop += 1
        if place >= 0:
            if not np.isnan(scores[place]):
                break
            value, end = number(blob, start, stop)
            if end != stop:
                if not _is_decimal(blob, start, stop):
                    break
                odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2], odd[n_odd, 3] = place, start, stop, n
                value, n_odd = 0.0, n_odd + 1
            scores[place] = value
        i, n = stop + 1, n + 1
    return i, n, n_odd


@njit(cache=True)
def _place(blob: Bytes, i: int, name: Bytes, grid: Grid) -> tuple[int, int]:
    """Index of the pair on the line at `i`, −1 if it is not kept; and where its value begins."""
    for b in range(len(name)):
        if blob[i] != name[b]:  # the LF at the end equals no byte of a name
            return -1, -1
        i += 1
    t, i = _index(blob, i)
    if i < 0 or t >= len(grid.counts) or grid.counts[t] == 0:
        return -1, -1
    previous = 0
    if grid.neighbours[t] < 0:
        if blob[i] != _MINUS or blob[i + 1] != _TAB:
            return -1, -1
        i += 2
    else:
        previous, i = _index(blob, i)
        previous, i = _kept(grid, grid.neighbours[t], previous, i)
    index, i = _index(blob, i)
    index, i = _kept(grid, t, index, i)
    if i < 0 or previous < 0 or index < 0:
        return -1, i
    return grid.starts[t] + previous * grid.counts[t] + index, i


@njit(cache=True)
def _kept(grid: Grid, t: int, index: int, i: int) -> tuple[int, int]:
    """Number of a candidate among the kept ones of sentence t, −1 if it is not kept; and i.

    i becomes −1 if the list is too short.
    """
    if index < grid.offsets[t + 1] - grid.offsets[t]:
        return grid.kept[grid.offsets[t] + index], i
    return -1, -1 if grid.whole[t] else i


@njit(cache=True)
def _index(blob: Bytes, i: int) -> tuple[int, int]:
    """The digits at `i` as an integer, and the index after the TAB behind them, or −1."""
    if i < 0:
        return 0, -1
    first, found = i, 0
    while _ZERO <= blob[i] <= _NINE:
        found = 10 * found + (blob[i] - _ZERO)
        i += 1
    if not 0 < i - first <= _INDEX_DIGITS or blob[i] != _TAB:
        return 0, -1
    return found, i + 1


@njit(cache=True)
def _is_decimal(blob: Bytes, i: int, end: int) -> bool:
    """Whether there are only bytes of decimal numbers, which Python then reads as we do."""
    for j in range(i, end):
        byte = blob[j]
        digit = _ZERO <= byte <= _NINE
        sign = byte in (_PLUS, _MINUS)
        if not (digit or sign or byte == _POINT or byte | 0x20 == _E):
            return False
    return end > i
