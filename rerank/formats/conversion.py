"""Lists of one format written in another, document by document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rerank.corpus.columns import TextColumn
from rerank.corpus.documents import Documents
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.formats.document_nbest import document_lines
from rerank.formats.further_columns import (
    AFTER_TOTAL,
    as_moses_writes,
    further_columns,
    with_columns,
)
from rerank.formats.json_lists import kept_keys, lines_with_keys
from rerank.formats.moses import moses_lines
from rerank.formats.table import lines_of
from rerank.notices import Notices
from rerank.registry import FORMATS

DOCUMENTS, FIRST = "documents", "first"
WRITTEN = ("moses", "jsonl", FIRST, DOCUMENTS)


@dataclass(frozen=True, slots=True)
class Conversion:
    """How lists are written that were read from a file.

    as_read: format of the file; to: of `WRITTEN`; first_id: of the first source line; n_best:
    documents of a list of documents; ids, sources: of each source line, where they are known.
    """

    as_read: str
    to: str
    first_id: int = 0
    n_best: int = 1
    ids: Sequence[bytes] | None = None
    sources: Sequence[bytes] | None = None

    def lines(
        self, d: int, kbest: KBest, documents: Documents, notices: Notices
    ) -> Iterator[tuple[int, bytes]]:
        """(sentence, line) of the lists of document d; InputError where the format has no form."""
        if self.to == FIRST:
            filled = int((kbest.counts > 0).sum())
            return enumerate(kbest.chosen([0] * filled), kbest.first)
        if self.to == DOCUMENTS:
            return ((kbest.first, line) for line in document_lines(d, kbest, self.n_best))
        places = [documents.line(kbest.first + t) for t in range(len(kbest))]
        known = {"document": self.ids, "source": self.sources}
        beside = {
            key: [given[place] for place in places]
            for key, given in known.items()
            if given is not None
        }
        kbest = replace(kbest, side=beside)
        if self.as_read != self.to == "moses" and kbest.texts.block_has(b"|||"):
            _refuse_bars(kbest)
        kbest = _in_form(kbest, self.as_read, self.to, documents, notices, self.first_id)
        nothing = np.zeros((kbest.n, 0))
        target = FORMATS[self.to]()
        return lines_of(target, kbest, documents, (), nothing, None, first_id=self.first_id)


def _in_form(
    kbest: KBest, as_read: str, target: str, documents: Documents, notices: Notices, first_id: int
) -> KBest:
    """The lists with lines of another format, which hold what it keeps beside the features."""
    if kbest.lines is None or (as_read == target and target != "moses"):
        return kbest
    if as_read == target:
        own = kbest.lines.to_list()
        new = [as_moses_writes(line, notices, source=kbest.source) for line in own]
        return kbest if new == own else replace(kbest, lines=TextColumn.of(new))
    if (as_read, target) == ("moses", "jsonl"):
        own = kbest.lines.to_list()
        keys = (further_columns(line, notices, source=kbest.source) for line in own)
        return replace(kbest, lines=TextColumn.of(lines_with_keys(kbest.texts.to_list(), keys)))
    if (as_read, target) == ("jsonl", "moses"):
        others = [kept_keys(kbest, row)[1] for row in range(kbest.n)]
        if any(key in one for one in others for key in AFTER_TOTAL):
            sentences = (
                replace(kbest.sentence(t), lines=None, first=documents.line(kbest.first + t))
                for t in range(len(kbest))
            )
            lines = (line for one in sentences for line in moses_lines(one, first_id))
            found = [with_columns(a, b) for a, b in zip(lines, others, strict=True)]
            return replace(kbest, lines=TextColumn.of(found))
    return replace(kbest, lines=None)


def _refuse_bars(kbest: KBest) -> None:
    """InputError for a text that a Moses list cannot hold."""
    for t in range(len(kbest)):
        if any(b"|||" in kbest.texts[row] for row in kbest.rows(t)):
            raise InputError(
                f"expected no '|||' in a text of a Moses list, found one of sentence "
                f"{kbest.first + t} (from 0); give --escape moses",
                source=kbest.source,
            )
