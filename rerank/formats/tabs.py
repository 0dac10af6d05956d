"""Plain text with all hypotheses of a sentence on a line, with TABs between them.

    the lamp is lit<TAB>the lamp is on

Nothing in such a file says that it is a list: it is read with `--kbest-format tabs`. Lines may have
different numbers of hypotheses; there are no scores. Source: the lists of DoRe,
https://github.com/kanekomasahiro/Re-ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rerank.corpus.kbest import KBestRows
from rerank.formats.hypotheses import Hypotheses, ReadOnlyFormat
from rerank.notices import Notices

BLANK = "blank hypothesis between TABs, skipped"


class Tabs(ReadOnlyFormat):
    """The format of lines whose hypotheses have TABs between them."""

    name = "tabs"
    description = "Plain text, the hypotheses of a sentence on a line with TABs between, as DoRe's."
    suffixes = (".tsv", ".txt")
    example = b"the text\ta text"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Never: any table could be one."""
        return False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The hypotheses in the order of the file.

        A line without any words is a sentence with one empty hypothesis; beside other hypotheses
        a blank one is left out, and counted.
        """
        found = Hypotheses(notices, source, clip)
        for number, line in enumerate(lines, 1):
            found.at(number)
            texts = [text for text in line.split(b"\t") if text.strip()] or [b""]
            skipped = line.count(b"\t") + 1 - len(texts)
            if skipped:
                notices.add(BLANK, source=source, line=number, count=skipped)
            for text in texts:
                found.add(number - 1, text, (), [])
            if found.full:
                yield found.rows()
        if len(found):
            yield found.rows()
