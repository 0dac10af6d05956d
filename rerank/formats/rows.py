"""Lines of a k-best list as columns, a chunk of lines at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rerank.errors import InputError
from rerank.formats import moses, tokens
from rerank.notices import Notices

_CHUNK = 1 << 20  # bytes; a list that is shorter is not worth loading a compiler


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


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """n hypotheses as columns; `blob` holds their lines, joined by LF."""

    labels: tuple[moses.Label, ...]
    blob: bytes
    spans: NDArray[np.int64]  # (n, 2) of the lines in `blob`
    text_spans: NDArray[np.int64]  # (n, 2) of the hypotheses, without blanks around them
    line_numbers: NDArray[np.int64]  # (n,) in the file, from 1
    sentences: NDArray[np.int64]  # (n,) ids as written
    dense: NDArray[np.float64]  # (n, F)
    totals: NDArray[np.float64]  # (n,), NaN where there is none
    sparse: Mapping[int, Mapping[str, float]]  # by line number, where there are any

    @classmethod
    def empty(cls, labels: tuple[moses.Label, ...]) -> Rows:
        """No hypotheses, of a list with these labels."""
        columns = Columns.empty(0, sum(label.width for label in labels))
        return cls(
            labels=labels,
            blob=b"",
            spans=columns.text_spans,
            text_spans=columns.text_spans,
            line_numbers=columns.sentences,
            sentences=columns.sentences,
            dense=columns.dense,
            totals=columns.totals,
            sparse={},
        )

    def __len__(self) -> int:
        return len(self.spans)

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """The given rows in the given order, without the bytes of the others."""
        old = self.spans[rows]
        new = line_spans(old[:, 1] - old[:, 0])
        lines = self.line_numbers[rows]
        return Rows(
            labels=self.labels,
            blob=b"\n".join([self.blob[start:stop] for start, stop in old.tolist()]),
            spans=new,
            text_spans=self.text_spans[rows] + (new - old)[:, :1],
            line_numbers=lines,
            sentences=self.sentences[rows],
            dense=self.dense[rows],
            totals=self.totals[rows],
            sparse={n: self.sparse[n] for n in lines.tolist() if n in self.sparse},
        )


def concatenate(pieces: Sequence[Rows]) -> Rows:
    """The rows of all pieces, of which there is at least one."""
    if len(pieces) == 1:
        return pieces[0]
    starts = line_spans(np.array([len(piece.blob) for piece in pieces]))[:, 0]
    placed = list(zip(pieces, starts, strict=True))
    return Rows(
        labels=pieces[0].labels,
        blob=b"\n".join([piece.blob for piece in pieces]),
        spans=np.concatenate([piece.spans + start for piece, start in placed]),
        text_spans=np.concatenate([piece.text_spans + start for piece, start in placed]),
        line_numbers=np.concatenate([piece.line_numbers for piece in pieces]),
        sentences=np.concatenate([piece.sentences for piece in pieces]),
        dense=np.concatenate([piece.dense for piece in pieces]),
        totals=np.concatenate([piece.totals for piece in pieces]),
        sparse={line: found for piece in pieces for line, found in piece.sparse.items()},
    )


def line_spans(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spans (n, 2) of byte strings of these sizes (n,) once they are joined by one byte."""
    stops = np.cumsum(sizes + 1) - 1
    return np.stack([stops - sizes, stops], axis=1)


def read_rows(
    lines: Iterable[bytes], notices: Notices, *, source: str = "", clip: float | None = None
) -> Iterator[Rows]:
    """Columns of the lines of a Moses list, each of about 1 MiB of text or one longer line.

    The first line that is not blank sets columns and labels; `InputError` at a line that does not
    fit. `clip` is the size that stands for an infinite number; without it that is an error.
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
    """Chunks of lines → rows, with what is learnt from the first line."""

    def __init__(self, notices: Notices, source: str, clip: float | None) -> None:
        self._notices = notices
        self._source = source
        self._layout: moses.Layout | None = None
        self._before = 0  # lines in earlier chunks
        self._line = 0  # number of the line in hand
        self._number: tokens.Number = tokens.number
        if clip is not None:
            clipped = partial(self._note, "infinite number, clipped")
            self._number = tokens.clipping(abs(clip), clipped)

    def rows(self, lines: list[bytes]) -> Rows | None:
        """The rows of the next chunk; blank lines have none."""
        if self._layout is None:
            self._learn(lines)
        blob = b"\n".join(lines)
        spans = line_spans(np.fromiter(map(len, lines), np.int64, len(lines)))
        columns = Columns.empty(len(lines), len(self._layout.values) if self._layout else 0)
        if self._layout is not None and len(blob) >= _CHUNK:
            from rerank.formats import moses_kernel  # loads numba

            template = moses_kernel.template(self._layout)
            moses_kernel.read_lines(np.frombuffer(blob, np.uint8), spans, template, columns)
        sparse = self._read_others(lines, spans, columns)
        numbers = np.arange(self._before + 1, self._before + 1 + len(lines))
        self._before += len(lines)
        if self._layout is None:
            return None
        rows = Rows(
            labels=self._layout.labels,
            blob=blob,
            spans=spans,
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
                    self._layout = moses.layout(line)
                for kind in self._layout.dialect:
                    self._note(kind)
                return

    def _read_others(
        self, lines: Sequence[bytes], spans: NDArray[np.int64], columns: Columns
    ) -> dict[int, dict[str, float]]:
        """Sparse features by line number; `columns` is completed by the lines not done so far."""
        sparse = {}
        for row in np.flatnonzero(~columns.done).tolist():
            self._line = self._before + row + 1
            if self._layout is None or not lines[row].strip():
                self._note("blank line, skipped")
                continue
            with self._placed():
                line = moses.parse(lines[row], self._layout, self._number)
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
        """Errors of the grammar with file and line."""
        try:
            yield
        except InputError as fault:
            raise InputError(str(fault), source=self._source, line=self._line) from None
