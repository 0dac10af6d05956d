"""Candidates of mbr-nmt: `NC=n`, then the n candidates of a sentence, without scores.

Source: https://github.com/Roxot/mbr-nmt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rerank.corpus.kbest import KBestRows
from rerank.formats.hypotheses import Hypotheses, ReadOnlyFormat
from rerank.formats.tokens import shown
from rerank.notices import Notices

_COUNT = re.compile(rb"NC=([0-9]{1,7})")


class MbrNmt(ReadOnlyFormat):
    """The format of mbr-nmt's candidates."""

    name = "mbr-nmt"
    description = "Candidates of mbr-nmt: NC=n before the n lines of a sentence; no features."
    suffixes = (".txt",)
    example = b"NC=2\nthe text\na text"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line that is not blank is a number of candidates."""
        return _COUNT.fullmatch(next(line for line in head if line.strip()).strip()) is not None

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file."""
        found = Hypotheses(notices, source, clip)
        sentence, left, number = -1, 0, 0
        for number, line in enumerate(lines, 1):
            found.at(number)
            if left:
                found.add(sentence, line, (), [])
                left -= 1
                if found.full:
                    yield found.rows()
                continue
            count = _COUNT.fullmatch(line.strip())
            if count is None:
                raise found.fault(f"expected NC=n before the next candidates, found {shown(line)}")
            sentence, left = sentence + 1, int(count[1])
        if left:
            raise found.fault(f"expected {left} more candidates of the last sentence, found none")
        if len(found):
            yield found.rows()

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last `NC=n`, which may be `NC=0`."""
        last, left = -1, 0
        for line in lines:
            if left:
                left -= 1
            elif count := _COUNT.fullmatch(line.strip()):
                last, left = last + 1, int(count[1])
        return last
