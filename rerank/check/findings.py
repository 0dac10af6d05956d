"""Findings about input files and their cures: what `rerank check` reports and repairs.

Findings are the errors and notices of the readers, counted by kind and file. In clean copies, what
can be repaired without a guess is repaired and counted: bytes that need no repair are copied; in
lists whose lines each name their sentence, hypotheses that cannot be read are left out, and lines
out of order are sorted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from rerank.corpus.reading import ReadingOptions
from rerank.corpus.spelling import nfc
from rerank.diagnostics import Diagnostic
from rerank.errors import InputError, place
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.decoder_lists import NamedFeatures
from rerank.formats.moses import Moses
from rerank.formats.table import opened
from rerank.notices import Notice, Notices

PLACES = 5  # lines named in a finding
_KINDS = 50  # findings of a file that are listed one by one
_OTHERS = "further {} of other kinds; mend those above and check again"
_PARTICULARS = re.compile(  # quoted text, which may be cut off, and numbers
    r"'(?:[^'\\]|\\.)*(?:'…?|$)|\"(?:[^\"\\]|\\.)*(?:\"…?|$)|0x[0-9A-F]+|[0-9]+(?:[.,][0-9]+)*"
)


@dataclass(slots=True)
class Finding:
    """One kind of fault or oddity in a file.

    fault: whether other commands refuse the file for it; message: what was found at the first
    place, and the cure; lines: the first places, where they are known; count: of all places; kind:
    of a warning; asked: whether it is about what an option asks for; place: the first.
    """

    fault: bool
    source: str
    message: str
    lines: list[int] = field(default_factory=list)
    count: int = 0
    kind: Diagnostic | None = None
    asked: bool = False
    place: str = ""

    def to_text(self) -> str:
        """`file:line: what; cure (3 times, next on lines 7, 9) [kind]`."""
        text = f"{self.place}: {self.message}" if self.place else self.message
        kind = f" [{self.kind.label}]" if self.kind else ""
        if self.count == 1:
            return text + kind
        more = ", …" if self.count > len(self.lines) else ""
        plural = "s" if len(self.lines) > 2 or more else ""
        in_file = self.place.startswith(f"{self.source}:")
        next_lines = ", ".join(map(str, self.lines[1:])) if in_file else ""
        next_places = f", next on line{plural} {next_lines}{more}" if next_lines else ""
        return f"{text} ({self.count:,} times{next_places}){kind}"

    def to_dict(self) -> dict[str, object]:
        """The finding as JSON values."""
        return {
            "level": "fault" if self.fault else "warning",
            "code": self.kind.code if self.kind else "",
            "kind": self.kind.name if self.kind else "",
            "file": self.source,
            "lines": self.lines,
            "count": self.count,
            "message": self.message,
        }


class Findings(Notices):
    """Counts errors as well as notices, so that one reading finds all that it can.

    Errors of one file that differ only in numbers and quoted text are one finding.
    """

    def __init__(self) -> None:
        super().__init__()
        self._by_kind: dict[tuple[bool, str, str], Finding] = {}
        self._kinds: Counter[tuple[bool, str]] = Counter()  # by level and file
        self.refused: set[int] = set()  # lines with errors
        self.first_fault: InputError | None = None

    def take(self, notice: Notice) -> None:
        """Count a notice, with the cure for its kind."""
        super().take(notice)
        text, count = notice.to_text(cured=True), len(notice.names) or notice.count
        finding = self._count(False, notice.source, text, notice.line, count)
        finding.kind, finding.asked = notice.kind, notice.asked

    def refuse(self, fault: InputError, *, count: int = 1) -> None:
        """Count an error, and let the reader go on."""
        self.first_fault = self.first_fault or fault
        self._count(True, fault.source, fault.what, fault.line, count)
        if fault.line is not None:
            self.refused.add(fault.line)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count the error that a block raises, if it raises one."""
        try:
            yield
        except InputError as fault:
            self.refuse(fault)

    def unreported(self) -> Notices:
        """Findings of another reading of a file, which stops at no fault either."""
        return Findings()

    def merge(self, others: Findings) -> None:
        """Add the findings of another reading; what both have found in a file counts once."""
        for notice in others:
            super().take(notice)
        for key, finding in others._by_kind.items():
            if key not in self._by_kind or finding.count > self._by_kind[key].count:
                self._by_kind[key] = finding

    def _count(
        self, fault: bool, source: str, message: str, line: int | None, count: int
    ) -> Finding:
        kind = _PARTICULARS.sub("…", message)
        if (fault, source, kind) not in self._by_kind:
            self._kinds[fault, source] += 1
            if self._kinds[fault, source] > _KINDS:
                kind = message = _OTHERS.format("faults" if fault else "warnings")
        finding = self._by_kind.setdefault((fault, source, kind), Finding(fault, source, message))
        finding.place = finding.place or place(source, line)
        finding.count += count
        if line is not None and len(finding.lines) < PLACES and line not in finding.lines:
            finding.lines.append(line)
        return finding

    def count_of(self, name: str) -> int:
        """How often a notice of this name was given."""
        return sum(notice.count for notice in self if notice.kind.name == name)

    def where(self, holds: Callable[[bool, str, str], bool]) -> Findings:
        """The findings of some levels (whether a fault), files and kinds."""
        findings = Findings()
        findings._by_kind = {key: finding for key, finding in self._by_kind.items() if holds(*key)}
        return findings

    @property
    def kinds(self) -> set[tuple[bool, str]]:
        """Level and kind of each finding."""
        return {(fault, kind) for fault, _, kind in self._by_kind}

    @property
    def all(self) -> list[Finding]:
        """All findings, in the order of their first places in the run."""
        return list(self._by_kind.values())

    def of_level(self, fault: bool) -> Iterator[Finding]:
        """The findings that are faults, or those that are not."""
        return (finding for finding in self.all if finding.fault is fault)


