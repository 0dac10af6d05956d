"""K-best lists as columns: candidates of many sentences in arrays, text left where it was.

T source sentences, K candidates of a sentence, n candidates of all of them, F dense feature
values. Logarithms are natural; larger scores are better.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rerank.formats.moses import Label

__all__ = [
    "KBest",
    "Label",
    "SparseColumns",
    "column_names",
    "offsets_of",
    "places_of",
    "split_words",
]


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

    def take(self, rows: NDArray[np.int64]) -> SparseColumns:
        """The given rows, in the given order."""
        sizes = np.diff(self.indptr)[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        entries = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return SparseColumns(self.names, indptr, self.indices[entries], self.values[entries])

    def dot(self, weights: Mapping[str, float]) -> NDArray[np.float64]:
        """Weighted sum of each row (n,); a name without weight counts 0."""
        by_name = np.array([weights.get(name, 0.0) for name in self.names], dtype=np.float64)
        row = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        sums = np.zeros(len(self.indptr) - 1)
        np.add.at(sums, row, self.values * by_name[self.indices])
        return sums


@dataclass(frozen=True, slots=True, eq=False)
class KBest:
    """Candidates of T consecutive source sentences, best first as in the file."""

    source: str  # file name for messages
    first: int  # number of the first of the T sentences, from 0, in the source
    offsets: NDArray[np.int64]  # (T+1,): sentence t has the rows offsets[t]:offsets[t + 1]
    blob: bytes  # the lines as they are in the file, joined by LF
    spans: NDArray[np.int64]  # (n, 2) of the lines in `blob`
    text_spans: NDArray[np.int64]  # (n, 2) of the hypotheses, without blanks around them
    line_numbers: NDArray[np.int64]  # (n,) in the file, from 1
    ranks: NDArray[np.int64]  # (n,) places in the lists of the file, from 0; rising in each list
    dense: NDArray[np.float64]  # (n, F)
    totals: NDArray[np.float64] | None  # (n,); None if any line of the document has none
    sparse: SparseColumns
    labels: tuple[Label, ...]  # their widths sum to F

    @classmethod
    def of(cls, lists, *, source="", sparse=()):  # type: ignore
        """TEMPORARY."""
        rows = [c for s in lists for c in s]
        names = [n for _, f in rows[:1] for n in f if n not in sparse]
        from itertools import accumulate
        blob = b"\n".join(text.strip(" ").encode() for text, _ in rows)
        lengths = [len(text.strip(" ").encode()) for text, _ in rows]
        starts = [0, *accumulate(n + 1 for n in lengths)][:-1] if rows else []
        spans = np.array([(s, s + n) for s, n in zip(starts, lengths)], np.int64).reshape(-1, 2)
        counts = np.array([len(s) for s in lists], np.int64)
        return cls(source, 0, offsets_of(counts), blob, spans, spans, np.arange(len(rows)) + 1, places_of(counts),
            np.array([[f[n] for n in names] for _, f in rows], np.float64).reshape(len(rows), len(names)), None,
            SparseColumns.of([{n: v for n, v in f.items() if n in sparse} for _, f in rows]), tuple(Label(n, 1) for n in names))

    def __len__(self) -> int:
        """T, sentences without candidates included."""
        return len(self.offsets) - 1

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.spans)

    @property
    def counts(self) -> NDArray[np.int64]:
        """K of each sentence, (T,)."""
        return np.diff(self.offsets)

    def rows(self, t: int) -> range:
        """Rows of the candidates of sentence t."""
        return range(int(self.offsets[t]), int(self.offsets[t + 1]))

    def line(self, row: int) -> bytes:
        """The line of a candidate as it is in the file."""
        start, stop = self.spans[row]
        return self.blob[start:stop]

    def tokens(self, row: int) -> list[bytes]:
        """Words of a candidate: what ASCII spaces separate."""
        start, stop = self.text_spans[row]
        return split_words(self.blob[start:stop])

    def text(self, row: int) -> bytes:
        """Words of a candidate, joined by single spaces."""
        return b" ".join(self.tokens(row))

    def top(self, k: int) -> KBest:
        """The first k candidates of each sentence."""
        kept = np.flatnonzero(places_of(self.counts) < k)
        return replace(
            self,
            offsets=offsets_of(np.minimum(self.counts, k)),
            spans=self.spans[kept],
            text_spans=self.text_spans[kept],
            line_numbers=self.line_numbers[kept],
            ranks=self.ranks[kept],
            dense=self.dense[kept],
            totals=None if self.totals is None else self.totals[kept],
            sparse=self.sparse.take(kept),
        )


def column_names(labels: Iterable[Label]) -> list[str]:
    """Names of the F feature values: `LM0`, or `TM0_0`, `TM0_1`, … where one label has several."""
    return [
        label.name if label.width == 1 else f"{label.name}_{i}"
        for label in labels
        for i in range(label.width)
    ]


def split_words(text: bytes) -> list[bytes]:
    """Words of a hypothesis: what ASCII spaces separate."""
    return [word for word in text.split(b" ") if word]


def offsets_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Starts (T+1,) of lists of these sizes (T,)."""
    return np.concatenate([[0], np.cumsum(counts)])


def places_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place (n,) of each row within its list, from 0, for lists of these sizes (T,)."""
    return np.arange(counts.sum()) - np.repeat(offsets_of(counts)[:-1], counts)
