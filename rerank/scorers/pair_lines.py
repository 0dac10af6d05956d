"""Lines of a file of pair scores, read one by one or, in large files, by compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rerank.scorers.pair_grid import Grid

BLOCK = 1 << 15  # lines; compiling would take longer than reading a shorter file
Number = Callable[[bytes, int], float]  # reads a number; the second argument is its line


class PairLines:
    """A position in a file; `number` is that of the current line, from 1."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._blob, self._begin = b"", 0
        self._large = False
        self._odd = np.zeros((BLOCK, 4), dtype=np.int64)
        self.number = 1

    def peek(self) -> bytes | None:
        """The current line; None after the last."""
        if self._begin == len(self._blob):
            block = list(islice(self._lines, BLOCK))
            if not block:
                return None
            self._blob, self._begin = b"\n".join([*block, b""]), 0
            self._large = self._large or len(block) == BLOCK
        return self._blob[self._begin : self._blob.index(b"\n", self._begin)]

    def step(self) -> None:
        """Go on to the next line."""
        self._begin = self._blob.index(b"\n", self._begin) + 1
        self.number += 1

    def take(self, name: str, grid: Grid, flat: NDArray[np.float64], number: Number) -> int:
        """Number of lines in the common form that were read from here on into `flat`.

        name: of the document; number: reads what compiled code does not round. It is 0 for a file
        of less than a block.
        """
        if not self._large:
            return 0
        from rerank.scorers.pair_kernel import place_lines  # loads numba

        own = np.frombuffer(f"{name}\t".encode(), dtype=np.uint8)
        blob = np.frombuffer(self._blob, dtype=np.uint8)
        self._begin, taken, n_odd = place_lines(blob, self._begin, own, grid, flat, self._odd)
        if n_odd:
            places, starts, stops, lines = self._odd[:n_odd].T
            tokens = list(map(self._blob.__getitem__, map(slice, starts.tolist(), stops.tolist())))
            flat[places] = _rounded(tokens, lines + self.number, number)
        self.number += taken
        return taken


def _rounded(tokens: list[bytes], lines: NDArray[np.int64], number: Number) -> NDArray[np.float64]:
    """Numbers (n,) of tokens of digits, points, signs and exponents, on these lines (n,)."""
    try:
        found = np.array(list(map(float, tokens)))
    except ValueError:
        found = np.array([np.nan])
    if np.isfinite(found).all():
        return found
    return np.array(list(map(number, tokens, lines.tolist())))
