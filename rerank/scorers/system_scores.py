"""Scores of another tool for the outputs of systems, joined by system and segment.

`NAME=SYSTEM:FILE`: a number for each source line; `NAME=TABLE`: a table of all systems, TSV or CSV
with a heading, or JSON lines, with the columns `segment`, `system` and `value` (or NAME, or
`score`), and `document` where segments count within their document, otherwise through the source.
Segments count from 0 if any of the file is 0, else from 1. What several systems have said has the
mean of their values. Every candidate needs a value of one of its systems at least.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.kbest import NamedLists
from rerank.errors import InputError
from rerank.files.lines import SURPLUS, is_pipe, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.json_objects import read_object
from rerank.formats.tokens import Place, number
from rerank.notices import Notices

Floats = NDArray[np.float64]
_COLUMNS = {  # of tables, and what people call them
    "system": ("system", "sys", "engine"),
    "segment": ("segment", "seg", "segment_id", "seg_id", "sentence"),
    "document": ("document", "doc", "document_id", "doc_id", "docid"),
    "value": ("value", "score"),
}
_HEAD = 1 << 12  # bytes that tell a table


def system_and_file(value: str, systems: Iterable[str]) -> tuple[str | None, str]:
    """System and file of `SYSTEM:FILE`; no system unless it is one of these.

    >>> system_and_file("A:a.comet", ["A"]), system_and_file("./A:a.comet", ["A"])
    (('A', 'a.comet'), (None, './A:a.comet'))
    """
    known = [name for name in systems if value.startswith(f"{name}:") and value != f"{name}:"]
    if not known:
        return None, value
    system = max(known, key=len)
    return system, value.removeprefix(f"{system}:")


def file_of_scores(value: str) -> str:
    """The file of `SYSTEM:FILE` or `FILE`, where the systems are not known yet."""
    system, mark, file = value.partition(":")
    return file if mark and file and "/" not in system and not Path(value).exists() else value


def is_table(path: FilePath) -> bool:
    """Whether a file begins with a heading that names systems, or with a JSON object of one."""
    if is_pipe(path):
        return False
    lines = (line[:_HEAD].strip() for line in islice(read_lines(path, Notices()), 1))
    first = next(lines, b"").decode(errors="replace").lower()
    if first.startswith("{"):
        return any(f'"{name}"' in first for name in _COLUMNS["system"])
    return any(name in _split(first) for name in _COLUMNS["system"])


def joined(
    name: str,
    files: Sequence[tuple[str | None, FilePath]],
    systems: Mapping[str, str],
    documents: Documents,
    lists: Iterable[NamedLists],
    n_lines: int,
    notices: Notices,
) -> Floats:
    """Values (n_lines,) of the lines of the lists, 0 where a line is no candidate.

    files: (system, file) or (None, table); systems: by the label of their indicator feature.
    """
    cells = {system: np.full(documents.n_sentences, np.nan) for system in systems.values()}
    for system, path in files:
        if system is None:
            _read_table(name, path, cells, documents, notices)
        else:
            cells[system] = _read_lines(name, path, documents, notices)
    source = ", ".join(display(path) for _, path in files[:3])
    found = np.zeros(n_lines)
    for document, kbest in lists:
        names = column_names(kbest.labels)
        columns = [names.index(label) for label in systems]
        for t in range(len(kbest)):
            values = np.array([own[kbest.first + t] for own in cells.values()])
            for row in kbest.rows(t):
                givers = kbest.dense[row, columns] > 0
                own = values[givers & ~np.isnan(values)]
                line = kbest.line_number(row)
                if givers.any() and not len(own):
                    lacking = next(s for s, gives in zip(cells, givers, strict=True) if gives)
                    raise InputError(
                        f"expected a value of {name} for segment {t + 1} of document "
                        f"{shown_id(document)} and system {lacking}, found none; add it",
                        source=source,
                    )
                if line and len(own):
                    found[line - 1] = own.mean()
    return found


def _read_lines(name: str, path: FilePath, documents: Documents, notices: Notices) -> Floats:
    """The numbers of a file with one for each source line, of the sentences (T,)."""
    expected, source = documents.n_file_lines, display(path)
    lines = list(islice(read_lines(path, notices), expected + SURPLUS))
    while len(lines) > expected and not lines[-1].strip():
        lines.pop()
    if len(lines) != expected:
        raise InputError(
            f"expected {expected:,} lines, a number for each source line, found {len(lines):,}; "
            "write one for each segment of the system",
            source=source,
            line=min(len(lines), expected) + 1,
        )
    values = [_number(line.strip(), name, source, n) for n, line in enumerate(lines, 1)]
    return np.array(documents.in_order(values))


def _number(token: bytes, name: str, source: str, line: int) -> float:
    try:
        return number(token, name)
    except InputError as fault:
        raise InputError(str(fault), source=source, line=line) from None


def _read_table(
    name: str,
    path: FilePath,
    cells: Mapping[str, Floats],
    documents: Documents,
    notices: Notices,
) -> None:
    """Put the values of a table into the cells of the systems."""
    source, rows = display(path), [*_rows(name, path, notices)]
    spans = dict(documents.ranges())
    in_order = {documents.line(t): t for t in range(documents.n_sentences)}
    first = 0 if any(segment == 0 for _, (_, segment, _, _) in rows) else 1
    seen: dict[tuple[str, int], int] = {}
    for line, (document, segment, system, value) in rows:
        if system not in cells:
            kind = f"row of a system that is no candidate, ignored; there are {', '.join(cells)}"
            notices.add(kind, source=source, line=line)
            continue
        if document is None:
            place = in_order.get(segment - first)
        else:
            own = spans.get(document, range(0))
            place = own[segment - first] if 0 <= segment - first < len(own) else None
        if place is None:
            kind = "row of a segment that the lists do not have, ignored"
            notices.add(kind, source=source, line=line)
            continue
        if (other := seen.setdefault((system, place), line)) != line:
            raise InputError(
                f"expected one value of {name} for each segment of a system, found another of "
                f"segment {segment} of system {system} on line {other}; keep the rows of one "
                "reference and one direction",
                source=source,
                line=line,
            )
        cells[system][place] = value


def _rows(
    name: str, path: FilePath, notices: Notices
) -> Iterator[tuple[int, tuple[str | None, int, str, float]]]:
    """Number of the line, and document, segment, system and value, of each row of a table."""
    source, header = display(path), list[str]()
    for n, line in enumerate(read_lines(path, notices), 1):
        if not line.strip():
            continue
        if line.lstrip().startswith(b"{"):
            found = {
                key.lower(): value
                for key, value in read_object(line, Place(source, notices, n)).items()
            }
        else:
            fields = _split(line.decode(errors="replace"))
            if not header:
                header = [one.lower() for one in fields]
                continue
            found = dict(zip(header, fields, strict=False))
        names = {**_COLUMNS, "value": (name.lower(), *_COLUMNS["value"])}
        own = {
            column: next((found[one] for one in known if one in found), None)
            for column, known in names.items()
        }
        for column in ("segment", "system", "value"):
            if own[column] in (None, ""):
                raise InputError(
                    f"expected the columns segment, system and value of {name}, found no "
                    f"{column} of segment {own['segment']} and system {own['system']}; name the "
                    "columns in the heading, and fill them",
                    source=source,
                    line=n,
                )
        if not str(own["segment"]).isdecimal():
            raise InputError(
                f"expected the number of a segment, found {own['segment']!r}; number segments "
                "from 0 or 1",
                source=source,
                line=n,
            )
        document = None if own["document"] is None else str(own["document"])
        value = _number(str(own["value"]).strip().encode(), name, source, n)
        yield n, (document, int(str(own["segment"])), str(own["system"]), value)


def _split(line: str) -> list[str]:
    """The fields of a line of TSV or, where it has no TAB, of CSV."""
    fields = line.split("\t") if "\t" in line else next(csv.reader([line]), [])
    return [field.strip() for field in fields]
