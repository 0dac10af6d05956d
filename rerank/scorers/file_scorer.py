"""Scores that another tool has written to a file: what the readers of such files share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.lines import digest
from rerank.files.paths import FilePath, display
from rerank.formats import tokens
from rerank.notices import Notices
from rerank.scorers import ProblemSource, ScoredDocument


@dataclass(frozen=True, slots=True)
class ListInfo:
    """The k-best lists that a file of scores belongs to.

    kbest: their name for messages; last_line: number of their last non-blank line; top: candidates
    kept of each sentence; clip_inf: value that replaces infinities.
    """

    documents: Documents
    kbest: str
    last_line: Callable[[], int]
    top: int | None = None
    clip_inf: float | None = None


class FileScorer(ProblemSource):
    """A feature `name` whose values another tool has written to a file; nothing is rounded.

    Documents are read in their order; asking for an earlier one reads
    the file again from its beginning. Warnings are given for the first reading only.
    """

    runs_on = "file"

    def __init__(self, name: str, path: FilePath, info: ListInfo, notices: Notices) -> None:
        super().__init__(name)
        self.path, self.info, self.notices = path, info, notices
        self.source = display(path)
        self.documents = 0

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the file, in hexadecimal digits."""
        return digest(self.path).removeprefix("sha256:")

    def score(self, documents: Sequence[tuple[str, KBest]]) -> list[ScoredDocument]:
        """Features of each document, counted for the report."""
        self.documents += len(documents)
        return super().score(documents)

    def remembers(self, kbest: KBest) -> bool:
        """True: nothing is computed."""
        return True

    def report(self) -> str:
        """Number of documents: `pairs: 12 documents from pairs.tsv.gz`."""
        return f"{self.name}: {self.documents:,} documents from {self.source}"

    def number(self, token: bytes, line: int) -> float:
        """A finite number, clipped if `clip_inf` is given; InputError with file and line."""
        read = tokens.list_number(self.info.clip_inf, lambda: self._clipped(line))
        try:
            return read(token.strip(b" \t\r"), self.name)
        except InputError as fault:
            raise self.fault(str(fault), line) from None

    def _clipped(self, line: int) -> None:
        self.notices.add("infinite number, clipped", source=self.source, line=line)

    def fault(self, message: str, line: int | None = None) -> InputError:
        """An error with file and line."""
        return InputError(message, source=self.source, line=line)
