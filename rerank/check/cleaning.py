"""Clean copies of input files: what can be repaired without a guess is repaired and counted.

Bytes that need no repair are copied. In lists whose lines each name their sentence, hypotheses
that cannot be read are left out, and lines out of order are sorted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from rerank.check.findings import Findings
from rerank.corpus.reading import ReadingOptions
from rerank.corpus.spelling import nfc
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.json_objects import BLANK
from rerank.formats.moses import Moses
from rerank.formats.named_features import NamedFeatures
from rerank.formats.table import opened
from rerank.notices import Notices

_MARK = "\ufeff".encode()
_LINES = {  # how a notice about lines begins: the repair
    "byte-order mark": "byte-order mark removed",
    "CRLF line ends": "CRLF line end written as LF",
    "bytes after the end of the": "bytes after the compressed data left out",
}
LEFT_OUT, SKIPPED = "hypothesis that cannot be read left out", "blank line left out"
SORTED, SURPLUS = "line sorted by sentence", "surplus blank line at the end left out"
NORMALIZED = "line written in Unicode form NFC"


def cleaned_text(path: FilePath, n_lines: int) -> tuple[Iterator[bytes], Counter[str]]:
    """Lines of a text, and the repairs, counted once all lines are taken.

    n_lines: of the source; blank lines after as many are left out. `InputError`, when the lines
    are taken, for bytes that are not UTF-8 text.
    """
    repairs: Counter[str] = Counter()
    return _text(path, n_lines, repairs), repairs


def _text(path: FilePath, n_lines: int, repairs: Counter[str]) -> Iterator[bytes]:
    found = Notices()
    lines = _without_marks(read_lines(path, found))
    yield from islice(lines, n_lines)
    surplus = list(lines)
    if any(line.strip() for line in surplus):
        yield from surplus
    elif surplus:
        repairs[SURPLUS] += len(surplus)
    _count(found, repairs)


def cleaned_list(path: FilePath, options: ReadingOptions) -> tuple[Iterator[bytes], Counter[str]]:
    """Lines of a k-best list, and the repairs, counted once all lines are taken.

    The list is read before: `InputError` if it is in no known format. Lists that have to be sorted
    are in memory.
    """
    found = Findings()
    known, lines = opened(path, found, options)
    clean = _without_marks(lines)
    rows = known.read(clean, found, source=display(path), clip=options.clip_inf)
    ids = [chunk.sentences for chunk in rows]
    repairs: Counter[str] = Counter()
    _count(found, repairs)
    skips = found.count_of(BLANK) > 0
    if not isinstance(known, Moses | NamedFeatures):
        if found.first_fault is not None:
            raise found.first_fault
        return _kept(path, options, set(), skips, repairs), repairs
    kept = _kept(path, options, found.refused, skips, repairs)
    order = np.concatenate(ids) if ids else np.zeros(0, np.int64)
    falls = np.flatnonzero(np.diff(order) < 0)
    if not len(falls):
        return kept, repairs
    by_id = np.argsort(order, kind="stable")
    repairs[SORTED] += int((by_id != np.arange(len(by_id))).sum())
    return _in_order(kept, by_id.tolist()), repairs


def _kept(
    path: FilePath, options: ReadingOptions, refused: set[int], skips: bool, repairs: Counter[str]
) -> Iterator[bytes]:
    """The lines but for those refused and, if it `skips` them, blank ones."""
    lines = read_lines(path, Findings(), encoded=options.encoded)
    for number, line in enumerate(_without_marks(lines), 1):
        if number in refused:
            repairs[LEFT_OUT] += 1
        elif skips and not line.strip():
            repairs[SKIPPED] += 1
        else:
            yield line


def in_nfc(lines: Iterable[bytes], repairs: Counter[str]) -> Iterator[bytes]:
    """The lines in Unicode's normal form NFC, with those counted that were not."""
    for line in lines:
        new = nfc(line)
        if new != line:
            repairs[NORMALIZED] += 1
        yield new


def _in_order(lines: Iterable[bytes], order: list[int]) -> Iterator[bytes]:
    every = list(lines)
    for place in order:
        yield every[place]


def _without_marks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines without byte-order marks inside them."""
    for line in lines:
        yield line.replace(_MARK, b"") if _MARK in line else line


def _count(found: Notices, repairs: Counter[str]) -> None:
    """Count the repairs of what notices about lines tell."""
    for notice in found:
        for start, repair in _LINES.items():
            if notice.kind.startswith(start):
                repairs[repair] += notice.count
