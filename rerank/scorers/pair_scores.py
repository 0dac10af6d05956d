"""`--pair-scores`: a number for each two candidates of neighbouring sentences.

    document TAB sentence TAB previous index TAB index TAB value

Sentences count from 0 inside their document, candidates from 0 inside their list. The previous
index is that of a candidate of the nearest earlier sentence of the document that has any, `-`
where there is none. Documents come in the order of --docs, each in one run of lines, whose order
is free. Every pair has one value, a finite number; pairs that --top leaves out are passed over.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Pairwise
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.formats.tokens import shown
from rerank.notices import Notices
from rerank.scorers.file_scorer import FileScorer, ListInfo
from rerank.scorers.pair_grid import Grid
from rerank.scorers.pair_lines import PairLines


class PairScores(FileScorer):
    """A feature of order 1. InputError at a pair that is wrong, there twice, or missing.

    Memory: 8 bytes a pair of a document, and a block of lines.
    """

    order = 1

    def __init__(self, name: str, path: Path, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        self._ranks = {own: d for d, own in enumerate(info.documents.ids)}
        self._rewind()

    def _rewind(self) -> None:
        self._lines = PairLines(read_lines(self.path, self.notices))
        self._rank = self._before = -1  # of the document in hand, and of the one before

    def problem(self, name: str, kbest: KBest) -> Pairwise:
        """The values of all pairs of a document."""
        if not kbest.n:
            return Pairwise([])
        if self._ranks[name] <= self._rank:
            self.notices = Notices()
            self._rewind()
        self._before, self._rank = self._rank, self._ranks[name]
        grid = Grid.of(kbest, self.info.top)
        flat = np.full(grid.starts[-1], np.nan)
        while (line := self._lines.peek()) is not None:
            if self._lines.take(name, grid, flat, self.number):
                continue
            if not self._taken(line, grid, flat):
                break
            self._lines.step()
        self._check_complete(name, grid, flat)
        return Pairwise(grid.matrices(flat))

    def finish(self, source: str, notices: Notices) -> None:
        """InputError for lines that belong to no document that has candidates."""
        while (line := self._lines.peek()) is not None:
            if fields := self._fields(line):
                self._document(fields[0])
                raise self._here(_without_candidates(fields[0]))
            self._lines.step()

    def _check_complete(self, name: str, grid: Grid, flat: NDArray[np.float64]) -> None:
        """InputError unless every pair has a value."""
        missing = np.flatnonzero(np.isnan(flat))
        if not len(missing):
            return
        t, previous, index = grid.pair(int(missing[0]))
        before = "-" if grid.neighbours[t] < 0 else previous
        raise self._here(
            f"expected all {len(flat):,} pairs of document {name!r} before this line, found "
            f"{len(missing):,} of them missing, first that of sentence {t}, previous index "
            f"{before}, index {index}; write a line for each pair, or cut the lists with --top"
        )

    def _here(self, message: str) -> InputError:
        return self.fault(message, self._lines.number)

    # Grammar of a line

    def _taken(self, line: bytes, grid: Grid, flat: NDArray[np.float64]) -> bool:
        """Whether a line is of no later document; the value of a kept pair is put into `flat`."""
        fields = self._fields(line)
        if not fields:
            self.notices.add("blank line, skipped", source=self.source, line=self._lines.number)
            return True
        if self._document(fields[0]) > self._rank:
            return False
        place = self._place(fields, grid)
        if place is not None:
            if not np.isnan(flat[place]):
                raise self._here("expected each pair once, found this one again; delete either")
            flat[place] = self.number(fields[4], self._lines.number)
        return True

    def _fields(self, line: bytes) -> list[bytes]:
        """The five columns of a line; of a blank one none."""
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
        """Rank of a document, which is the one in hand or a later one."""
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

    def _place(self, fields: list[bytes], grid: Grid) -> int | None:
        """Place of a line's pair, None of one that --top leaves out."""
        t = self._index(fields[1], "a sentence")
        if t >= len(grid.counts) or not grid.counts[t]:
            raise self._here(
                f"expected a sentence of document {shown(fields[0])} that has candidates, found "
                f"{t}; they count from 0 inside their document, of {len(grid.counts)} sentences"
            )
        before = int(grid.neighbours[t])
        if before < 0 and fields[2] != b"-":
            raise self._here(
                f"expected '-' as previous index of sentence {t}, the first of its document that "
                f"has candidates, found {shown(fields[2])}"
            )
        previous = 0 if before < 0 else self._kept(fields[2], "a previous index", before, grid)
        index = self._kept(fields[3], "an index", t, grid)
        return None if previous is None or index is None else grid.place(t, previous, index)

    def _kept(self, field: bytes, what: str, t: int, grid: Grid) -> int | None:
        """Which of the kept candidates of sentence t a column names, None of another."""
        index, size = self._index(field, what), int(grid.offsets[t + 1] - grid.offsets[t])
        if index < size:
            kept = int(grid.kept[grid.offsets[t] + index])
            return None if kept < 0 else kept
        if grid.whole[t]:
            raise self._here(
                f"expected {what} below {size}, the candidates of sentence {t}, found {index}; "
                "they count from 0 in the order of the list"
            )
        return None

    def _index(self, field: bytes, what: str) -> int:
        """An integer from 0 on."""
        if not (field.isdigit() and len(field) < 19):  # of bytes: ASCII digits
            raise self._here(f"expected {what} (digits 0-9), found {shown(field)}")
        return int(field)


def _without_candidates(field: bytes) -> str:
    """What to say of a line of a document that has none."""
    return (
        f"expected documents that have candidates, found {shown(field)}, which has none; "
        "are these the scores of another list?"
    )
