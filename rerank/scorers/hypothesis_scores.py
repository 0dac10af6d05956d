"""`--scores`: one number for each line of the list, a feature of order 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, starmap

import numpy as np
from numpy.typing import NDArray

from decoders.arrays import Unary
from rerank.corpus import LARGEST
from rerank.corpus.kbest import KBest
from rerank.files.lines import SURPLUS, read_lines
from rerank.files.paths import FilePath
from rerank.formats.tokens import NUMBER
from rerank.notices import Notices
from rerank.scorers.file_scorer import FileScorer, ListInfo

_LINE_BYTES = 1 << 12  # of a number; those of a document are in memory


@dataclass(frozen=True, slots=True, eq=False)
class _Numbers:
    """The numbers (n,) of all lines of a file; others: lines without a finite one, from 1."""

    values: NDArray[np.float64]
    others: Mapping[int, bytes]

    @classmethod
    def read(cls, lines: Iterable[bytes]) -> _Numbers:
        """The numbers of these lines; O(n) time, 8 bytes a line."""
        others: dict[int, bytes] = {}

        def plain(n: int, line: bytes) -> float:
            token = line.strip(b" \t\r")
            value = float(token) if NUMBER.fullmatch(token) else np.nan
            if abs(value) <= LARGEST:
                return value
            others[n] = line
            return np.nan

        return cls(np.fromiter(starmap(plain, enumerate(lines, 1)), np.float64), others)

    def of(
        self, lines: NDArray[np.int64], number: Callable[[bytes, int], float]
    ) -> NDArray[np.float64]:
        """The numbers of some lines, from 1; number: of a line without a finite one."""
        found = self.values[lines - 1]
        for i in np.flatnonzero(np.isnan(found)).tolist():
            n = int(lines[i])
            found[i] = number(self.others[n], n)
        return found


class HypothesisScores(FileScorer):
    """A feature of order 0: line i of its file belongs to line i of the list.

    Blank lines at the end of either file are ignored, of this one the first `SURPLUS` are read.
    InputError before any work if the lengths differ, and at a line that is not a number.
    O(lines of a document) memory; where the lines of documents stand apart in the list, all numbers
    are read at once, 8 bytes a line.
    """

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name, path, info, notices)
        self._n_lines = info.last_line()
        self._check_length()
        self._numbers: _Numbers | None = None
        self._sentence = -1  # first sentence of the document that was read last
        self._rewind()

    def _check_length(self) -> None:
        """InputError unless the file has as many lines as the list."""
        found, expected = 0, self._n_lines
        lines = read_lines(self.path, self.notices, max_line_bytes=_LINE_BYTES)
        for number, line in enumerate(islice(lines, expected + SURPLUS), 1):
            if line.strip():
                found = number
        if found != expected:
            more = " or more" if found == expected + SURPLUS else ""
            raise self.fault(
                f"expected {expected:,} lines as {self.info.kbest} has, found {found:,}{more}; "
                "write one number for each of its lines, in their order",
                min(found, expected) + 1,
            )

    def _rewind(self) -> None:
        self._lines: Iterator[bytes] = read_lines(self.path, Notices(), max_line_bytes=_LINE_BYTES)
        self._next = 1  # number of the next line

    def problem(self, name: str, kbest: KBest) -> Unary:
        """The values of a document's candidates."""
        ends = np.cumsum(kbest.counts[kbest.counts > 0])
        return Unary(np.split(self.values(kbest), ends[:-1]) if kbest.n else [])

    def values(self, kbest: KBest) -> NDArray[np.float64]:
        """The numbers (n,) of a document's candidates; 0 of those that are not in the list."""
        if kbest.line_numbers is None:
            raise self.fault("expected candidates of a file, found candidates made in memory")
        found, listed = np.zeros(kbest.n), kbest.line_numbers > 0
        numbers = kbest.line_numbers[listed]
        if not len(numbers):
            return found
        first, last = int(numbers.min()), int(numbers.max())
        later, self._sentence = kbest.first > self._sentence, kbest.first
        if not later:
            self.notices = Notices()
        if self.info.documents.interleaved or (later and first < self._next):
            self._numbers = self._numbers or self._all_numbers()
        if self._numbers is not None:
            found[listed] = self._numbers.of(numbers, self.number)
            return found
        if first < self._next:
            self._rewind()
        lines = list(islice(self._lines, first - self._next, last + 1 - self._next))
        self._next = last + 1
        found[listed] = [self.number(lines[n - first], n) for n in numbers.tolist()]
        return found

    def _all_numbers(self) -> _Numbers:
        """The numbers of all lines."""
        self._rewind()
        return _Numbers.read(islice(self._lines, self._n_lines))

    def finish(self, source: str, notices: Notices) -> None:
        """RerankError if the file has changed since its lines were counted."""
        for _ in self._lines:  # blank lines at the end
            pass
