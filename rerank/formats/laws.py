"""Laws that every format of k-best lists obeys; the author of one calls them in a test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import Grouping
from rerank.corpus.kbest import KBest
from rerank.formats.table import KBestFormat, TwoPassFormat
from rerank.notices import Notices


def check_format(known: KBestFormat, kbest: KBest) -> None:
    """AssertionError unless lists made in memory (`KBest.of`) are the same after write and read.

    The first and the last sentence have candidates. What is written must be detected as this
    format and, read and written again, its bytes must stay as they are.
    """
    first = list(_write(known, kbest))
    _check(known.detect(first), "detect does not recognise what write has written", first)
    if isinstance(known, TwoPassFormat):
        known = known.prepared(first, source="")
    rows = list(known.read(iter(first), Notices(), source="", clip=None))
    (again,) = Grouping(Documents.one(len(kbest)), Notices()).lists(rows)
    for name in ("labels", "counts", "dense"):
        expected, value = getattr(kbest, name), getattr(again, name)
        _check(np.array_equal(expected, value), f"{name} {expected} read back as {value}", first)
    _check(again.texts.to_list() == kbest.texts.to_list(), "texts read back differ", first)
    for row in range(kbest.n):
        same = again.sparse.row(row) == kbest.sparse.row(row)
        _check(same, f"sparse features of row {row} read back differ", first)
    _check(list(_write(known, again)) == first, "lines that were read are written changed", first)


def _write(known: KBestFormat, kbest: KBest) -> list[bytes]:
    """The lines of the lists with nothing appended."""
    return list(known.write(kbest, (), np.zeros((kbest.n, 0)), None, first_id=0))


def _check(holds: bool, fault: str, lines: Sequence[bytes]) -> None:
    """AssertionError with the lines that were written, unless the law holds."""
    if not holds:
        raise AssertionError("\n".join([fault, *map(repr, lines)]))
