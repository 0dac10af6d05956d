"""`--pair-scores`: one number for each pair of candidates of neighbouring sentences.

    document TAB sentence TAB previous index TAB index TAB value

Sentences count from 0 inside their document, candidates from 0 inside their list. The previous
index is that of a candidate of the nearest earlier sentence of the document that has candidates,
`-` if there is none. Documents come in the order of --docs, the lines of a document in any order.
Every pair has one value, a finite number; pairs of candidates that --top drops are skipped.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise
from rerank.corpus import LARGEST
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath
from rerank.formats.tokens import shown
from rerank.notices import Notices
from rerank.scorers.file_scorer import FileScorer, ListInfo
from rerank.scorers.pair_grid import DROPPED, MISSING, Grid

BLOCK = 1 << 15  # lines that are read together
_NUMBERS_BYTES = 1 << 10  # most of a line without its document
_PLAIN = b"0123456789+-.eE\t\n"  # bytes of lines without their document


class PairScores(FileScorer):
    """A feature of order 1. InputError at a pair that is invalid, repeated or missing.

    Memory: 8 bytes a pair of a document, and a block of lines.
    """

    order = 1
    contextless = False

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        self._ranks = {own: d for d, own in enumerate(info.documents.ids)}
        self._line_bytes = _NUMBERS_BYTES + max(map(len, self._ranks), default=0) * 4
        self._rewind()

    def _rewind(self) -> None:
        self._lines = read_lines(self.path, self.notices, max_line_bytes=self._line_bytes)
        self._block: list[bytes] = []
        self._next, self._number = 0, 1  # of the current line in the block, and in the file
        self._rank = self._before = -1  # of the current document, and of the one before

    def problem(self, name: str, kbest: KBest) -> Pairwise:
        """The values of all pairs of a document."""
        if not kbest.n:
            return Pairwise([])
        if self._ranks[name] <= self._rank:
            self.notices = Notices()
            self._rewind()
        self._before, self._rank = self._rank, self._ranks[name]
        grid = Grid.of(kbest, self.info.top)
        flat, begin = np.full(grid.starts[-1], np.nan), f"{name}\t".encode()
        while (line := self._peek()) is not None:
            end = bisect_left(
                self._block, True, lo=self._next, key=lambda other: not other.startswith(begin)
            )
            lines = self._block[self._next : end] or [line]
            if self._plain(lines, begin, grid, flat):
                self._step(len(lines))
                continue
            for line in lines:
                if not self._taken(line, grid, flat):
                    return self._complete(name, grid, flat)
                self._step()
        return self._complete(name, grid, flat)

    def _peek(self) -> bytes | None:
        """The current line; None after the last."""
        if self._next == len(self._block):
            self._block, self._next = list(islice(self._lines, BLOCK)), 0
        return self._block[self._next] if self._block else None

    def _step(self, lines: int = 1) -> None:
        self._next += lines
        self._number += lines

    def _plain(
        self, lines: list[bytes], begin: bytes, grid: Grid, flat: NDArray[np.float64]
    ) -> bool:
        """Whether all lines are of the document and plain; then their values are put into `flat`.

        Plain lines need no blanks stripped, no number clipped and no error. A column at a time is
        several times as fast as `_taken`, which reads all other lines.
        """
        blob = b"\n".join([b"", *lines]).replace(b"\n" + begin, b"\t\n")
        n, fields = len(lines), blob.split(b"\t")[1:]
        if len(fields) != 4 * n or blob.translate(None, _PLAIN):
            return False
        # every line begins with LF and a sentence, and has four columns, if these are all found
        sentences = {b"\n%d" % t: t for t in np.flatnonzero(grid.counts).tolist()}
        indices = _Indices({b"-": -1})
        try:
            t = np.fromiter(map(sentences.__getitem__, fields[::4]), np.int64, n)
            previous = np.fromiter(map(indices.__getitem__, fields[1::4]), np.int64, n)
            index = np.fromiter(map(indices.__getitem__, fields[2::4]), np.int64, n)
            values = np.fromiter(map(float, fields[3::4]), np.float64, n)
        except (KeyError, ValueError, OverflowError):
            return False
        places = grid.places(t, previous, index)
        kept = places != DROPPED
        places = places[kept]
        if (places == MISSING).any() or not (np.abs(values) <= LARGEST).all():
            return False
        if not (np.diff(np.sort(places)).all() and np.isnan(flat[places]).all()):
            return False
        flat[places] = values[kept]
        return True

    def finish(self, source: str, notices: Notices) -> None:
        """InputError for lines that belong to no document that has candidates."""
        while (line := self._peek()) is not None:
            if fields := self._fields(line):
                self._document(fields[0])
                raise self._here(_without_candidates(fields[0]))
            self._step()

    def _complete(self, name: str, grid: Grid, flat: NDArray[np.float64]) -> Pairwise:
        """The problem of a document; InputError unless every pair has a value."""
        missing = np.flatnonzero(np.isnan(flat))
        if not len(missing):
            return Pairwise(grid.matrices(flat))
        t, previous, index = grid.pair(int(missing[0]))
        before = "-" if grid.neighbours[t] < 0 else previous
        raise self._here(
            f"expected all {len(flat):,} pairs of document {name!r} before this line, found "
            f"{len(missing):,} of them missing, first that of sentence {t}, previous index "
            f"{before}, index {index}; write a line for each pair, or cut the lists with --top"
        )

    def _here(self, message: str) -> InputError:
        return self.fault(message, self._number)

    # Grammar of a line

    def _taken(self, line: bytes, grid: Grid, flat: NDArray[np.float64]) -> bool:
        """Whether a line belongs to the current document; its value is put into `flat`."""
        fields = self._fields(line)
        if not fields:
            self.notices.add("blank line, skipped", source=self.source, line=self._number)
            return True
        if self._document(fields[0]) > self._rank:
            return False
        place = self._place(fields, grid)
        if place != DROPPED:
            if not np.isnan(flat[place]):
                raise self._here("expected each pair once, found this one again; delete either")
            flat[place] = self.number(fields[4], self._number)
        return True

    def _fields(self, line: bytes) -> list[bytes]:
        """The five columns of a line; none of a blank line."""
        fields = [field.strip(b" \r") for field in line.split(b"\t")]
        if not any(fields):
            return []
        if len(fields) != 5:
            raise self._here(
                "expected 5 columns (document, sentence, previous index, index, value) with a TAB "
                f"between them, found {len(fields)}: {shown(line)}"
            )
        return fields

    def _document(self, field: bytes) -> int:
        """Rank of a document, which is the current one or a later one."""
        rank = self._ranks.get(field.decode())
        if rank is None:
            raise self._here(
                f"expected a document id of the lists, found {shown(field)}; ids are those of "
                "--docs, numbers from 0 with --no-docs each, and 'all' with --no-docs one"
            )
        if self._before < rank < self._rank:
            raise self._here(_without_candidates(field))
        if rank < self._rank:
            raise self._here(
                f"expected documents in the order of --docs, each in one run of lines, found "
                f"{shown(field)} again or too late; sort the file by document"
            )
        return rank

    def _place(self, fields: list[bytes], grid: Grid) -> int:
        """Index of a line's pair; `DROPPED` if --top leaves out one of its candidates."""
        t = self._index(fields[1], "a sentence")
        if t >= len(grid.counts) or not grid.counts[t]:
            raise self._here(
                f"expected a sentence of document {shown(fields[0])} that has candidates, found "
                f"{t}; they count from 0 inside their document, of {len(grid.counts)} sentences"
            )
        previous, before = -1, int(grid.neighbours[t])
        if before >= 0:
            previous = self._candidate(fields[2], "a previous index", before, grid)
        elif fields[2] != b"-":
            raise self._here(
                f"expected '-' as previous index of sentence {t}, the first of its document that "
                f"has candidates, found {shown(fields[2])}"
            )
        index = self._candidate(fields[3], "an index", t, grid)
        return int(grid.places(np.array([t]), np.array([previous]), np.array([index]))[0])

    def _candidate(self, field: bytes, what: str, t: int, grid: Grid) -> int:
        """A column that is the number of a candidate of sentence t in the file."""
        index = self._index(field, what)
        if grid.kept_numbers(np.array([t]), np.array([index]))[0] == MISSING:
            raise self._here(
                f"expected {what} below {grid.sizes[t]}, the candidates of sentence {t}, found "
                f"{index}; they count from 0 in the order of the list"
            )
        return index

    def _index(self, field: bytes, what: str) -> int:
        """A non-negative integer."""
        if not (field.isdigit() and len(field) < 19):  # of bytes: ASCII digits
            raise self._here(f"expected {what} (digits 0-9), found {shown(field)}")
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
