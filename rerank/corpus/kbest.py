"""K-best lists in memory: rows as a format reads them, lists of sentences, documents as texts.

T source sentences, K candidates of a sentence, n candidates of all of them, F dense feature
values. Logarithms are natural; larger scores are better.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import (
    Label,
    SparseColumns,
    TextColumn,
    column_names,
    joined_spans,
    offsets_of,
    places_of,
    reversed_lists,
)
from rerank.errors import ArgumentError, InputError
from rerank.files.arrays import ArrayStore
from rerank.files.encoding import LARGEST

_NUMBERS = ("line_numbers", "sentences", "dense", "totals", "places")  # columns of `KBestRows`
MAX_ID = 2**31 - 1  # largest sentence id


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
        for piece, own in zip(pieces, columns, strict=True):
            own["places"] = piece.file_lines
    numbers: dict[str, Any] = {
        name: _stacked([own[name] for own in columns], store) for name in columns[0]
    }
    lines = TextColumn(
        _joined(pieces, store), _shifted([piece.lines.spans for piece in pieces], starts, store)
    )
    return replace(
        pieces[0],
        lines=lines,
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


@dataclass(frozen=True, slots=True, eq=False)
class KBest:
    """Candidates of T consecutive source sentences, best first.

    Candidates of a file have line numbers and the lines themselves, which only the file's format
    can read; candidates made in memory (`of`) have neither. The candidate that takes the place of
    missing ones (`rerank.corpus.grouping`) has the number 0, and its text as its line.
    """

    source: str  # file name for messages
    first: int  # number of the first of the T sentences, from 0, in the source
    offsets: NDArray[np.int64]  # (T+1,): sentence t has the rows offsets[t]:offsets[t + 1]
    texts: TextColumn  # (n,) hypotheses, without white space around them
    ranks: NDArray[np.int64]  # (n,) places in the file's lists, rising; −1 of texts in none
    labels: tuple[Label, ...]  # their widths sum to F
    dense: NDArray[np.float64]  # (n, F)
    sparse: SparseColumns
    totals: NDArray[np.float64] | None = None  # (n,); None if any line of the document has none
    lines: TextColumn | None = None  # (n,) as they are in the file
    line_numbers: NDArray[np.int64] | None = None  # (n,) in the file, from 1; 0: not in the file
    side: Mapping[str, Sequence[bytes]] = field(default_factory=dict)  # (T,) lines of each kind

    @classmethod
    def of(
        cls,
        lists: Sequence[Sequence[tuple[str, Mapping[str, float]]]],
        *,
        source: str = "",
        sparse: Collection[str] = (),
        totals: Sequence[Sequence[float]] | None = None,
    ) -> KBest:
        """K-best lists in memory: the candidates of each sentence, a text and its features each.

        >>> KBest.of([[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})], []]).counts.tolist()
        [2, 0]

        Every candidate has the features of the first one; each becomes a label of one value.
        sparse: names of features that are 0 in a candidate without them; totals: of the candidates
        of each sentence. `InputError`, which counts sentences and candidates from 0, for other
        features, for another number of totals, for values that are not finite numbers, and for a
        text of several lines.
        """
        rows = [candidate for candidates in lists for candidate in candidates]
        names = [name for _, features in rows[:1] for name in features if name not in sparse]
        for t, candidates in enumerate(lists):
            for k, (text, features) in enumerate(candidates):
                if fault := _fault(text, features, names, sparse):
                    raise InputError(f"sentence {t}, candidate {k}: {fault}", source=source)
        counts = np.array([len(candidates) for candidates in lists], np.int64)
        dense = [[features[name] for name in names] for _, features in rows]
        others = [{n: v for n, v in features.items() if n in sparse} for _, features in rows]
        try:
            texts = TextColumn.of([text.encode().strip() for text, _ in rows])
        except UnicodeEncodeError as fault:
            what = f"expected a text in Unicode, found a half surrogate in {fault.object!r:.60}"
            raise InputError(what, source=source) from None
        return cls(
            source=source,
            first=0,
            offsets=offsets_of(counts),
            texts=texts,
            ranks=places_of(counts),
            labels=tuple(Label(name, 1) for name in names),
            dense=np.array(dense, np.float64).reshape(len(rows), len(names)),
            sparse=SparseColumns.of(others),
            totals=None if totals is None else _flat_totals(totals, counts.tolist(), source),
        )

    def __len__(self) -> int:
        """T, sentences without candidates included."""
        return len(self.offsets) - 1

    @property
    def n(self) -> int:
        """Number of candidates."""
        return len(self.texts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """K of each sentence, (T,)."""
        return np.diff(self.offsets)

    def rows(self, t: int) -> range:
        """Rows of the candidates of sentence t."""
        return range(int(self.offsets[t]), int(self.offsets[t + 1]))

    def tokens(self, row: int) -> list[bytes]:
        """Words of a candidate: what ASCII spaces separate."""
        return split_words(self.texts[row])

    def text(self, row: int) -> bytes:
        """Words of a candidate, joined by single spaces."""
        return b" ".join(self.tokens(row))

    def chosen(self, choices: Sequence[int]) -> list[bytes]:
        """Text of each sentence, (T,): of a path's candidate, empty where there is none."""
        path = iter(choices)
        rows = (self.rows(t) for t in range(len(self)))
        return [self.text(found[next(path)]) if found else b"" for found in rows]

    def line(self, row: int) -> bytes:
        """The line of a candidate as it is in the file; ValueError for one made in memory."""
        if self.lines is None:
            raise ValueError("candidates that were made in memory have no lines")
        return self.lines[row]

    def line_number(self, row: int) -> int | None:
        """Number of a candidate's line in the file, from 1; None for one that is in no file."""
        return None if self.line_numbers is None else int(self.line_numbers[row]) or None

    def top(self, k: int) -> KBest:
        """The first k candidates of each list."""
        kept = self._part(slice(None), np.flatnonzero(places_of(self.counts) < k))
        return replace(kept, offsets=offsets_of(np.minimum(self.counts, k)))

    def sentence(self, t: int) -> KBest:
        """The list of sentence t alone."""
        rows = np.arange(*self.offsets[t : t + 2].tolist())
        return replace(self._part(slice(t, t + 1), rows), first=self.first + t)

    def with_last(self, texts: Sequence[bytes]) -> KBest:
        """Each list that has candidates with one more, its text (T,); the features of these are 0.

        These have the rank −1: they are not in the file's list. There are neither lines nor totals.
        """
        present = np.flatnonzero(self.counts)
        places = self.offsets[present + 1]
        added = [texts[t] for t in present.tolist()]
        joined = np.insert(np.array(self.texts.to_list(), object), places, added).tolist()
        nothing = np.zeros((len(places), self.dense.shape[1]))
        return replace(
            self,
            offsets=offsets_of(self.counts + (self.counts > 0)),
            texts=TextColumn.of(joined),
            ranks=np.insert(self.ranks, places, -1),
            dense=np.insert(self.dense, places, nothing, axis=0),
            sparse=SparseColumns.empty(len(joined)),
            totals=None,
            lines=None,
            line_numbers=None,
        )

    def reversed(self) -> KBest:
        """The lists from the last sentence to the first; `first` stays that of the source."""
        return self._part(slice(None, None, -1), reversed_lists(self.counts))

    def _part(self, sentences: slice, rows: NDArray[np.int64]) -> KBest:
        """The lists of some sentences, whose candidates are in these rows; `first` as it was."""
        return replace(
            self,
            offsets=offsets_of(self.counts[sentences]),
            texts=self.texts.take(rows),
            ranks=self.ranks[rows],
            dense=self.dense[rows],
            sparse=self.sparse.take(rows),
            totals=None if self.totals is None else self.totals[rows],
            lines=None if self.lines is None else self.lines.take(rows),
            line_numbers=None if self.line_numbers is None else self.line_numbers[rows],
            side={kind: lines[sentences] for kind, lines in self.side.items()},
        )


