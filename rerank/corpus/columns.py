"""Columns of k-best lists: texts, sparse features, labels of dense features, where lists begin.

T source sentences, K candidates of a sentence, n candidates of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.files.arrays import ArrayStore

_NUMBERS = (
    "line_numbers",
    "sentences",
    "dense",
    "totals",
    "places",
    "truncated",
)  # columns of `KBestRows`


@dataclass(frozen=True, slots=True)
class Label:
    """A dense feature function: its name and how many values it has.

    decoder_name: that in the list, of which `name` keeps letters and digits; empty if equal.
    """

    name: str
    width: int
    decoder_name: str = field(default="", compare=False)


def decoder_names(labels: Iterable[Label]) -> dict[str, str]:
    """Names of the features of one value in their decoder, where these are other names."""
    return {x.name: x.decoder_name for x in labels if x.decoder_name and x.width == 1}


def column_names(labels: Iterable[Label]) -> list[str]:
    """Names of the F feature values: `LM0`, or `TM0_0`, `TM0_1`, … where one label has several."""
    return [
        label.name if label.width == 1 else f"{label.name}_{i}"
        for label in labels
        for i in range(label.width)
    ]


_PART = 1 << 20  # bytes of a block in a file that are looked at together


@dataclass(frozen=True, slots=True, eq=False)
class TextColumn:
    """n byte strings in one block, which may hold other bytes as well; of a file it is a view."""

    blob: bytes | memoryview
    spans: NDArray[np.int64]  # (n, 2)

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> TextColumn:
        """A column of these texts, joined by LF."""
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls(b"\n".join(texts), joined_spans(sizes))

    def __len__(self) -> int:
        return len(self.spans)

    def __getitem__(self, row: int) -> bytes:
        start, stop = self.spans[row]
        return bytes(self.blob[start:stop])

    def to_list(self) -> list[bytes]:
        """All texts."""
        texts = map(self.blob.__getitem__, map(slice, *self.spans.T.tolist()))
        if isinstance(self.blob, bytes):
            return list(texts)  # type: ignore[arg-type]
        return list(map(bytes, texts))

    def block_has(self, text: bytes) -> bool:
        """Whether the block holds these bytes, within a text or elsewhere."""
        if isinstance(self.blob, bytes):
            return text in self.blob
        starts = range(0, len(self.blob), _PART)
        return any(text in bytes(self.blob[a : a + _PART + len(text) - 1]) for a in starts)

    def take(self, rows: NDArray[np.int64]) -> TextColumn:
        """The given rows in the given order; no bytes are copied."""
        return TextColumn(self.blob, self.spans[rows])


def joined_spans(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spans (n, 2) of byte strings of these sizes (n,) once they are joined by one byte."""
    stops = np.cumsum(sizes + 1) - 1
    return np.stack([stops - sizes, stops], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class SparseColumns:
    """Features that are absent from most rows, where they are 0: compressed sparse rows."""

    names: tuple[str, ...]
    indptr: NDArray[np.int64]  # (n+1,): row i has the entries indptr[i]:indptr[i + 1]
    indices: NDArray[np.int64]  # into `names`
    values: NDArray[np.float64]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, float]]) -> SparseColumns:
        """The columns of rows given as mappings; names in order of appearance."""
        places: dict[str, int] = {}
        indices = [places.setdefault(name, len(places)) for row in rows for name in row]
        return cls(
            names=tuple(places),
            indptr=np.cumsum([0, *map(len, rows)], dtype=np.int64),
            indices=np.array(indices, dtype=np.int64),
            values=np.array([value for row in rows for value in row.values()], dtype=np.float64),
        )

    @classmethod
    def empty(cls, n: int) -> SparseColumns:
        """No features of n rows."""
        nothing = np.zeros(0, np.int64)
        return cls((), np.zeros(n + 1, np.int64), nothing, nothing.astype(np.float64))

    @classmethod
    def concatenate(cls, pieces: Sequence[SparseColumns]) -> SparseColumns:
        """The rows of all pieces one after the other; equal names are one. O(names + entries)."""
        if len({piece.names for piece in pieces}) == 1:
            places = {name: i for i, name in enumerate(pieces[0].names)}
            indices = [piece.indices for piece in pieces]
        else:
            places, indices = {}, []
            for piece in pieces:
                merged = [places.setdefault(name, len(places)) for name in piece.names]
                indices.append(np.array(merged, np.int64)[piece.indices])
        sizes = np.concatenate([np.diff(piece.indptr) for piece in pieces])
        values = np.concatenate([piece.values for piece in pieces])
        return cls(tuple(places), offsets_of(sizes), np.concatenate(indices), values)

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def row(self, row: int) -> dict[str, float]:
        """The features of a row by name."""
        entries = slice(*self.indptr[row : row + 2].tolist())
        names = [self.names[i] for i in self.indices[entries].tolist()]
        return dict(zip(names, self.values[entries].tolist(), strict=True))

    def take(self, rows: NDArray[np.int64]) -> SparseColumns:
        """The given rows, in the given order."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return SparseColumns(self.names, indptr, self.indices[entries], self.values[entries])

    def without_unused_names(self) -> SparseColumns:
        """The rows with the names that any of them has, in order of appearance. O(n log n)."""
        used, first = np.unique(self.indices, return_index=True)
        used = used[np.argsort(first)]
        if np.array_equal(used, np.arange(len(self.names))):
            return self
        new = np.zeros(len(self.names), np.int64)
        new[used] = np.arange(len(used))
        names = tuple(map(self.names.__getitem__, used.tolist()))
        return replace(self, names=names, indices=new[self.indices])

    def dot(self, weights: Mapping[str, float]) -> NDArray[np.float64]:
        """Weighted sum of each row (n,); a name without weight counts 0."""
        by_name = np.array([weights.get(name, 0.0) for name in self.names], dtype=np.float64)
        rows = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        sums = np.bincount(rows, self.values * by_name[self.indices], minlength=len(self))
        return np.asarray(sums, np.float64)


def offsets_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Starts (T+1,) of lists of these sizes (T,)."""
    return np.concatenate([[0], np.cumsum(counts)])


