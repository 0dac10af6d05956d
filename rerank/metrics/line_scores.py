"""Values of a metric that another tool has written to a file, one for each line of a text.

The file of an evaluation that corresponds to `rerank.commands.tuning_set`, which is for lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
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
    path: str | Path, name: str, documents: Documents, notices: Notices, *, text: str
) -> LineScores:
    """The values of metric `name` for the sentences of documents, of a file of those of all lines.

    text: its name in messages. Blank lines at the end of the file are ignored. InputError with
    file and line for what is not a finite decimal number, and for another number of lines.
    """
    source = display(path)
    reading = read_lines(path, notices, max_line_bytes=_LINE_BYTES)
    n_lines = documents.n_file_lines
    values = []
    for line, content in enumerate(islice(reading, n_lines), 1):
        try:
            values.append(tokens.number(content.strip(b" \t\r"), name))
        except InputError as fault:
            message = f"{fault}; write one for each line of {text}, in their order"
            raise InputError(message, source=source, line=line) from None
    filled = (n for n, line in enumerate(islice(reading, SURPLUS), 1) if line.strip())
    surplus = max(filled, default=0)
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
    found = np.array(values)
    if documents.lines is not None:
        found = found[list(documents.lines)]
    return LineScores(found, signature({"metric": name, "file": file}))