NamedLists: TypeAlias = tuple[str, KBest]
"""Id of a document, and its k-best lists."""


def split_words(text: bytes) -> list[bytes]:
    """Words of a hypothesis: what ASCII spaces separate."""
    return [word for word in text.split(b" ") if word]


def _fault(
    text: str, features: Mapping[str, float], names: Sequence[str], sparse: Collection[str]
) -> str:
    """What is wrong with a candidate made in memory; empty if nothing is."""
    if "\n" in text:
        return f"expected a text of one line, found {text!r}; replace the line ends by spaces"
    found = [name for name in features if name not in sparse]
    if len(found) != len(names) or any(name not in features for name in names):
        return (
            f"expected the features {', '.join(names) or '(none)'}, as the first candidate has, "
            f"found {', '.join(found) or '(none)'}; give every candidate the same features, or "
            "name those that may be missing as sparse"
        )
    for name, value in features.items():
        if not isinstance(name, str):
            return f"expected names of features, found {name!r}"
        if fault := _fault_of_number(f"the feature {name!r}", value):
            return fault
    return ""


def _fault_of_number(what: str, value: float) -> str:
    """What is wrong with a number of a candidate made in memory; empty if nothing is."""
    if isinstance(value, Real) and abs(value) <= LARGEST:
        return ""
    return f"expected a finite number up to {LARGEST:g} for {what}, found {value!r}"


def _flat_totals(
    totals: Sequence[Sequence[float]], counts: Sequence[int], source: str
) -> NDArray[np.float64]:
    """Totals (n,) of lists made in memory; counts[t]: number of candidates of sentence t."""
    place, expected = f"document {source!r}, totals", "a list of numbers"
    lists = [
        [*items(f"{place}, sentence {t}", expected, numbers)]
        for t, numbers in enumerate(items(place, f"{expected} for each sentence", totals))
    ]
    if len(lists) != len(counts):
        fault = f"expected totals of {len(counts)} sentences, found those of {len(lists)}"
        raise InputError(fault, source=source)
    for t, (numbers, count) in enumerate(zip(lists, counts, strict=True)):
        if len(numbers) != count:
            fault = f"expected totals of {count} candidates, found {len(numbers)}"
            raise InputError(f"sentence {t}: {fault}", source=source)
        for k, value in enumerate(numbers):
            if fault := _fault_of_number("the total", value):
                raise InputError(f"sentence {t}, candidate {k}: {fault}", source=source)
    return np.array([value for numbers in lists for value in numbers], np.float64)


