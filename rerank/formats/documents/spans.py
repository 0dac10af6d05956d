"""A table of documents: `DOCID START END` on each line, ranges of consecutive sentences.

    talk-1 0 87          talk-1 1 87
    talk-2 87 199        talk-2 88 199

If the first start is 0, sentences count from 0; from 1 if it is 1. The end belongs to the document
unless the next one starts with it. Of a single document it does if sentences count from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from rerank.corpus.documents import EvaluationSet, at_most, shown_id
from rerank.errors import InputError
from rerank.formats.documents.sizes import LARGEST
from rerank.formats.documents.table import ReadingChoices, sizes_of
from rerank.formats.tokens import shown
from rerank.notices import Notices


class Spans:
    """Lines `DOCID START END`."""

    name = "spans"
    description = "A table DOCID START END, in order; sentences count from the first START, 0 or 1."
    example = b"talk-1 0 2\ntalk-2 2 3\n"
    has_texts = False
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether all lines are rows of such a table whose ranges follow each other."""
        rows = [_row(line) for line in head if line.strip()]
        if None in rows:
            return False
        spans = [row[1:] for row in rows if row]
        gaps = {start - end for (_, end), (start, _) in pairwise(spans)}
        return spans[0][0] in (0, 1) and (gaps <= {0} or gaps <= {1})

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents; InputError for a range that does not follow the one before."""
        limited = lines if choices.most is None else at_most(iter(lines), choices.most, source)
        rows = _rows(limited, source)
        if not rows:
            raise InputError("expected DOCID START END, found no lines", source=source)
        first = rows[0][2]
        if first not in (0, 1):
            raise InputError(
                f"expected the first document to start with sentence 0 or 1, found {first}; put "
                "the documents in the order of the sentences",
                source=source,
                line=rows[0][0],
            )
        following = rows[1][2] if len(rows) > 1 else rows[0][3] + first
        closed = following == rows[0][3] + 1
        expected, seen = first, set[str]()
        for line, name, start, end in rows:
            if start != expected:
                raise InputError(
                    f"expected {shown_id(name)} to start with sentence {expected}, behind the "
                    f"document before, found {start}; each sentence belongs to one document, in "
                    "order",
                    source=source,
                    line=line,
                )
            expected = end + closed
            if expected < start or end > LARGEST or name in seen:
                found = "an id that comes twice" if name in seen else f"{start} {end}"
                raise InputError(
                    f"expected one range of sentences for each document, found {found}; correct "
                    f"the line of {shown_id(name)}",
                    source=source,
                    line=line,
                )
            seen.add(name)
        return EvaluationSet(
            source, sizes_of((name, end + closed - start) for _, name, start, end in rows)
        )


def _rows(lines: Iterable[bytes], source: str) -> list[tuple[int, str, int, int]]:
    """Line number, id, start and end of every row."""
    rows = []
    for n, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if (row := _row(line)) is None:
            raise InputError(
                f"expected DOCID START END, found {shown(line)}; give a row for each document",
                source=source,
                line=n,
            )
        rows.append((n, *row))
    return rows


def _row(line: bytes) -> tuple[str, int, int] | None:
    """Id, start and end of a line; None for another line."""
    parts = line.split(b"\t") if line.count(b"\t") == 2 else line.split()
    if len(parts) != 3:
        return None
    name, start, end = (part.strip() for part in parts)
    if not (start.isdigit() and end.isdigit() and name and max(len(start), len(end)) < 10):
        return None
    return name.decode(), int(start), int(end)
