"""What a format of k-best lists states about itself, so that it can be added as one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.corpus.rows import Rows
from rerank.notices import Notices


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
    ) -> Iterator[Rows]:
        """The hypotheses of a file in chunks of bounded size; `InputError` where it is not valid.

        clip: magnitude to read for an infinite number, which is otherwise an error.
        """
        ...

    def survey(self, lines: Iterable[bytes], *, source: str, top: int | None) -> Survey:
        """Figures of a file in one quick pass, of the first `top` candidates of each sentence."""
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


@dataclass(frozen=True, slots=True)
class Survey:
    """Figures of a k-best list: candidates and their words, highest sentence id, last line.

    last_line: number of the last line that is not blank, which counts all candidates.
    """

    candidates: int
    words: int
    last_id: int
    last_line: int


def survey_rows(chunks: Iterable[Rows], top: int | None) -> Survey:
    """Figures of a list that is read in full, for formats without a quicker way."""
    words = last_id = last_line = 0
    seen: Counter[int] = Counter()
    for rows in chunks:
        for sentence, text in zip(rows.sentences.tolist(), rows.texts.to_list(), strict=True):
            seen[sentence] += 1
            if top is None or seen[sentence] <= top:
                words += len(text.split())
        last_id = max(last_id, int(rows.sentences.max(initial=0)))
        last_line = max(last_line, int(rows.line_numbers.max(initial=0)))
    candidates = sum(k if top is None else min(k, top) for k in seen.values())
    return Survey(candidates, words, last_id, last_line)
