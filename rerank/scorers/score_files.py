"""Scores that another tool has written to a file.

`--scores`: one number for each line of the list, a feature of order 0. `--pair-scores`: one number
for each pair of candidates of neighbouring sentences, a feature of order 1:

    document TAB sentence TAB previous index TAB index TAB value

Sentences count from 0 inside their document, candidates from 0 inside their list. The previous
index is that of a candidate of the nearest earlier sentence of the document that has candidates,
`-` if there is none. Documents come in the order of --docs, the lines of a document in any order.
Every pair has one value, a finite number; pairs of candidates that --top drops are skipped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise, Unary
from rerank.corpus.columns import offsets_of, places_of
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest, NamedLists
from rerank.errors import InputError, shown
from rerank.files.encoding import LARGEST
from rerank.files.lines import digest, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import Place, list_number
from rerank.notices import Notices
from rerank.scorers.features import FeatureSource, ScoredDocument
from rerank.scorers.numbers import LineValues, NumberLines

Ints: TypeAlias = NDArray[np.int64]
BLOCK = 1 << 15  # lines that are read together
DROPPED, MISSING = -1, -2  # a candidate that --top leaves out, and one that no list has
_NUMBERS_BYTES = 1 << 10  # most of a line without its document
_PLAIN = b"0123456789+-.eE\t\n"  # bytes of lines without their document


@dataclass(frozen=True, slots=True)
class ListInfo:
    """The k-best lists that a file of scores belongs to.

    kbest: their name for messages; lines: number of their last non-blank line, and those of lines
    of candidates without a text; top: candidates kept of each sentence; clip_inf: value that
    replaces infinities.
    """

    documents: Documents
    kbest: str
    lines: Callable[[], tuple[int, Sequence[int]]]
    top: int | None = None
    clip_inf: float | None = None

    def numbers(
        self, name: str, path: FilePath, notices: Notices, *, clipped: bool = False
    ) -> NumberLines:
        """The numbers of a file for the lines of the lists; clipped: whether infinities may be."""
        parser = partial(list_number, self.clip_inf) if clipped else None
        n, blank = self.lines()
        return NumberLines(path, name, n, notices, lines_of=self.kbest, blank=blank, parser=parser)


class FileScorer(FeatureSource):
    """A feature `name` whose values another tool has written to a file; nothing is rounded.

    Documents are read in their order; asking for an earlier one reads the file again from its
    beginning. Warnings are given for the first reading only.
    """

    runs_on = "file"

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name)
        self.path, self.info, self.documents = path, info, 0
        self.place = Place(display(path), notices, 0)

    @cached_property
    def digest(self) -> str:  # type: ignore[override]  # it can be set, too
        """SHA-256 of the file, in hexadecimal digits."""
        return digest(self.path).removeprefix("sha256:")

    def score(self, documents: Sequence[NamedLists]) -> list[ScoredDocument]:
        """Features of each document, counted for the report."""
        self.documents += len(documents)
        return super().score(documents)

    def report(self) -> str:
        """Number of documents: `pairs: 12 documents from pairs.tsv.gz`."""
        return f"{self.name}: {self.documents:,} documents from {self.place.source}"


class HypothesisScores(FileScorer):
    """A feature of order 0: line i of its file belongs to line i of the list."""

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        if isinstance(path, LineValues):
            self.digest = path.digest
        self._numbers = info.numbers(name, path, notices, clipped=True)

    def problem(self, name: str, kbest: KBest) -> Unary:
        """The values of a document's candidates."""
        ends = np.cumsum(kbest.counts[kbest.counts > 0])
        values = self._numbers.of_candidates(kbest)
        return Unary(np.split(values, ends[:-1]) if kbest.n else [])


