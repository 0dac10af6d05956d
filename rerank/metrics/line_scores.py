"""Values of a metric that another tool has written to a file, one for each line of a text.

The file of an evaluation that corresponds to `rerank.metrics.per_hypothesis`, which is for lists.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.errors import InputError
from rerank.files.lines import SURPLUS, read_lines
from rerank.files.paths import display
from rerank.formats import tokens
from rerank.notices import Notices
from rerank.signature import short_digest, signature

_LINE_BYTES = 1 << 12  # of a number


@dataclass(frozen=True, slots=True, eq=False)
class LineScores:
    """Values (T,) of a metric, one for each line of a text; signature: metric and file."""

    values: NDArray[np.float64]
    signature: str


def read_line_scores(
    path: str | Path, name: str, n_lines: int, notices: Notices, *, text: str
) -> LineScores:
    """The values of metric `name` for the `n_lines` lines of a text; O(n_lines).

    text: its name in messages. Blank lines at the end of the file are ignored. InputError with
    file and line for what is not a finite decimal number, and for another number of lines.
    """
    source = display(path)
    reading = read_lines(path, notices, max_line_bytes=_LINE_BYTES)
    values = []
    for line, content in enumerate(islice(reading, n_lines), 1):
        try:
            values.append(tokens.number(content.strip(b" \t\r"), name))
        except InputError as fault:
            message = f"{fault}; write one for each line of {text}, in their order"
            raise InputError(message, source=source, line=line) from None
    surplus = _last_filled(islice(reading, SURPLUS))
    if surplus or len(values) < n_lines:
        more = " or more" if surplus == SURPLUS else ""
        raise InputError(
            f"expected {n_lines:,} lines as {text} has, found {len(values) + surplus:,}{more}; "
            "write one number for each of its lines, in their order",
            source=source,
            line=len(values) + 1,
        )
    digest = short_digest(path)
    file = Path(path).name if digest is None else f"{Path(path).name}={digest}"
    return LineScores(np.array(values), signature({"metric": name, "file": file}))


def _last_filled(lines: Iterable[bytes]) -> int:
    """Number, from 1, of the last line that is not blank; 0 if there is none."""
    return max((n for n, line in enumerate(lines, 1) if line.strip()), default=0)
