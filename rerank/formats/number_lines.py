"""Lines that hold nothing but numbers, read by machine code; any other is left to a grammar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.formats.moses_kernel import number
from rerank.formats.rows import line_spans

_BLANK = 32


def read_numbers(lines: Sequence[bytes], width: int) -> tuple[NDArray[np.float64], list[int]]:
    """Values (n, width) of the lines, and the rows of those lines that are not so simple.

    A simple line has `width` numbers between blanks, each of which needs no more than one rounding
    (`moses_kernel.number`); its values are those that `float` gives. The values of the other rows
    mean nothing. O(bytes).
    """
    values = np.zeros((len(lines), width))
    done = np.zeros(len(lines), np.bool_)
    spans = line_spans(np.fromiter(map(len, lines), np.int64, len(lines)))
    _read(np.frombuffer(b"\n".join(lines), np.uint8), spans, values, done)
    return values, np.flatnonzero(~done).tolist()


@njit(cache=True)
def _read(
    blob: NDArray[np.uint8],
    spans: NDArray[np.int64],
    values: NDArray[np.float64],
    done: NDArray[np.bool_],
) -> None:
    """Fill `values` and `done` from the lines at `spans`."""
    for row in range(len(spans)):
        i, end = spans[row]
        for j in range(values.shape[1]):
            values[row, j], i = number(blob, i, end)
            if i < 0 or (i < end and blob[i] != _BLANK):
                i = -1
                break
        while 0 <= i < end and blob[i] == _BLANK:
            i += 1
        done[row] = i == end
