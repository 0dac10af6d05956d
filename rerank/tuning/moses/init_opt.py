"""Start weights of Moses' mert, and the range of each: init.opt.

    0.3 0.3 -0.2        where to start, a number for each of the F features
    0 0 0               least and
    1 1 1               largest value; random starts of `mert` are drawn between them

Where there are more features than numbers, `mert` silently tunes the first features, which may be
the wrong ones. Here counts that differ are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus import LARGEST
from rerank.errors import InputError
from rerank.files.lines import MAX_LINE_BYTES, read_lines
from rerank.files.paths import display
from rerank.formats.tokens import NUMBER, shown
from rerank.notices import Notices


@dataclass(frozen=True, slots=True, eq=False)
class InitOpt:
    """Start weights and the range of each, all (F,) and finite; least ≤ largest."""

    weights: NDArray[np.float64]
    least: NDArray[np.float64]
    largest: NDArray[np.float64]

    @property
    def usual(self) -> bool:
        """Whether all ranges are 0 to 1, the default of mert-moses.pl."""
        return not self.least.any() and bool((self.largest == 1).all())


def read_init_opt(path: str | Path, names: Sequence[str], notices: Notices) -> InitOpt:
    """Start weights and ranges of the F features `names`, from an init.opt.

    `InputError` for another number of lines or of values, for a value that is not finite, and for
    a least value above the largest.
    """
    source, found = display(path), []
    for n, line in enumerate(read_lines(path, notices, max_bytes=MAX_LINE_BYTES), 1):
        if not line.strip():
            continue
        try:
            row = [_finite(token) for token in line.split()]
            if len(row) != len(names):
                raise InputError(
                    f"expected {len(names)} values, for {names[0]} … {names[-1]}, found {len(row)}"
                )
        except InputError as fault:
            raise InputError(str(fault), source=source, line=n) from None
        found.append(np.array(row))
        if len(found) > 3:
            break
    if len(found) != 3:
        more = " or more" if len(found) > 3 else ""
        raise InputError(
            f"expected three lines, start, least and largest values, found {len(found)}{more}",
            source=source,
        )
    wrong = np.flatnonzero(found[1] > found[2])
    if len(wrong):
        least, largest = found[1][wrong[0]], found[2][wrong[0]]
        raise InputError(
            f"expected a range for {names[wrong[0]]}, found {least:g} to {largest:g}; "
            "lines are start, least, largest",
            source=source,
        )
    return InitOpt(*found)


def _finite(token: bytes) -> float:
    """A finite decimal number."""
    value = float(token) if NUMBER.fullmatch(token) else math.nan
    if not abs(value) <= LARGEST:
        raise InputError(f"expected a finite decimal number, found {shown(token)}")
    return value
