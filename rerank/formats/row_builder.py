"""Hypotheses of formats that are no lines of Moses: collected one by one, handed on as columns.

Feature names become what Moses, and therefore every list that we write, can hold: letters and
digits. `tm_pt_0` is read as `tmpt0`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import KBestRows, Label, SparseColumns, TextColumn, concatenate
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, shown
from rerank.files.encoding import LARGEST
from rerank.formats.moses import Moses
from rerank.formats.moses_grammar import differing_widths
from rerank.formats.tokens import CLIP, Number, Place, list_number, plain_name
from rerank.notices import Notices

_CHUNK = 1 << 20  # bytes of texts, and numbers, of a chunk
_SORTED = 1 << 30  # bytes of texts of a list that has to be sorted in memory


class RowBuilder(Place):
    """Collects the hypotheses of a file; its first one sets the features of all.

    clip: magnitude to read for an infinite number, which is otherwise an error.
    """

    def __init__(self, notices: Notices, source: str, clip: float | None) -> None:
        super().__init__(source, notices)
        self._clip, self._first_line = clip, 0
        self.names: tuple[str, ...] | None = None  # of the values of the first hypothesis
        self._labels: tuple[Label, ...] = ()
        self._count = 0
        self.number: Number = list_number(clip, partial(self.note, "infinite-number"))
        self._clear()

    def _clear(self) -> None:
        self._entries: list[bytes] = []
        self._sizes: list[int] = []
        self._lines: list[int] = []
        self._sentences: list[int] = []
        self._values = array("d")  # (n, F), a row after the other
        self._totals: list[float | None] = []
        self._sparse: list[Mapping[str, float]] = []
        self._truncated: list[bool] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        """Whether a chunk has been collected, which `rows` hands over."""
        return self._size > _CHUNK

    @property
    def latest(self) -> bytes:
        """The text of the last hypothesis, which `rows` has not handed over."""
        return self._entries[-1][: self._sizes[-1]]

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
        truncated: bool = False,
    ) -> None:
        """Add a hypothesis of the current line.

        names: of each value, equal for the values of a label, which stand side by side; kept: bytes
        for the format's `write`; truncated: whether the file calls the text cut off.
        """
        values = self.in_order(names, values)
        text = text.strip(b" \t")
        if b"\t" in text:
            self.note("tab-in-text")
            text = text.replace(b"\t", b" ")
        self._entries.append(text + kept)
        self._sizes.append(len(text))
        self._lines.append(self.line)
        self._sentences.append(sentence)
        self._values.extend(values)
        self._totals.append(total)
        self._sparse.append(sparse or {})
        self._truncated.append(truncated)
        self._size += len(text) + len(kept) + 1 + len(values)

    def add_unlabelled(self, sentence: int, text: bytes, values: Sequence[float]) -> None:
        """Add a hypothesis of the current line whose values are called F0, F1, …."""
        n, names = len(values), self.names
        if names is None or len(names) != n:
            names = tuple(f"F{i}" for i in range(n))
        self.add(sentence, text, names, values)

    def extend(
        self,
        sentence: int,
        texts: Sequence[bytes],
        dense: NDArray[np.float64],
        totals: Sequence[float | None],
        kept: bytes,
    ) -> None:
        """Add n hypotheses of the current line with the features of the first one of the file.

        texts: without blanks around them; dense: (n, F) finite numbers, as are the totals (n,);
        kept: bytes for the format's `write`, of the first of them.
        """
        n = len(texts)
        self._entries += texts
        self._entries[-n] += kept
        self._sizes += map(len, texts)
        self._lines += [self.line] * n
        self._sentences += [sentence] * n
        self._values.frombytes(dense.tobytes())
        self._totals += totals
        self._sparse += [{}] * n
        self._truncated += [False] * n
        self._size += sum(self._sizes[-n:]) + len(kept) + n + dense.size

    def rows(self) -> KBestRows:
        """The hypotheses since the last call, as columns."""
        n = len(self._entries)
        self._count += n
        lines = TextColumn.of(self._entries)
        starts = lines.spans[:, 0]
        rows = KBestRows(
            labels=self._labels,
            lines=lines,
            text_spans=np.stack([starts, starts + np.array(self._sizes, np.int64)], axis=1),
            line_numbers=np.arange(self._count - n + 1, self._count + 1),
            sentences=np.array(self._sentences, np.int64),
            dense=np.array(self._values).reshape(n, len(self.names or ())),
            totals=np.array(self._totals, np.float64),  # None becomes NaN
            sparse=SparseColumns.of(self._sparse),
            places=np.array(self._lines, np.int64),
            truncated=np.array(self._truncated, np.bool_),
        )
        self._clear()
        return rows

    # Features

    def in_order(self, names: tuple[str, ...], values: Sequence[Any]) -> Sequence[Any]:
        """Values in the order of `names`, which the first hypothesis sets; else InputError."""
        if names == self.names:
            return values
        if self.names is None:
            self._set_labels(names)
            return values
        expected, widths = Counter(self.names), Counter(names)
        if expected != widths:
            raise self.fault(
                f"expected {len(self.names)} feature values as the first hypothesis has (line "
                f"{self._first_line}), found {len(names)}: {differing_widths(expected, widths)}"
            )
        rank = {name: i for i, name in enumerate(expected)}
        return [values[j] for j in sorted(range(len(names)), key=lambda j: rank[names[j]])]

    def _set_labels(self, names: tuple[str, ...]) -> None:
        """Labels of the features of the first hypothesis."""
        widths = Counter(names)
        originals: dict[str, str] = {}  # of names in letters and digits
        for name in widths:
            plain = plain_name(name)
            if not plain:
                raise self.fault(
                    "expected a feature name with letters or digits, found "
                    f"{shown(name.encode(errors='backslashreplace'))}"
                )
            if plain in originals:
                raise self.fault(
                    f"expected features that differ in letters and digits, found "
                    f"{originals[plain]!r} and {name!r}; rename one"
                )
            originals[plain] = name
        renamed = [f"{name} → {plain}" for plain, name in originals.items() if name != plain]
        if renamed:
            self.note("renamed-feature", names=renamed)
        self.names, self._first_line = names, self.line
        self._labels = tuple(
            Label(plain, widths[name], "" if plain == name else name)
            for plain, name in originals.items()
        )

    # Numbers

    def finite(self, value: object, name: str) -> float:
        """A value of the current line as a finite number; 0 after a refusal."""
        try:
            number = float(value) if type(value) in (float, int) else None  # type: ignore[arg-type]
        except OverflowError:
            number = np.inf if value > 0 else -np.inf  # type: ignore[operator]
        if number is not None and abs(number) <= LARGEST:
            return number
        if number is None:
            self.refuse(InputError(f"expected a number for {name}, found {value!r:.60}"))
            return 0.0
        if self._clip is None or np.isnan(number):
            cure = "" if np.isnan(number) else CLIP
            self.refuse(InputError(f"expected a finite number for {name}, found {number}{cure}"))
            return 0.0
        self.note("infinite-number", asked=True)
        return -abs(self._clip) if number < 0 else abs(self._clip)


class CollectedFormat(ABC):
    """A format whose hypotheses are added one by one, or a sentence at a time."""

    def detect(self, head: Sequence[bytes]) -> bool:
        """Never, of a format whose files could be those of another one: it must be named."""
        return False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file."""
        builder = RowBuilder(notices, source, clip)
        for _ in self.added(builder, lines):
            if builder.full:
                yield builder.rows()
        if len(builder):
            yield builder.rows()

    @abstractmethod
    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file; what is yielded after each step does not matter."""


class ReadOnlyFormat(CollectedFormat):
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


class LineFormat(ReadOnlyFormat):
    """A format with a hypothesis on each line that is not blank."""

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file."""
        for line in builder.filled(lines):
            try:
                self.add(builder, line)
            except InputError as fault:
                builder.refuse(fault)
            yield

    @abstractmethod
    def add(self, builder: RowBuilder, line: bytes) -> None:
        """Add the hypothesis of a line."""


def by_sentence(chunks: Iterable[KBestRows], notices: Notices, source: str) -> Iterator[KBestRows]:
    """The rows sorted by sentence id.

    All of them are in memory, at most 1 GiB of texts: `InputError` for more.
    """
    pieces: list[KBestRows] = []
    size = 0
    for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk.lines.blob)
        if size > _SORTED:
            raise InputError(
                "expected at most 1 GiB of hypotheses, which have to be sorted by sentence, found "
                "more; decode fewer sentences per file",
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
    line = int(rows.file_lines[falls[0] + 1])
    notices.add("order-of-batches", source=source, line=line)
    yield rows.take(np.argsort(ids, kind="stable"))