Candidate: TypeAlias = tuple[str, Mapping[str, float]]
"""Text of a hypothesis, and its features by name."""


@dataclass(frozen=True, eq=False, init=False)
class Document:
    """The k-best lists of a document; a sentence without candidates has an empty list.

    A candidate that is a string has no features; a sentence that is a string is its only candidate.
    side: side information for language models that need it, such as `{"source": [...]}`: a text
    for each sentence, as in a line of the file of `rerank decode --source`. systems: name of each
    system by its feature, which is 1 of the system's outputs and 0 of others, as of `rerank.read`.
    totals: the decoder's score of each candidate, by sentence: larger is better; tuning without
    start weights begins at weights that give them, or else the order of the candidates.

    >>> Document("talk-1", [[("the cat", {"tm": -1.0}), ("a cat", {"tm": -1.2})], []]).texts
    [['the cat', 'a cat'], []]
    """

    id: str
    sentences: Sequence[Sequence[Candidate]]
    kbest: KBest | None = field(default=None, repr=False)
    """The lists as they were read from a file."""
    side: Mapping[str, Sequence[str]] = field(default_factory=dict, kw_only=True)
    systems: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    totals: Sequence[Sequence[float]] | None = field(default=None, kw_only=True)

    def __init__(
        self,
        id: str,
        sentences: Sequence[str | Sequence[str | Candidate]],
        kbest: KBest | None = None,
        *,
        side: Mapping[str, Sequence[str]] | None = None,
        systems: Mapping[str, str] | None = None,
        totals: Sequence[Sequence[float]] | None = None,
    ) -> None:
        if not isinstance(id, str):
            raise ArgumentError.of("document", "an id that is a text", id)
        if not isinstance(side or {}, Mapping):
            raise ArgumentError.of(f"document {id!r}, side", "texts by kind", side)
        found, expected = [], "a list of candidates"
        for t, given in enumerate(items(f"document {id!r}", f"{expected} a sentence", sentences)):
            place = f"document {id!r}, sentence {t}"
            each = [given] if isinstance(given, str) else items(place, expected, given)
            found.append([_candidate(place, one) for one in each])
        # a frozen record refuses assignments
        self.__dict__.update(id=id, sentences=found, kbest=kbest, side=side or {})
        self.__dict__.update(systems=systems or {}, totals=totals)

    @classmethod
    def of(cls, name: str, kbest: KBest, systems: Mapping[str, str] | None = None) -> Document:
        """The lists of a file; texts are decoded now, features are read when they are used."""
        lists, totals = [kbest.rows(t) for t in range(len(kbest))], kbest.totals
        return cls(
            name,
            [
                [(kbest.text(row).decode(), _RowFeatures(kbest, row)) for row in rows]
                for rows in lists
            ],
            kbest,
            side={kind: [line.decode() for line in own] for kind, own in kbest.side.items()},
            systems=systems,
            totals=None if totals is None else [totals[r.start : r.stop].tolist() for r in lists],
        )

    @cached_property
    def texts(self) -> list[list[str]]:
        """Texts of the candidates of each sentence."""
        return [[text for text, _ in candidates] for candidates in self.sentences]

    @cached_property
    def present(self) -> list[int]:
        """Numbers of the sentences that have candidates."""
        return [t for t, candidates in enumerate(self.sentences) if candidates]


def items(what: str, expected: str, given: Any) -> Iterable[Any]:
    """An argument that has items; ArgumentError for a text, a mapping, or what has none."""
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping):
        return given
    raise ArgumentError.of(what, expected, given)


def _candidate(place: str, given: Any) -> Candidate:
    """A candidate that is a text, or a text and its features; ArgumentError for something else."""
    if isinstance(given, str):
        return given, {}
    if isinstance(given, tuple | list) and len(given) == 2:
        text, features = given
        if isinstance(text, str) and isinstance(features, Mapping):
            return text, features
    expected = "a text, or a text and its features by name, as ('a cat', {'tm': -1.0})"
    raise ArgumentError.of(place, expected, given)


class _RowFeatures(Mapping[str, float]):
    """Features of one row of k-best lists by name: `TM0_0`, `TM0_1` of a label with two values."""

    __slots__ = ("_kbest", "_row")

    def __init__(self, kbest: KBest, row: int) -> None:
        self._kbest, self._row = kbest, row

    def _values(self) -> dict[str, float]:
        kbest, row = self._kbest, self._row
        values = dict(zip(column_names(kbest.labels), kbest.dense[row].tolist(), strict=True))
        return values | kbest.sparse.row(row)

    def __getitem__(self, name: str) -> float:
        return self._values()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())