def runs_of_lists(offsets: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Numbers (begin, end) of lists in a row with at most so many candidates, or of one list.

    >>> list(runs_of_lists(np.array([0, 2, 4, 9, 10]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    begin, n_lists = 0, len(offsets) - 1
    while begin < n_lists:
        end = int(np.searchsorted(offsets, offsets[begin] + most, side="right")) - 1
        end = min(max(end, begin + 1), n_lists)
        yield begin, end
        begin = end


def reversed_lists(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows (n,) of lists of these sizes (T,), those of the last list first."""
    turned = counts[::-1]
    return places_of(turned) + np.repeat(offsets_of(counts)[:-1][::-1], turned)


def places_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place (n,) of each row within its list, from 0, for lists of these sizes (T,)."""
    return np.arange(counts.sum()) - np.repeat(offsets_of(counts)[:-1], counts)


@dataclass(frozen=True, slots=True, eq=False)
class KBestRows:
    """n hypotheses of a k-best list, as columns.

    lines: what the format keeps of each hypothesis to write it back, as the line of its file; the
    text of the hypothesis lies in it or, if the file has it in another form, is added to it.
    line_numbers: 0 of a candidate that is not in the file (`rerank.corpus.grouping`).
    """

    labels: tuple[Label, ...]  # their widths sum to F
    lines: TextColumn  # (n,)
    text_spans: NDArray[np.int64]  # (n, 2) in `lines.blob`, without white space around the text
    line_numbers: NDArray[np.int64]  # (n,) of entries from 1: lines, where each has a hypothesis
    sentences: NDArray[np.int64]  # (n,) ids as written
    dense: NDArray[np.float64]  # (n, F)
    totals: NDArray[np.float64]  # (n,), NaN where there is none
    sparse: SparseColumns  # (n,) with all names of its part of the file
    places: NDArray[np.int64] | None = None  # (n,) lines of the file, where entries are no lines
    truncated: NDArray[np.bool_] | None = None  # (n,) texts that the file calls cut off

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
        spans = self.text_spans[rows] + (new.spans - old.spans)[:, :1]
        return self._changed(lambda array: array[rows], new, spans, self.sparse.take(rows))

    def where(self, kept: NDArray[np.bool_]) -> KBestRows:
        """The rows (n,) that are kept."""
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def in_order(self, order: NDArray[np.int64], store: ArrayStore | None = None) -> KBestRows:
        """All rows in another order; no bytes of lines are copied. With a store, in its files."""

        def ordered(array: NDArray[Any]) -> NDArray[Any]:
            return array[order] if store is None else store.filed(array[order])

        return self._changed(
            ordered,
            TextColumn(self.lines.blob, ordered(self.lines.spans)),
            ordered(self.text_spans),
            self.sparse.take(order),
        )

    def filed(self, store: ArrayStore) -> KBestRows:
        """The rows with their columns on disk; sparse features stay in memory."""
        blob = store.filed(np.frombuffer(self.lines.blob, np.uint8))
        lines = TextColumn(blob.data.toreadonly(), store.filed(self.lines.spans))
        return self._changed(store.filed, lines, store.filed(self.text_spans), self.sparse)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns, without sparse features."""
        arrays = [self.lines.spans, self.text_spans, *self._numbers().values()]
        return len(self.lines.blob) + sum(int(array.nbytes) for array in arrays)

    def _numbers(self) -> dict[str, NDArray[Any]]:
        """The columns of numbers (n, …) by name."""
        columns = {name: getattr(self, name) for name in _NUMBERS}
        return {name: column for name, column in columns.items() if column is not None}

    def _changed(
        self,
        change: Callable[[NDArray[Any]], NDArray[Any]],
        lines: TextColumn,
        text_spans: NDArray[np.int64],
        sparse: SparseColumns,
    ) -> KBestRows:
        """The rows with each column of numbers changed, and with these other columns."""
        numbers: dict[str, Any] = {name: change(column) for name, column in self._numbers().items()}
        return replace(self, lines=lines, text_spans=text_spans, sparse=sparse, **numbers)


def concatenate(pieces: Sequence[KBestRows], store: ArrayStore | None = None) -> KBestRows:
    """The rows of all pieces, of which there is at least one; with a store, in its files."""
    if len(pieces) == 1:
        return pieces[0]
    starts = joined_spans(np.array([len(piece.lines.blob) for piece in pieces]))[:, 0]
    columns = [piece._numbers() for piece in pieces]
    if "places" in columns[0]:
        for piece, numbers_of in zip(pieces, columns, strict=True):
            numbers_of["places"] = piece.file_lines
    numbers: dict[str, Any] = {
        name: _stacked([column[name] for column in columns], store) for name in columns[0]
    }
    line_spans = _shifted([piece.lines.spans for piece in pieces], starts, store)
    return replace(
        pieces[0],
        lines=TextColumn(_joined(pieces, store), line_spans),
        text_spans=_shifted([piece.text_spans for piece in pieces], starts, store),
        sparse=SparseColumns.concatenate([piece.sparse for piece in pieces]),
        **numbers,
    )


def _joined(pieces: Sequence[KBestRows], store: ArrayStore | None) -> bytes | memoryview:
    """The blocks of all pieces, with a line end between two."""
    blocks = [piece.lines.blob for piece in pieces]
    if store is None:
        return b"\n".join(blocks)
    parts = [np.frombuffer(part, np.uint8) for block in blocks for part in (b"\n", block)]
    return _stacked(parts[1:], store).data.toreadonly()


def _shifted(
    spans: Sequence[NDArray[np.int64]], starts: NDArray[np.int64], store: ArrayStore | None
) -> NDArray[np.int64]:
    """Spans (n, 2) of all pieces, given where their blocks start."""
    shifted = _stacked(spans, store)
    parts = np.split(shifted, np.cumsum([len(part) for part in spans])[:-1])
    for part, start in zip(parts, starts.tolist(), strict=True):
        part += start
    return shifted


def _stacked(arrays: Sequence[NDArray[Any]], store: ArrayStore | None) -> NDArray[Any]:
    """Arrays (n, …) one after the other."""
    if store is None:
        return np.concatenate(arrays)
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    return np.concatenate(arrays, out=store.in_file(shape, arrays[0].dtype))
