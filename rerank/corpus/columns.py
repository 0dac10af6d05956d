"""Columns of k-best lists: texts, sparse features, labels of dense features, where lists begin.

T source sentences, K candidates of a sentence, n candidates of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Label:
    """A dense feature function: its name and how many values it has.

    decoder_name: the name in the list, of which `name` keeps letters and digits; empty if they are
    equal.
    """

    name: str
    width: int
    decoder_name: str = field(default="", compare=False)


def decoder_names(labels: Iterable[Label]) -> dict[str, str]:
    """Names of the features of one value in their decoder, where these are other names."""
    return {one.name: one.decoder_name for one in labels if one.decoder_name and one.width == 1}


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
                own = [places.setdefault(name, len(places)) for name in piece.names]
                indices.append(np.array(own, np.int64)[piece.indices])
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
