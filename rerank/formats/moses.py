"""Moses k-best lists, and those of tools that write nearly the same: see `moses_grammar`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import TextColumn
from rerank.corpus.kbest import KBest
from rerank.corpus.rows import KBestRows
from rerank.errors import InputError
from rerank.formats import moses_grammar as grammar
from rerank.formats import tokens
from rerank.formats.moses_writing import append_features, format_line
from rerank.notices import Notices

_CHUNK = 1 << 20  # bytes; for a shorter list it is not worth loading a compiler


class Moses:
    """The format of Moses' n-best lists."""

    name = "moses"
    description = "N-best lists of Moses and Marian, a hypothesis per line."
    suffixes = (".nbest", ".kbest")
    example = b"0 ||| the text ||| LM0= -38.1 TM0= -4.2 -5.3 ||| -12.6"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line that is not blank has three columns or more."""
        return next(line for line in head if line.strip()).count(grammar.SEPARATOR) >= 2

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses, one a line: see `read_rows`."""
        return read_rows(lines, notices, source=source, clip=clip)

    def write(
        self,
        kbest: KBest,
        names: Sequence[str],
        values: NDArray[np.float64],
        totals: NDArray[np.float64] | None,
        *,
        first_id: int = 0,
    ) -> Iterator[bytes]:
        """The lines of the file with features appended, or new lines for candidates in memory."""
        for row, added in enumerate(values.tolist()):
            features = list(zip(names, added, strict=True))
            line = _new_line(kbest, row, first_id) if kbest.lines is None else kbest.lines[row]
            total = None if totals is None else float(totals[row])
            yield append_features(line, features, total)


def _new_line(kbest: KBest, row: int, first_id: int) -> bytes:
    """A line for a candidate that comes from no file."""
    sentence = int(np.searchsorted(kbest.offsets, row, side="right")) - 1
    values = iter(kbest.dense[row].tolist())
    dense = [(label.name, [next(values) for _ in range(label.width)]) for label in kbest.labels]
    total = None if kbest.totals is None else float(kbest.totals[row])
    return format_line(
        first_id + kbest.first + sentence,
        kbest.texts[row],
        dense,
        sparse=kbest.sparse.row(row),
        total=total,
    )


# Reading


class Columns(NamedTuple):
    """Arrays in which lines are stored, one row each."""

    sentences: NDArray[np.int64]  # (n,) ids as written
    text_spans: NDArray[np.int64]  # (n, 2) of the hypotheses, without blanks around them
    dense: NDArray[np.float64]  # (n, F)
    totals: NDArray[np.float64]  # (n,), NaN where there is none
    done: NDArray[np.bool_]  # (n,)

    @classmethod
    def empty(cls, n: int, n_features: int) -> Columns:
        """Columns of n rows, none of them done."""
        return cls(
            sentences=np.zeros(n, np.int64),
            text_spans=np.zeros((n, 2), np.int64),
            dense=np.zeros((n, n_features)),
            totals=np.full(n, np.nan),
            done=np.zeros(n, np.bool_),
        )


def read_rows(
    lines: Iterable[bytes], notices: Notices, *, source: str = "", clip: float | None = None
) -> Iterator[KBestRows]:
    """The rows of a Moses list in chunks of about 1 MiB, or one longer line.

    The first line that is not blank sets columns and labels; `InputError` at a line that does not
    fit. clip: magnitude to read for an infinite number, which is otherwise an error.
    """
    reader = _Reader(notices, source, clip)
    for chunk in _chunks(lines):
        rows = reader.rows(chunk)
        if rows is not None:
            yield rows


def _chunks(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Lists of lines, of `_CHUNK` bytes with the last line or, at the end, fewer."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line) + 1
        if size > _CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


class _Reader:
    """Reads chunks of lines by the layout of the first line."""

    def __init__(self, notices: Notices, source: str, clip: float | None) -> None:
        self._notices = notices
        self._source = source
        self._layout: grammar.Layout | None = None
        self._before = 0  # lines in earlier chunks
        self._line = 0  # number of the current line
        self._number: tokens.Number = tokens.number
        if clip is not None:
            clipped = partial(self._note, "infinite number, clipped")
            self._number = tokens.clipping(abs(clip), clipped)

    def rows(self, lines: list[bytes]) -> KBestRows | None:
        """The rows of the next chunk; blank lines have none."""
        if self._layout is None:
            self._learn(lines)
        column = TextColumn.of(lines)
        columns = Columns.empty(len(lines), len(self._layout.values) if self._layout else 0)
        if self._layout is not None and len(column.blob) >= _CHUNK:
            from rerank.formats import moses_line_kernel  # loads numba

            template = moses_line_kernel.template(self._layout)
            blob = np.frombuffer(column.blob, np.uint8)
            moses_line_kernel.read_lines(blob, column.spans, template, columns)
        sparse = self._read_others(lines, column.spans, columns)
        numbers = np.arange(self._before + 1, self._before + 1 + len(lines))
        self._before += len(lines)
        if self._layout is None:
            return None
        rows = KBestRows(
            labels=self._layout.labels,
            lines=column,
            text_spans=columns.text_spans,
            line_numbers=numbers,
            sentences=columns.sentences,
            dense=columns.dense,
            totals=columns.totals,
            sparse=sparse,
        )
        return rows if columns.done.all() else rows.take(np.flatnonzero(columns.done))

    def _learn(self, lines: Sequence[bytes]) -> None:
        """Set the layout from the first line that is not blank, if there is one."""
        for number, line in enumerate(lines, self._before + 1):
            if line.strip():
                self._line = number
                with self._placed():
                    self._layout = grammar.layout(line)
                for kind in self._layout.dialect:
                    self._note(kind)
                return

    def _read_others(
        self, lines: Sequence[bytes], spans: NDArray[np.int64], columns: Columns
    ) -> dict[int, dict[str, float]]:
        """Parse the lines not done so far into `columns`; their sparse features by line number."""
        sparse = {}
        for row in np.flatnonzero(~columns.done).tolist():
            self._line = self._before + row + 1
            if self._layout is None or not lines[row].strip():
                self._note("blank line, skipped")
                continue
            with self._placed():
                line = grammar.parse(lines[row], self._layout, self._number)
            columns.sentences[row] = line.sentence
            columns.text_spans[row] = spans[row, 0] + np.array(line.text)
            columns.dense[row] = line.dense
            columns.totals[row] = np.nan if line.total is None else line.total
            columns.done[row] = True
            if line.sparse:
                sparse[self._line] = line.sparse
            for kind in line.oddities:
                self._note(kind)
        return sparse

    def _note(self, kind: str) -> None:
        self._notices.add(kind, source=self._source, line=self._line)

    @contextmanager
    def _placed(self) -> Iterator[None]:
        """Add file and line to errors of the grammar."""
        try:
            yield
        except InputError as fault:
            raise InputError(str(fault), source=self._source, line=self._line) from None
