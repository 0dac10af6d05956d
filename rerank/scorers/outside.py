"""Scores that another tool has written to a file: what their scorers have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from decoders.arrays import Pairwise, Unary
from decoders.problem import DocumentProblem
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.lines import digest, display
from rerank.formats import tokens
from rerank.notices import Notices
from rerank.scorers import Scored


@dataclass(frozen=True, slots=True)
class Given:
    """The lists that scores belong to.

    kbest: their name for messages; last_line: number of their last line that is not blank;
    top: candidates kept of each sentence; clip_inf: size that stands for that of an infinity.
    """

    documents: Documents
    kbest: str
    last_line: Callable[[], int]
    top: int | None = None
    clip_inf: float | None = None


class Outside:
    """A feature `name` whose values come from a file; nothing is computed, nothing is rounded.

    Documents are asked for in their order; an earlier one begins the file again. Notices are
    given of the first reading.
    """

    columns: tuple[str, ...] = ()
    order = 0
    error = seconds = 0.0
    runs_on = "file"

    def __init__(self, name: str, path: Path, given: Given, notices: Notices) -> None:
        self.name, self.path, self.given, self.notices = name, path, given, notices
        self.source = display(path)
        self.documents = 0

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[Scored]:
        """The problem of each document, which has no further columns."""
        self.documents += len(documents)
        return [
            Scored(self.problem(name, kbest), np.zeros((kbest.n, 0))) for name, kbest in documents
        ]

    def problem(self, name: str, kbest: KBest) -> DocumentProblem:
        """The values of a document's candidates."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file, in hexadecimal digits."""
        return digest(self.path).removeprefix("sha256:")

    def passes(self, k: float) -> float:
        """One, whatever k is: all values are there."""
        return 1.0

    def lazily(self) -> None:
        """Nothing, all values being there."""

    def remembers(self, kbest: KBest) -> bool:
        """True: nothing is computed."""
        return True

    def forgetful(self) -> Zeros:
        """Zeros in the place of values."""
        return Zeros(self.name, self.columns, self.order)

    def finish(self, source: str, notices: Notices) -> None:
        """Nothing, where the file was checked before."""

    def report(self) -> str:
        """`pairs: 12 documents from pairs.tsv.gz`."""
        return f"{self.name}: {self.documents:,} documents from {self.source}"

    def number(self, token: bytes, line: int) -> float:
        """A finite number, clipped where that is asked for; InputError with its place."""
        read: tokens.Number = tokens.number
        clip = self.given.clip_inf
        if clip is not None:
            read = tokens.clipping(abs(clip), lambda: self._clipped(line))
        try:
            return read(token.strip(b" \t\r"), self.name)
        except InputError as fault:
            raise self.fault(str(fault), line) from None

    def _clipped(self, line: int) -> None:
        self.notices.add("infinite number, clipped", source=self.source, line=line)

    def fault(self, message: str, line: int | None = None) -> InputError:
        """An error with file and line."""
        return InputError(message, source=self.source, line=line)


@dataclass(frozen=True, slots=True)
class Zeros:
    """The score 0 of every candidate, in a problem of order 0 or 1."""

    name: str
    columns: tuple[str, ...]
    order: int

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[Scored]:
        """A problem and columns of zeros for each document."""
        return [
            Scored(self._problem(kbest), np.zeros((kbest.n, len(self.columns))))
            for _, kbest in documents
        ]

    def _problem(self, kbest: KBest) -> DocumentProblem:
        counts = kbest.counts[kbest.counts > 0].tolist()
        if self.order == 0:
            return Unary([np.zeros(k) for k in counts])
        before = [1, *counts[:-1]]
        return Pairwise([np.zeros(shape) for shape in zip(before, counts, strict=True)])
