"""Scores of lines that another tool has written: a number for each line of a text, or NA.

FILE#NAME are annotations of people, in a result file of Pearmut (`rerank.formats.pearmut`).
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.files.lines import SURPLUS, read_lines
from rerank.files.paths import display, file_and_name
from rerank.files.signature import short_digest, signature
from rerank.formats import tokens
from rerank.formats.pearmut import read_annotations
from rerank.notices import Notices


def read_line_scores(
    path: str, name: str, documents: Documents, notices: Notices, *, text: str
) -> tuple[NDArray[np.float64], str]:
    """Values (T,) of a metric in a file, and the signature, which names both.

    text: whose lines they are of, in messages. Blank lines at the end of the file are ignored; NaN
    for NA, and for a sentence that nobody has judged. InputError with file and line for what is not
    a finite decimal number, and for another number of lines.
    """
    file, model = file_and_name(path)
    if model is not None:
        judged = read_annotations(file, model, documents, notices)
        origin = {"metric": name, "file": f"{Path(file).name}={short_digest(file)}"}
        return judged, signature({**origin, "sentences": int((~np.isnan(judged)).sum())})
    source = display(path)
    reading = read_lines(path, notices)
    n_lines = documents.n_file_lines
    values = list[float]()
    for line, content in enumerate(islice(reading, n_lines), 1):
        try:
            word = content.strip(b" \t\r")
            values.append(np.nan if word == b"NA" else tokens.number(word, name))
        except InputError as fault:
            head = [content, *islice(reading, tokens.HEAD)]  # behind numbers it is no other format
            cure = tokens.numbers_cure(head, source) if line == 1 else ""
            cure = cure or f"; write one for each line of {text}, in their order, or NA"
            message = f"{fault}{cure}"
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
    if not (known := int((~np.isnan(values)).sum())):
        raise InputError(f"expected values of {name}, found none but NA", source=source)
    digest = short_digest(path)
    file = Path(path).name if digest is None else f"{Path(path).name}={digest}"
    some = {"sentences": known} if known < len(values) else {}
    found = np.array(documents.in_order(values))
    return found, signature({"metric": name, "file": file, **some})
