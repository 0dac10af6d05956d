"""K-best lists in memory: as columns, from which everything is computed, and as texts.

T source sentences, K candidates of a sentence, n candidates of all of them, F dense feature
values. Logarithms are natural; larger scores are better.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    offsets_of,
    places_of,
    reversed_lists,
)
from rerank.errors import ArgumentError, InputError
from rerank.files.encoding import LARGEST

MAX_ID = 2**31 - 1  # largest sentence id


@dataclass(frozen=True, slots=True, eq=False)
class KBest:
    """Candidates of T consecutive source sentences, best first.

    Candidates of a file have line numbers and the lines themselves, which only the file's format
    can read; candidates made in memory (`of`) have neither. A source line in place of missing
    candidates (`rerank.corpus.grouping`) has the number 0, and its text as its line.
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
    line_numbers: NDArray[np.int64] | None = None  # (n,) entries of the file, from 1; 0: of none
    places: NDArray[np.int64] | None = None  # (n,) lines of the file, where entries are no lines
    side: Mapping[str, Sequence[bytes]] = field(default_factory=dict)  # (T,) lines of each kind
    truncated: NDArray[np.bool_] | None = None  # (n,) the file calls them cut off, if it says so
    defects: NDArray[np.uint8] | None = None  # (n,) `rerank.corpus.defects`; None: not looked for

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

        Every candidate has the features of the first; each becomes a label of one value. sparse:
        names of features that are 0 in a candidate without them; totals: of the candidates of each
        sentence. `InputError`, which counts sentences and candidates from 0, for other features or
        numbers of totals, values that are not finite, and texts of several lines.
        """
        rows = [candidate for candidates in lists for candidate in candidates]
        names = [name for _, features in rows[:1] for name in features if name not in sparse]
        for t, candidates in enumerate(lists):
            for k, (text, features) in enumerate(candidates):
                if fault := _fault(text, features, names, sparse):
                    raise InputError(f"sentence {t}, candidate {k}: {fault}", source=source)
        counts = np.array([len(candidates) for candidates in lists], np.int64)
        dense = [[features[name] for name in names] for _, features in rows]
        sparse_rows = [{n: v for n, v in features.items() if n in sparse} for _, features in rows]
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
            sparse=SparseColumns.of(sparse_rows),
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
        lists = (self.rows(t) for t in range(len(self)))
        return [self.text(rows[next(path)]) if rows else b"" for rows in lists]

    def first_rows(self) -> NDArray[np.int64]:
        """Row (n,) of the first candidate of the same sentence that has the same text."""
        firsts: dict[tuple[int, bytes], int] = {}
        sentences = np.repeat(np.arange(len(self)), self.counts).tolist()
        texts = (b" ".join(split_words(x)) if b"  " in x else x for x in self.texts.to_list())
        keys = zip(sentences, texts, strict=True)
        return np.array([firsts.setdefault(key, k) for k, key in enumerate(keys)], np.int64)

    def line(self, row: int) -> bytes:
        """The line of a candidate in the file; ValueError for a candidate made in memory."""
        if self.lines is None:
            raise ValueError("candidates that were made in memory have no lines")
        return self.lines[row]

    def line_number(self, row: int) -> int | None:
        """Number of a candidate's line in the file, from 1; None if it is in no file."""
        lines = self.line_numbers if self.places is None else self.places
        return None if lines is None else int(lines[row]) or None

    def top(self, k: int) -> KBest:
        """The first k candidates of each list."""
        return self.where(places_of(self.counts) < k)

    def where(self, kept: NDArray[np.bool_]) -> KBest:
        """The candidates (n,) that are kept, with the ranks and lines that they had."""
        if kept.all():
            return self
        counts = np.diff(np.concatenate([[0], np.cumsum(kept)])[self.offsets])
        return replace(self._part(slice(None), np.flatnonzero(kept)), offsets=offsets_of(counts))

    def sentence(self, t: int) -> KBest:
        """The list of sentence t alone."""
        rows = np.arange(*self.offsets[t : t + 2].tolist())
        return replace(self._part(slice(t, t + 1), rows), first=self.first + t)

    def with_last(self, texts: Sequence[bytes]) -> KBest:
        """Each list that is not empty with a further candidate, whose texts are (T,).

        Its features are 0 and its rank is −1: it is not in the file. No list has lines or totals.
        """
        present = np.flatnonzero(self.counts)
        places = self.offsets[present + 1]
        last = [texts[t] for t in present.tolist()]
        joined = np.insert(np.array(self.texts.to_list(), object), places, last).tolist()
        return replace(
            self,
            offsets=offsets_of(self.counts + (self.counts > 0)),
            texts=TextColumn.of(joined),
            ranks=np.insert(self.ranks, places, -1),
            dense=np.insert(self.dense, places, 0.0, axis=0),
            sparse=SparseColumns.empty(len(joined)),
            totals=None,
            lines=None,
            line_numbers=None,
            places=None,
            truncated=None,
            defects=None,
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
            places=None if self.places is None else self.places[rows],
            side={kind: lines[sentences] for kind, lines in self.side.items()},
            truncated=None if self.truncated is None else self.truncated[rows],
            defects=None if self.defects is None else self.defects[rows],
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
    dense = [name for name in features if name not in sparse]
    if len(dense) != len(names) or any(name not in features for name in names):
        return (
            f"expected the features {', '.join(names) or '(none)'}, as the first candidate has, "
            f"found {', '.join(dense) or '(none)'}; give every candidate the same features, or "
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
        lists, expected = [], "a list of candidates"
        sentences = [*items(f"document {id!r}", f"{expected} a sentence", sentences)]
        for t, sentence in enumerate(sentences):
            place = f"document {id!r}, sentence {t}"
            texts = [sentence] if isinstance(sentence, str) else items(place, expected, sentence)
            lists.append([_candidate(place, candidate) for candidate in texts])
        # a frozen record refuses assignments
        self.__dict__.update(id=id, sentences=lists, kbest=kbest, side=side or {})
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
            side={kind: [line.decode() for line in text] for kind, text in kbest.side.items()},
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


def items(what: str, expected: str, argument: Any) -> Iterable[Any]:
    """An argument that has items; ArgumentError for a text, a mapping, or what has none."""
    if isinstance(argument, Iterable) and not isinstance(argument, str | bytes | Mapping):
        return argument
    raise ArgumentError.of(what, expected, argument)


def _candidate(place: str, argument: Any) -> Candidate:
    """A candidate that is a text, or a text and its features; ArgumentError for something else."""
    match argument:
        case str():
            return argument, {}
        case [str() as text, Mapping() as features]:
            return text, features
    expected = "a text, or a text and its features by name, as ('a cat', {'tm': -1.0})"
    raise ArgumentError.of(place, expected, argument)


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