@dataclass(frozen=True, slots=True)
class CleanCopies:
    """Clean copies of input files that were asked for.

    repairs: by copy, of each kind how many; findings: about the copies, which are not written if
    they still have faults.
    """

    repairs: Mapping[str, Mapping[str, int]]
    findings: Findings

    @property
    def written(self) -> bool:
        """Whether the copies are written."""
        return not any(self.findings.of_level(True))

    def to_text(self) -> str:
        """A line for each copy, or the faults that remain."""
        if not self.written:
            faults = [finding.to_text() for finding in self.findings.of_level(True)]
            return "\n".join(["no clean copy is written, since these faults remain:", *faults, ""])
        lines = []
        for copy, repairs in self.repairs.items():
            done = ", ".join(f"{n:,} x {repair}" for repair, n in repairs.items())
            lines.append(f"clean copy {copy}: {done or 'nothing to repair'}\n")
        return "".join(lines)

    def to_dict(self) -> dict[str, object]:
        """The copies as JSON values."""
        return {
            "written": self.written,
            "repairs": {copy: dict(repairs) for copy, repairs in self.repairs.items()},
            "findings": [finding.to_dict() for finding in self.findings.all],
        }


# Clean copies


_MARK = "\ufeff".encode()
_REPAIRS = {  # of lines, by the names of their notices
    **dict.fromkeys(("byte-order-mark", "inner-byte-order-mark"), "byte-order mark removed"),
    "crlf-line-ends": "CRLF line end written as LF",
    "trailing-bytes": "bytes after the compressed data left out",
}
LEFT_OUT, SKIPPED = "hypothesis that cannot be read left out", "blank line left out"
SORTED, SURPLUS = "line sorted by sentence", "surplus blank line at the end left out"
NORMALIZED = "line written in Unicode form NFC"


def cleaned_text(path: FilePath, n_lines: int, repairs: Counter[str]) -> Iterator[bytes]:
    """Lines of a text; the repairs are counted once all lines are taken.

    n_lines: of the source; blank lines after as many are left out. `InputError` for bytes that are
    not UTF-8 text.
    """
    notices = Notices()
    lines = (line.replace(_MARK, b"") for line in read_lines(path, notices))
    yield from islice(lines, n_lines)
    surplus = list(lines)
    if any(line.strip() for line in surplus):
        yield from surplus
    elif surplus:
        repairs[SURPLUS] += len(surplus)
    _count(notices, repairs)


def cleaned_list(path: FilePath, options: ReadingOptions, repairs: Counter[str]) -> Iterator[bytes]:
    """Lines of a k-best list; the repairs are counted once all lines are taken.

    The list is read before: `InputError` if it is in no known format. Lists that have to be sorted
    are in memory.
    """
    findings = Findings()
    known, lines = opened(path, findings, options)
    clean = (line.replace(_MARK, b"") for line in lines)
    rows = known.read(clean, findings, source=display(path), clip=options.clip_inf)
    ids = [chunk.sentences for chunk in rows]
    _count(findings, repairs)
    by_line = isinstance(known, Moses | NamedFeatures)
    if findings.first_fault is not None and not by_line:
        raise findings.first_fault
    kept = _kept(path, options, findings, repairs)
    order = np.concatenate(ids) if ids else np.zeros(0, np.int64)
    if not by_line or (np.diff(order) >= 0).all():
        yield from kept
        return
    by_id = np.argsort(order, kind="stable")
    repairs[SORTED] += int((by_id != np.arange(len(by_id))).sum())
    every = list(kept)
    yield from map(every.__getitem__, by_id.tolist())


def _kept(
    path: FilePath, options: ReadingOptions, findings: Findings, repairs: Counter[str]
) -> Iterator[bytes]:
    """The lines but for those refused and, where blank ones are skipped, those."""
    skips = findings.count_of("blank-line") > 0
    lines = read_lines(path, Findings(), encoded=options.encoded)
    for number, line in enumerate((text.replace(_MARK, b"") for text in lines), 1):
        if number in findings.refused:
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


def _count(notices: Notices, repairs: Counter[str]) -> None:
    """Count the repairs of what notices about lines tell."""
    for notice in notices:
        if notice.kind.name in _REPAIRS:
            repairs[_REPAIRS[notice.kind.name]] += notice.count
