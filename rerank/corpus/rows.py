"""Hypotheses as columns, in the order of their file: what a format reads, a chunk at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import SparseColumns, TextColumn, joined_spans
from rerank.corpus.labels import Label

MAX_ID = 2**31 - 1  # largest sentence id


@dataclass(frozen=True, slots=True, eq=False)
class KBestRows:
    """n hypotheses of a k-best list, as columns.

    lines: what the format keeps of each hypothesis to write it back, as the line of its file; the
    text of the hypothesis lies in it or, if the file has it in another form, is added to it.
    """

    labels: tuple[Label, ...]  # their widths sum to F
    lines: TextColumn  # (n,)
    text_spans: NDArray[np.int64]  # (n, 2) in `lines.blob`, without blanks around the text
    line_numbers: NDArray[np.int64]  # (n,) of entries from 1: lines, where each has a hypothesis
    sentences: NDArray[np.int64]  # (n,) ids as written
    dense: NDArray[np.float64]  # (n, F)
    totals: NDArray[np.float64]  # (n,), NaN where there is none
    sparse: Mapping[int, Mapping[str, float]]  # by line number, where there are any
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
        numbers = self.line_numbers[rows]
        return KBestRows(
            labels=self.labels,
            lines=new,
            text_spans=self.text_spans[rows] + (new.spans - old.spans)[:, :1],
            line_numbers=numbers,
            sentences=self.sentences[rows],
            dense=self.dense[rows],
            totals=self.totals[rows],
            sparse={n: self.sparse[n] for n in numbers.tolist() if n in self.sparse},
            places=None if self.places is None else self.places[rows],
        )

    def sparse_columns(self) -> SparseColumns:
        """The sparse features of all rows."""
        if not self.sparse:
            return SparseColumns.empty(len(self))
        return SparseColumns.of([self.sparse.get(line, {}) for line in self.line_numbers.tolist()])


def concatenate(pieces: Sequence[KBestRows]) -> KBestRows:
    """The rows of all pieces, of which there is at least one."""
    if len(pieces) == 1:
        return pieces[0]
    starts = joined_spans(np.array([len(piece.lines.blob) for piece in pieces]))[:, 0]
    placed = list(zip(pieces, starts, strict=True))
    blob = b"\n".join([piece.lines.blob for piece in pieces])
    return KBestRows(
        labels=pieces[0].labels,
        lines=TextColumn(blob, np.concatenate([p.lines.spans + start for p, start in placed])),
        text_spans=np.concatenate([piece.text_spans + start for piece, start in placed]),
        line_numbers=np.concatenate([piece.line_numbers for piece in pieces]),
        sentences=np.concatenate([piece.sentences for piece in pieces]),
        dense=np.concatenate([piece.dense for piece in pieces]),
        totals=np.concatenate([piece.totals for piece in pieces]),
        sparse={line: found for piece in pieces for line, found in piece.sparse.items()},
        places=(
            None
            if pieces[0].places is None
            else np.concatenate([piece.file_lines for piece in pieces])
        ),
    )
