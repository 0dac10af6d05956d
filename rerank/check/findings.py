"""Findings about input files: the errors and notices of the readers, counted by kind and file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from rerank.check.cures import cure_of
from rerank.errors import InputError
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
    place, and the cure; lines: the first places, where they are known; count: of all places.
    """

    fault: bool
    source: str
    message: str
    lines: list[int] = field(default_factory=list)
    count: int = 0

    def to_text(self) -> str:
        """`file:line: what; cure (3 times, next on lines 7, 9)`."""
        where = self.source + (f":{self.lines[0]}" if self.lines else "")
        text = f"{where}: {self.message}" if where else self.message
        if self.count == 1:
            return text
        if len(self.lines) == 1:
            return f"{text} ({self.count:,} times)"
        next_lines = ", ".join(map(str, self.lines[1:]))
        more = ", …" if self.count > len(self.lines) else ""
        plural = "s" if len(self.lines) > 2 or more else ""
        next_places = f", next on line{plural} {next_lines}{more}" if next_lines else ""
        return f"{text} ({self.count:,} times{next_places})"

    def to_dict(self) -> dict[str, object]:
        """The finding as JSON values."""
        return {
            "level": "fault" if self.fault else "warning",
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
        self._found: dict[tuple[bool, str, str], Finding] = {}
        self._kinds: Counter[tuple[bool, str]] = Counter()  # by level and file
        self.refused: set[int] = set()  # lines with errors
        self.first_fault: InputError | None = None

    def add(
        self,
        kind: str,
        *,
        source: str = "",
        line: int | None = None,
        count: int = 1,
        names: Sequence[str] = (),
    ) -> None:
        """Count a notice, with the cure for its kind; see `Notices.add`."""
        super().add(kind, source=source, line=line, count=count, names=names)
        text = Notice(kind, "", names=list(names)).to_text()
        self._count(False, source, text + cure_of(kind), line, len(names) or count)

    def refuse(self, fault: InputError, *, count: int = 1) -> None:
        """Count an error, and let the reader go on."""
        self.first_fault = self.first_fault or fault
        self._count(True, fault.source, fault.what, fault.line, count)
        if fault.line is not None:
            self.refused.add(fault.line)

    def unreported(self) -> Notices:
        """Findings of another reading of a file, which stops at no fault either."""
        return Findings()

    def merge(self, others: Findings) -> None:
        """Add the findings of another reading; what both have found in a file counts once."""
        for notice in others:
            super().add(notice.kind, source=notice.first, count=notice.count, names=notice.names)
        for key, found in others._found.items():
            if key not in self._found or found.count > self._found[key].count:
                self._found[key] = found

    def _count(self, fault: bool, source: str, message: str, line: int | None, count: int) -> None:
        kind = _PARTICULARS.sub("…", message)
        if (fault, source, kind) not in self._found:
            self._kinds[fault, source] += 1
            if self._kinds[fault, source] > _KINDS:
                kind = message = _OTHERS.format("faults" if fault else "warnings")
        found = self._found.setdefault((fault, source, kind), Finding(fault, source, message))
        found.count += count
        if line is not None and len(found.lines) < PLACES and line not in found.lines:
            found.lines.append(line)

    def count_of(self, kind: str) -> int:
        """How often a notice of this kind was given."""
        return sum(notice.count for notice in self if notice.kind == kind)

    def about(self, sources: Collection[str]) -> Findings:
        """The findings about some files."""
        found = Findings()
        found._found = {key: one for key, one in self._found.items() if one.source in sources}
        return found

    def without_repeats(self, source: str, inputs: Findings) -> Findings:
        """The findings without those about file `source` of a kind that `inputs` has, too.

        inputs: findings about the files of which `source` was made.
        """
        kinds = {(fault, kind) for fault, _, kind in inputs._found}
        found = Findings()
        found._found = {
            (fault, name, kind): one
            for (fault, name, kind), one in self._found.items()
            if name != source or (fault, kind) not in kinds
        }
        return found

    @property
    def all(self) -> list[Finding]:
        """All findings, in the order of their first places in the run."""
        return list(self._found.values())

    def of_level(self, fault: bool) -> Iterator[Finding]:
        """The findings that are faults, or those that are not."""
        return (found for found in self.all if found.fault is fault)
