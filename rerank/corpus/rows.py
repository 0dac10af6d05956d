"""Hypotheses as columns, in the order of their file: what a format reads, a chunk at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import SparseColumns, TextColumn, joined_spans
from rerank.corpus.labels import Label
from rerank.files.arrays import ArrayStore

_LF = ord("\n")
MAX_ID = 2**31 - 1  # largest sentence id


@dataclass(frozen=True, slots=True, eq=False)
class KBestRows:
    """n hypotheses of a k-best list, as columns.

    lines: what the format keeps of each hypothesis to write it back, as the line of its file; the
    text of the hypothesis lies in it or, if the file has it in another form, is added to it.
    line_numbers: 0 of a candidate that is not in the file (`rerank.corpus.missing`).
    """

    labels: tuple[Label, ...]  # their widths sum to F
    lines: TextColumn  # (n,)
    text_spans: NDArray[np.int64]  # (n, 2) in `lines.blob`, without blanks around the text
    line_numbers: NDArray[np.int64]  # (n,) of entries from 1: lines, where each has a hypothesis
    sentences: NDArray[np.int64]  # (n,) ids as written
    dense: NDArray[np.float64]  # (n, F)
    totals: NDArray[np.float64]  # (n,), NaN where there is none
    sparse: SparseColumns  # (n,) with all names of its part of the file
    places: NDArray[np.int64] | None = None  # (n,) lines of the file, where entries are no lines

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def file_lines(self) -> NDArray[np.int64]:
        """Lines of the file (n,), from 1, for messages."""
        return self.line_numbers if self.places is None else self.places

    @property
    def texts(self) -> TextColumn:
        """The hypotheses (n,), without blanks around them."""
        return TextColumn(self.lines.blob, self.text_spans)

    def take(self, rows: NDArray[np.int64]) -> KBestRows:
        """The given rows in the given order, without the bytes of the others."""
        old = self.lines.take(rows)
        new = TextColumn.of(old.to_list())
        return KBestRows(
            labels=self.labels,
            lines=new,
            text_spans=self.text_spans[rows] + (new.spans - old.spans)[:, :1],
            line_numbers=self.line_numbers[rows],
            sentences=self.sentences[rows],
            dense=self.dense[rows],
            totals=self.totals[rows],
            sparse=self.sparse.take(rows),
            places=None if self.places is None else self.places[rows],
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, without sparse features."""
        arrays = (self.lines.spans, self.text_spans, self.line_numbers, self.sentences)
        others = (self.dense, self.totals, *(() if self.places is None else (self.places,)))
        return len(self.lines.blob) + sum(int(array.nbytes) for array in (*arrays, *others))

    def in_order(self, order: NDArray[np.int64], store: ArrayStore | None = None) -> KBestRows:
        """All rows in another order; no bytes of lines are copied. With a store, in its files."""
        put = np.asarray if store is None else store.filed
        return KBestRows(
            labels=self.labels,
            lines=TextColumn(self.lines.blob, put(self.lines.spans[order])),
            text_spans=put(self.text_spans[order]),
            line_numbers=put(self.line_numbers[order]),
            sentences=put(self.sentences[order]),
            dense=put(self.dense[order]),
            totals=put(self.totals[order]),
            sparse=self.sparse.take(order),
            places=None if self.places is None else put(self.places[order]),
        )

    def filed(self, store: ArrayStore) -> KBestRows:
        """The rows with their columns on disk; sparse features stay in memory."""
        blob = store.filed(np.frombuffer(self.lines.blob, np.uint8))
        return replace(
            self,
            lines=TextColumn(blob.data.toreadonly(), store.filed(self.lines.spans)),
            text_spans=store.filed(self.text_spans),
            line_numbers=store.filed(self.line_numbers),
            sentences=store.filed(self.sentences),
            dense=store.filed(self.dense),
            totals=store.filed(self.totals),
            places=None if self.places is None else store.filed(self.places),
        )


def concatenate(pieces: Sequence[KBestRows], store: ArrayStore | None = None) -> KBestRows:
    """The rows of all pieces, of which there is at least one; with a store, in its files."""
    if len(pieces) == 1:
        return pieces[0]
    starts = joined_spans(np.array([len(piece.lines.blob) for piece in pieces]))[:, 0]
    return KBestRows(
        labels=pieces[0].labels,
        lines=TextColumn(
            _joined(pieces, store), _shifted([p.lines.spans for p in pieces], starts, store)
        ),
        text_spans=_shifted([piece.text_spans for piece in pieces], starts, store),
        line_numbers=_stacked([piece.line_numbers for piece in pieces], store),
        sentences=_stacked([piece.sentences for piece in pieces], store),
        dense=_stacked([piece.dense for piece in pieces], store),
        totals=_stacked([piece.totals for piece in pieces], store),
        sparse=SparseColumns.concatenate([piece.sparse for piece in pieces]),
        places=(
            None
            if pieces[0].places is None
            else _stacked([piece.file_lines for piece in pieces], store)
        ),
    )


def _joined(pieces: Sequence[KBestRows], store: ArrayStore | None) -> bytes | memoryview:
    """The blocks of all pieces, with a line end between two."""
    blocks = [piece.lines.blob for piece in pieces]
    if store is None:
        return b"\n".join(blocks)
    whole = store.in_file((sum(map(len, blocks)) + len(blocks) - 1,), np.uint8)
    place = 0
    for block in blocks:
        whole[place : place + len(block)] = np.frombuffer(block, np.uint8)
        place += len(block)
        whole[place : place + 1] = _LF
        place += 1
    return whole.data.toreadonly()


def _shifted(
    spans: Sequence[NDArray[np.int64]], starts: NDArray[np.int64], store: ArrayStore | None
) -> NDArray[np.int64]:
    """Spans (n, 2) of all pieces, given where their blocks start."""
    found = _stacked(spans, store)
    place = 0
    for part, start in zip(spans, starts.tolist(), strict=True):
        found[place : place + len(part)] += start
        place += len(part)
    return found


def _stacked(arrays: Sequence[NDArray[Any]], store: ArrayStore | None) -> NDArray[Any]:
    """Arrays (n, …) one after the other."""
    if store is None:
        return np.concatenate(arrays)
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    return np.concatenate(arrays, out=store.in_file(shape, arrays[0].dtype))