# One number a pair


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Index of each pair of kept candidates: `starts[t] + previous · counts[t] + index`.

    T sentences, those without candidates included; a sentence's neighbour is the nearest earlier
    one that has candidates. Candidate i of sentence t in the file is number `kept[offsets[t] + i]`
    of the kept candidates, for i < sizes[t]; lists that are not whole have more candidates.
    """

    counts: Ints  # (T,) kept candidates
    neighbours: Ints  # (T,), −1 where there is none
    starts: Ints  # (T + 1,)
    kept: Ints
    offsets: Ints  # (T + 1,)
    whole: NDArray[np.bool_]  # (T,) whether all candidates of a list are kept

    @classmethod
    def of(cls, kbest: KBest, top: int | None) -> Grid:
        """The pairs of k-best lists whose first `top` candidates are kept; all if it is None."""
        counts = kbest.counts
        present = np.flatnonzero(counts)
        neighbours = np.full(len(counts), -1)
        neighbours[present[1:]] = present[:-1]
        before = np.where(neighbours < 0, 1, counts[neighbours])
        sizes = np.zeros_like(counts)
        sizes[present] = kbest.ranks[kbest.offsets[1:][present] - 1] + 1
        offsets = offsets_of(sizes)
        kept = np.full(offsets[-1], DROPPED)
        kept[np.repeat(offsets[:-1], counts) + kbest.ranks] = places_of(counts)
        starts = offsets_of(before * counts)
        whole = np.ones_like(counts, dtype=np.bool_) if top is None else counts < top
        return cls(counts, neighbours, starts, kept, offsets, whole)

    @property
    def sizes(self) -> Ints:
        """(T,) candidates in the file up to the last that is kept."""
        return np.diff(self.offsets)

    def kept_numbers(self, t: Ints, index: Ints) -> Ints:
        """Numbers (n,) of candidates in the file among the kept ones, `DROPPED` or `MISSING`."""
        listed = index < self.sizes[t]
        numbers = np.where(self.whole[t], MISSING, DROPPED)
        numbers[listed] = self.kept[self.offsets[t[listed]] + index[listed]]
        return numbers

    def places(self, t: Ints, previous: Ints, index: Ints) -> Ints:
        """Indices (n,) of pairs of candidates in the file, `DROPPED` or `MISSING`.

        previous: −1 in a sentence that has no neighbour.
        """
        before, first = np.zeros_like(t), self.neighbours[t] < 0
        before[~first] = self.kept_numbers(self.neighbours[t[~first]], previous[~first])
        before[first != (previous < 0)] = MISSING
        after = self.kept_numbers(t, index)
        places = self.starts[t] + before * self.counts[t] + after
        return np.where(np.minimum(before, after) < 0, np.minimum(before, after), places)

    def pair(self, place: int) -> tuple[int, list[str]]:
        """Sentence of a pair, and its two candidates as they stand in the file."""
        t, shown = int(np.searchsorted(self.starts, place, side="right")) - 1, []
        numbers = divmod(place - int(self.starts[t]), int(self.counts[t]))
        for s, number in zip((int(self.neighbours[t]), t), numbers, strict=True):
            listed = np.flatnonzero(self.kept[self.offsets[s] : self.offsets[s + 1]] == number)
            shown.append("-" if s < 0 else str(listed[0]))
        return t, shown


class PairScores(FileScorer):
    """A feature of order 1. InputError at a pair that is invalid, repeated or missing.

    Memory: 8 bytes a pair of a document, and a block of lines.
    """

    scores_without_context = False

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        self.order = 1
        self._ranks = {document: d for d, document in enumerate(info.documents.ids)}
        self._line_bytes = _NUMBERS_BYTES + max(map(len, self._ranks), default=0) * 4
        self._rewind()

    def _rewind(self) -> None:
        """Go to the first line."""
        self._lines = read_lines(self.path, self.place.notices, max_line_bytes=self._line_bytes)
        self._block: list[bytes] = []
        self._next, self.place.line = 0, 1  # of the current line in the block, and in the file
        self._rank = self._before = -1  # of the current document, and of the one before

    def problem(self, name: str, kbest: KBest) -> Pairwise:
        """The values of all pairs of a document."""
        if not kbest.n:
            return Pairwise([])
        if self._ranks[name] <= self._rank:
            self.place.notices = Notices()
            self._rewind()
        self._before, self._rank = self._rank, self._ranks[name]
        grid = Grid.of(kbest, self.info.top)
        values, begin = np.full(grid.starts[-1], np.nan), f"{name}\t".encode()
        while (line := self._peek()) is not None:
            end = bisect_left(
                self._block, True, lo=self._next, key=lambda other: not other.startswith(begin)
            )
            lines = self._block[self._next : end] or [line]
            if self._plain(lines, begin, grid, values):
                self._step(len(lines))
                continue
            for line in lines:
                if not self._taken(line, grid, values):
                    return self._complete(name, grid, values)
                self._step()
        return self._complete(name, grid, values)

    def _peek(self) -> bytes | None:
        """The current line; None after the last."""
        if self._next == len(self._block):
            self._block, self._next = list(islice(self._lines, BLOCK)), 0
        return self._block[self._next] if self._block else None

    def _step(self, lines: int = 1) -> None:
        """Go to a later line."""
        self._next += lines
        self.place.line += lines

    def _plain(
        self, lines: list[bytes], begin: bytes, grid: Grid, values: NDArray[np.float64]
    ) -> bool:
        """Whether all lines are of the document and plain; then their values are entered.

        Plain lines need no blanks stripped, no number clipped and no error. A column at a time is
        several times as fast as `_taken`, which reads all other lines.
        """
        blob = b"\n".join([b"", *lines]).replace(b"\n" + begin, b"\t\n")
        n, fields = len(lines), blob.split(b"\t")[1:]
        if len(fields) != 4 * n or blob.translate(None, _PLAIN):
            return False
        # every line begins with LF and a sentence, and has four columns, if all of these are known
        sentences = {b"\n%d" % t: t for t in np.flatnonzero(grid.counts).tolist()}
        indices = _Indices({b"-": -1})
        try:
            t = np.fromiter(map(sentences.__getitem__, fields[::4]), np.int64, n)
            previous = np.fromiter(map(indices.__getitem__, fields[1::4]), np.int64, n)
            index = np.fromiter(map(indices.__getitem__, fields[2::4]), np.int64, n)
            numbers = np.fromiter(map(float, fields[3::4]), np.float64, n)
        except (KeyError, ValueError, OverflowError):
            return False
        places = grid.places(t, previous, index)
        kept = places != DROPPED
        places = places[kept]
        if (places == MISSING).any() or not (np.abs(numbers) <= LARGEST).all():
            return False
        if not (np.diff(np.sort(places)).all() and np.isnan(values[places]).all()):
            return False
        values[places] = numbers[kept]
        return True

    def finish(self, source: str, notices: Notices) -> None:
        """InputError for lines that belong to no document that has candidates."""
        while (line := self._peek()) is not None:
            if fields := self._fields(line):
                self._document(fields[0])
                raise self.place.fault(_without_candidates(fields[0]))
            self._step()

    def _complete(self, name: str, grid: Grid, values: NDArray[np.float64]) -> Pairwise:
        """The problem of a document; InputError unless every pair has a value."""
        missing = np.flatnonzero(np.isnan(values))
        if not len(missing):
            sentences = np.flatnonzero(grid.counts)
            pairs = np.split(values, grid.starts[sentences[1:]])
            counts = grid.counts[sentences]
            return Pairwise([own.reshape(-1, k) for own, k in zip(pairs, counts, strict=True)])
        t, (previous, index) = grid.pair(int(missing[0]))
        raise self.place.fault(
            f"expected all {len(values):,} pairs of document {name!r} before this line, found "
            f"{len(missing):,} of them missing, first that of sentence {t}, previous index "
            f"{previous}, index {index}; write a line for each pair, or cut the lists with --top"
        )

    # Grammar of a line

    def _taken(self, line: bytes, grid: Grid, values: NDArray[np.float64]) -> bool:
        """Whether a line belongs to the current document; its value is entered."""
        fields = self._fields(line)
        if not fields:
            self.place.note("blank-line")
            return True
        if self._document(fields[0]) > self._rank:
            return False
        place = self._place(fields, grid)
        if place != DROPPED:
            if not np.isnan(values[place]):
                raise self.place.fault(
                    "expected each pair once, found this one again; delete either"
                )
            clipped = partial(self.place.note, "infinite-number", asked=True)
            try:
                values[place] = list_number(self.info.clip_inf, clipped)(fields[4], self.name)
            except InputError as fault:
                raise self.place.fault(str(fault)) from None
        return True

    def _fields(self, line: bytes) -> list[bytes]:
        """The five columns of a line; none of a blank line."""
        fields = [field.strip(b" \r") for field in line.split(b"\t")]
        if not any(fields):
            return []
        if len(fields) != 5:
            raise self.place.fault(
                "expected 5 columns (document, sentence, previous index, index, value) with a TAB "
                f"between them, found {len(fields)}: {shown(line)}"
            )
        return fields

    def _document(self, field: bytes) -> int:
        """Rank of a document, which is the current one or a later one."""
        rank = self._ranks.get(field.decode())
        if rank is None:
            raise self.place.fault(
                f"expected a document id of the lists, found {shown(field)}; ids are those of "
                "--docs, numbers from 0 with --no-docs each, and 'all' with --no-docs one"
            )
        if self._before < rank < self._rank:
            raise self.place.fault(_without_candidates(field))
        if rank < self._rank:
            raise self.place.fault(
                f"expected documents in the order of --docs, each in one run of lines, found "
                f"{shown(field)} again or too late; sort the file by document"
            )
        return rank

    def _place(self, fields: list[bytes], grid: Grid) -> int:
        """Index of a line's pair; `DROPPED` if --top leaves out one of its candidates."""
        t = self._index(fields[1], "a sentence")
        if t >= len(grid.counts) or not grid.counts[t]:
            raise self.place.fault(
                f"expected a sentence of document {shown(fields[0])} that has candidates, found "
                f"{t}; they count from 0 inside their document, of {len(grid.counts)} sentences"
            )
        previous, before = -1, int(grid.neighbours[t])
        if before >= 0:
            previous = self._candidate(fields[2], "a previous index", before, grid)
        elif fields[2] != b"-":
            raise self.place.fault(
                f"expected '-' as previous index of sentence {t}, the first of its document that "
                f"has candidates, found {shown(fields[2])}"
            )
        index = self._candidate(fields[3], "an index", t, grid)
        return int(grid.places(np.array([t]), np.array([previous]), np.array([index]))[0])

    def _candidate(self, field: bytes, what: str, t: int, grid: Grid) -> int:
        """A column that is the number of a candidate of sentence t in the file."""
        index = self._index(field, what)
        if grid.kept_numbers(np.array([t]), np.array([index]))[0] == MISSING:
            raise self.place.fault(
                f"expected {what} below {grid.sizes[t]}, the candidates of sentence {t}, found "
                f"{index}; they count from 0 in the order of the list"
            )
        return index

    def _index(self, field: bytes, what: str) -> int:
        """A non-negative integer."""
        if not (field.isdigit() and len(field) < 19):  # of bytes: ASCII digits
            raise self.place.fault(f"expected {what} (digits 0-9), found {shown(field)}")
        return int(field)


class _Indices(dict[bytes, int]):
    """Integers by their digits, each read once."""

    def __missing__(self, digits: bytes) -> int:
        if not digits.isdigit():
            raise ValueError
        self[digits] = found = int(digits)
        return found


def _without_candidates(field: bytes) -> str:
    """Message about a line of a document without candidates."""
    return (
        f"expected documents that have candidates, found {shown(field)}, which has none; "
        "are these the scores of another list?"
    )
