"""Hypotheses of formats that are no lines of Moses: collected one by one, handed on as columns.

Feature names become what Moses, and therefore every list that we write, can hold: letters and
digits. `tm_pt_0` is read as `tmpt0`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rerank.corpus import LARGEST
from rerank.corpus.columns import Label, SparseColumns, TextColumn
from rerank.corpus.kbest import MAX_ID, KBest, KBestRows, concatenate
from rerank.errors import InputError
from rerank.formats.moses import Moses
from rerank.formats.tokens import Number, list_number, plain_name, shown
from rerank.notices import Notices

RENAMED = "feature renamed to letters and digits"
CLIPPED = "infinite number, clipped"
_CHUNK = 1 << 20  # bytes of texts, or numbers, of a chunk
_SORTED = 1 << 30  # bytes of texts of a list that has to be sorted in memory
_BLANK = 32
_ID = re.compile(rb"[0-9]{1,10}")


class Hypotheses:
    """Collects the hypotheses of a file; its first one sets the features of all.

    clip: magnitude to read for an infinite number, which is otherwise an error.
    """

    def __init__(self, notices: Notices, source: str, clip: float | None) -> None:
        self._notices, self._source, self._clip = notices, source, clip
        self._line = 1
        self._first_line = 0
        self._names: tuple[str, ...] | None = None
        self._labels: tuple[Label, ...] = ()
        self._count = 0
        self.number: Number = list_number(clip, partial(self._note, CLIPPED))
        self._clear()

    def _clear(self) -> None:
        self._entries: list[bytes] = []
        self._sizes: list[int] = []
        self._lines: list[int] = []
        self._sentences: list[int] = []
        self._values: list[float] = []
        self._totals: list[float | None] = []
        self._sparse: list[Mapping[str, float]] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        """Whether a chunk has been collected, which `rows` hands over."""
        return self._bytes > _CHUNK or max(len(self._values), len(self._entries)) > _CHUNK

    def fault(self, message: str) -> InputError:
        """The error about the current line."""
        return InputError(message, source=self._source, line=self._line)

    def at(self, line: int) -> None:
        """Errors and hypotheses from now on are of this line of the file."""
        self._line = line

    def add(
        self,
        sentence: int,
        text: bytes,
        names: tuple[str, ...],
        values: Sequence[float],
        *,
        total: float | None = None,
        sparse: Mapping[str, float] | None = None,
        kept: bytes = b"",
    ) -> None:
        """Add a hypothesis of the current line.

        names: of each value, equal for the values of a label, which stand side by side; kept: bytes
        for the format's `write`.
        """
        if names != self._names:
            values = self._in_order(names, values)
        text = text.strip(b" ")
        self._entries.append(text + kept)
        self._sizes.append(len(text))
        self._lines.append(self._line)
        self._sentences.append(sentence)
        self._values += values
        self._totals.append(total)
        self._count += 1
        self._sparse.append(sparse or {})
        self._bytes += len(text) + len(kept)

    def rows(self) -> KBestRows:
        """The hypotheses since the last call, as columns."""
        n = len(self._entries)
        width = sum(label.width for label in self._labels)
        lines = TextColumn.of(self._entries)
        starts = lines.spans[:, 0]
        rows = KBestRows(
            labels=self._labels,
            lines=lines,
            text_spans=np.stack([starts, starts + np.array(self._sizes, np.int64)], axis=1),
            line_numbers=np.arange(self._count - n + 1, self._count + 1),
            sentences=np.array(self._sentences, np.int64),
            dense=self._numbers(self._values, max(1, width)).reshape(n, width),
            totals=self._all_totals(),
            sparse=SparseColumns.of(
                [
                    {name: self._checked(v, name, line) for name, v in found.items()}
                    for found, line in zip(self._sparse, self._lines, strict=True)
                ]
            ),
            places=np.array(self._lines, np.int64),
        )
        self._clear()
        return rows

    @property
    def empty(self) -> bool:
        """Whether no hypothesis was added yet, so that features are not known."""
        return self._names is None

    def has(self, names: tuple[str, ...]) -> bool:
        """Whether the first hypothesis has these values in the order of its labels."""
        return names == self._names

    def with_columns(
        self,
        lines: TextColumn,
        text_spans: NDArray[np.int64],
        places: NDArray[np.int64],
        sentences: NDArray[np.int64],
        dense: NDArray[np.float64],
        totals: NDArray[np.float64],
    ) -> KBestRows:
        """Further hypotheses with the features of the first one, already in columns (n, …).

        Numbers are finite; hypotheses that were added one by one have been handed over.
        """
        n = len(lines)
        self._count += n
        return KBestRows(
            labels=self._labels,
            lines=lines,
            text_spans=text_spans,
            line_numbers=np.arange(self._count - n + 1, self._count + 1),
            sentences=sentences,
            dense=dense,
            totals=totals,
            sparse=SparseColumns.empty(n),
            places=places,
        )

    # Features

    def _in_order(self, names: tuple[str, ...], values: Sequence[float]) -> Sequence[float]:
        """Values in the order of the labels, which the first hypothesis sets."""
        if self._names is None:
            self._set_labels(names)
            return values
        expected, found = Counter(self._names), Counter(names)
        if expected != found:
            faults = [
                f"{name} has {found[name]} instead of {expected[name]}"
                for name in [*expected, *(found.keys() - expected)]
                if found[name] != expected[name]
            ]
            raise self.fault(
                f"expected {len(self._names)} feature values as the first hypothesis has (line "
                f"{self._first_line}), found {len(names)}: {', '.join(faults[:5])}"
            )
        rank = {name: i for i, name in enumerate(expected)}
        return [values[j] for j in sorted(range(len(names)), key=lambda j: rank[names[j]])]

    def _set_labels(self, names: tuple[str, ...]) -> None:
        """Labels of the features of the first hypothesis."""
        widths = Counter(names)
        plain = {name: self._plain(name) for name in widths}
        for clean, n in Counter(plain.values()).items():
            if n > 1:
                same = [name for name, other in plain.items() if other == clean]
                raise self.fault(
                    f"expected features that differ in letters and digits, found "
                    f"{same[0]!r} and {same[1]!r}; rename one"
                )
        renamed = [f"{name} → {clean}" for name, clean in plain.items() if name != clean]
        if renamed:
            self._notices.add(RENAMED, source=self._source, line=self._line, names=renamed)
        self._names, self._first_line = names, self._line
        self._labels = tuple(
            Label(clean, widths[name], "" if clean == name else name)
            for name, clean in plain.items()
        )

    def _plain(self, name: str) -> str:
        """The name in letters and digits."""
        plain = plain_name(name)
        if not plain:
            raise self.fault(
                f"expected a feature name with letters or digits, found {shown(name.encode())}"
            )
        return plain

    # Numbers

    def _numbers(self, values: list[float], width: int) -> NDArray[np.float64]:
        """The values as an array; InputError for one that is no number or not finite."""
        if set(map(type, values)) <= {float, int}:
            try:
                found = np.array(values, np.float64)
            except OverflowError:
                found = np.array([np.inf])
            if not len(found) or bool((np.abs(found) <= LARGEST).all()):
                return found
        names = [label.name for label in self._labels for _ in range(label.width)] or ["total"]
        return np.array(
            [
                self._checked(value, names[i % width], self._lines[i // width])
                for i, value in enumerate(values)
            ]
        )

    def _all_totals(self) -> NDArray[np.float64]:
        """The totals, NaN where there is none."""
        if not any(total is not None for total in self._totals):
            return np.full(len(self._totals), np.nan)
        return np.array(
            [
                np.nan if total is None else self._checked(total, "the total", line)
                for total, line in zip(self._totals, self._lines, strict=True)
            ]
        )

    def _checked(self, value: object, name: str, line: int) -> float:
        """A value as a finite number."""
        self._line = line
        if type(value) not in (float, int):
            self._notices.refuse(self.fault(f"expected a number for {name}, found {value!r:.60}"))
            return 0.0
        try:
            number = float(value)  # type: ignore[arg-type]
        except OverflowError:
            number = np.inf
        if abs(number) <= LARGEST:
            return number
        if self._clip is None or np.isnan(number):
            cure = "" if np.isnan(number) else "; give --clip-inf -1e4 to read infinities as ±1e4"
            self._notices.refuse(
                self.fault(f"expected a finite number for {name}, found {number}{cure}")
            )
            return 0.0
        self._note(CLIPPED)
        return -abs(self._clip) if number < 0 else abs(self._clip)

    def _note(self, kind: str) -> None:
        self._notices.add(kind, source=self._source, line=self._line)


class ReadOnlyFormat:
    """A format that is read, but not written: its lists are written as Moses lists."""

    def write(
        self,
        kbest: KBest,
        names: Sequence[str],
        values: NDArray[np.float64],
        totals: NDArray[np.float64] | None,
        *,
        first_id: int,
    ) -> Iterator[bytes]:
        """Lines of a Moses list."""
        bare = replace(kbest, lines=None)
        return Moses().write(bare, names, values, totals, first_id=first_id)


def stripped(blob: bytes, spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """Spans (n, 2) without the blanks at the ends of their texts."""
    content = np.frombuffer(blob, np.uint8)
    new = spans.copy()
    starts, stops = spans.T
    some = np.flatnonzero(starts < stops)
    ends = (content[starts[some]] == _BLANK) | (content[stops[some] - 1] == _BLANK)
    for row in some[ends].tolist():
        start, stop = spans[row].tolist()
        text = blob[start:stop].lstrip(b" ")
        new[row] = stop - len(text), stop - len(text) + len(text.rstrip(b" "))
    return new


def sentence_id(token: bytes) -> int:
    """A sentence id: ASCII digits, at most 2**31 - 1; InputError for another."""
    if _ID.fullmatch(token) is None or int(token) > MAX_ID:
        raise InputError(f"expected a sentence id (digits 0-9, below 2^31), found {shown(token)}")
    return int(token)


def by_sentence(
    chunks: Iterable[KBestRows], notices: Notices, *, source: str
) -> Iterator[KBestRows]:
    """The rows sorted by sentence id, for formats whose lists come in another order.

    All of them are in memory, at most 1 GiB of texts: `InputError` for more.
    """
    pieces: list[KBestRows] = []
    size = 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk.lines.blob)
        if size > _SORTED:
            raise InputError(
                "expected at most 1 GiB of hypotheses, which have to be sorted by sentence, "
                "found more; decode fewer sentences per file",
                source=source,
                line=int(chunk.file_lines[-1]),
            )
    if not pieces:
        return
    ids = np.concatenate([piece.sentences for piece in pieces])
    falls = np.flatnonzero(np.diff(ids) < 0)
    if not len(falls):
        yield from pieces
        return
    rows = concatenate(pieces)
    notices.add(
        "sentences in the order of batches, sorted by id",
        source=source,
        line=int(rows.file_lines[falls[0] + 1]),
    )
    yield rows.take(np.argsort(ids, kind="stable"))
