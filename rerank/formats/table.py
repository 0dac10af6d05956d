"""Formats of k-best lists: what each states, how one is recognised, and reading in any of them.

A new format is a file with a `KBestFormat`, a line in the table `rerank.registry.FORMATS` and a
test; or, in another package, an entry point of the group `rerank.formats`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import ALL, ReadingOptions, documents_of
from rerank.corpus.kbest import KBest
from rerank.corpus.rows import KBestRows
from rerank.errors import InputError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import shown
from rerank.notices import Notices
from rerank.registry import FORMATS

_HEAD = 20  # lines that are not blank, from which a format is recognised
_BLANK = 1000  # lines that may be blank before them


class KBestFormat(Protocol):
    """A format of k-best lists; `rerank.formats.laws.check_format` tests one.

    name: as in the table of formats; description: one line for people; suffixes: usual endings of
    file names; example: one line, or one entry, of such a file.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    example: bytes

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether a file that begins with these lines, at least one of them not blank, is one."""
        ...

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses of a file in chunks of bounded size; `InputError` where it is not valid.

        clip: magnitude to read for an infinite number, which is otherwise an error.
        """
        ...

    def write(
        self,
        kbest: KBest,
        names: Sequence[str],
        values: NDArray[np.float64],
        totals: NDArray[np.float64] | None,
        *,
        first_id: int,
    ) -> Iterator[bytes]:
        """Lines of the candidates of a document, without line ends.

        names, values: (A,), (n, A) features to append; totals: (n,) that replace those of the
        list. What `read` has kept of the file is written as it was.
        """
        ...


def formats() -> list[KBestFormat]:
    """All formats, in the order in which they are asked whether a file is theirs.

    Those of other packages come first, since the Moses reader accepts many dialects.
    """
    return [FORMATS[name]() for name in sorted(FORMATS, key=lambda name: name in FORMATS.builtin)]


def detect(lines: Iterator[bytes], *, source: str = "") -> tuple[KBestFormat, Iterator[bytes]]:
    """The format of a file by its first lines, and all its lines.

    `InputError` for a file that is in no known format, or has no line that is not blank.
    """
    head: list[bytes] = []
    content: list[int] = []  # numbers of the lines that are not blank
    for line in islice(lines, _HEAD + _BLANK):
        head.append(line)
        if line.strip():
            content.append(len(head))
        if len(content) == _HEAD:
            break
    if not content:
        raise InputError("expected a k-best list, found no hypotheses", source=source)
    tried = formats()
    for known in tried:
        if known.detect(head):
            return known, chain(head, lines)
    raise InputError(
        f"expected a k-best list, found {shown(head[content[0] - 1])}; formats tried: "
        f"{', '.join(known.name for known in tried)}; `rerank list formats` shows a line of each",
        source=source,
        line=content[0],
    )


def format_of(path: FilePath) -> KBestFormat:
    """The format of the k-best list in a file."""
    return detect(read_lines(path, Notices()), source=display(path))[0]


@dataclass(frozen=True, slots=True)
class Survey:
    """Figures of a k-best list: candidates and their words, highest sentence id, last line.

    last_line: number of the last line that is not blank, whether or not its candidate is kept.
    """

    candidates: int
    words: int
    last_id: int
    last_line: int


def survey_of(path: FilePath, options: ReadingOptions = ALL) -> Survey:
    """Figures of the k-best list in a file, of the first `top` candidates of each sentence."""
    words = last_id = last_line = 0
    seen: Counter[int] = Counter()
    top = math.inf if options.top is None else options.top
    for rows in _read(path, Notices(), options):
        for sentence, text in zip(rows.sentences.tolist(), rows.texts.to_list(), strict=True):
            seen[sentence] += 1
            if seen[sentence] <= top:
                words += len(text.split())
        last_id = max(last_id, int(rows.sentences.max(initial=0)))
        last_line = max(last_line, int(rows.line_numbers.max(initial=0)))
    return Survey(sum(int(min(k, top)) for k in seen.values()), words, last_id, last_line)


def read_documents(
    path: FilePath,
    documents: Documents,
    notices: Notices,
    options: ReadingOptions = ALL,
) -> Iterator[KBest]:
    """The k-best lists of each document, in the order of `documents`; see `documents_of`."""
    rows = _read(path, notices, options)
    yield from documents_of(rows, documents, notices, options, source=display(path))


def _read(path: FilePath, notices: Notices, options: ReadingOptions) -> Iterator[KBestRows]:
    """The hypotheses of a file in chunks."""
    known, lines = detect(read_lines(path, notices), source=display(path))
    return known.read(lines, notices, source=display(path), clip=options.clip_inf)
