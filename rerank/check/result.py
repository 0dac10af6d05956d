"""What `rerank check` reports: findings, a summary of the lists, and clean copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rerank.check.findings import Findings
from rerank.check.summary import Summary


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
            faults = [found.to_text() for found in self.findings.of_level(True)]
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
            "findings": [found.to_dict() for found in self.findings.all],
        }


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Findings about the files of a run, and a summary of its lists if they can be read.

    strict: whether warnings fail as faults do; copies: clean ones, if any were asked for.
    """

    findings: Findings
    summary: Summary | None
    strict: bool = False
    copies: CleanCopies | None = None

    @property
    def exit_code(self) -> int:
        """3 if the files, or else the clean copies asked for, have faults; otherwise 0."""
        findings = self.findings if self.copies is None else self.copies.findings
        faults = any(findings.of_level(True))
        return 3 if faults or (self.strict and findings.all) else 0

    def to_dict(self) -> dict[str, object]:
        """The result as JSON values, numbers unrounded."""
        return {
            "schema": 1,
            "exit_code": self.exit_code,
            "summary": None if self.summary is None else self.summary.to_dict(),
            "findings": [found.to_dict() for found in self.findings.all],
            "copies": None if self.copies is None else self.copies.to_dict(),
        }

    def to_text(self) -> str:
        """The summary, then the faults and warnings, a line each."""
        parts = [] if self.summary is None else [self.summary.to_text()]
        strict = ", errors under --strict" if self.strict else ""
        for fault, name, meaning in (
            (True, "fault", ", which decode and tune-mert refuse"),
            (False, "warning", strict),
        ):
            lines = [found.to_text() for found in self.findings.of_level(fault)]
            if lines:
                title = f"{len(lines)} {name}{'s' if len(lines) > 1 else ''}{meaning}:"
                parts.append("\n".join([title, *lines, ""]))
        if not self.findings.all:
            parts.append("no faults, no warnings\n")
        if self.copies is not None:
            parts.append(self.copies.to_text())
        return "\n".join(parts)
