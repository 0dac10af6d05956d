"""Notices: counted warnings about input that is accepted, but that its owner should know about.

In the shell each kind is reported once, at the end, with its count and its first place; `strict`
turns the first of them into an error. In Python they are warnings (`PythonWarnings`). Readers hand
the errors after which they could go on to `refuse`, which raises them, unless they are to be
counted as well (`rerank.commands.findings`).
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rerank.errors import InputError
from rerank.text import printable

NAMED = 5  # names in a warning
Printer: TypeAlias = Callable[[str], None]  # prints a line about a run
log = logging.getLogger("rerank")  # lines about a run, unless the caller prints them


@dataclass(slots=True)
class Notice:
    """One kind of warning: how often it occurred, where first, and the names that it is about."""

    kind: str
    first: str
    count: int = 0
    names: list[str] = field(default_factory=list)

    def to_text(self) -> str:
        """What was found: `feature without weight, counted as 0: LM0, TM0, WP0, …`."""
        named = ", ".join(self.names[:NAMED] + ["…"] * (len(self.names) > NAMED))
        return f"{self.kind}: {named}" if named else self.kind


class Notices:
    """Warnings of a run, counted by kind."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._by_kind: dict[str, Notice] = {}

    def add(
        self,
        kind: str,
        *,
        source: str = "",
        line: int | None = None,
        count: int = 1,
        names: Sequence[str] = (),
    ) -> None:
        """Count a warning; `kind` is a phrase: what was found and, where there is one, the cure.

        names: what the warning is about, such as features; each counts once, and `count` does not.
        """
        if self.strict:
            text = Notice(kind, "", names=list(names)).to_text()
            raise InputError(f"{text} (an error under --strict)", source=source, line=line)
        where = source if line is None else f"{source}:{line}"
        notice = self._by_kind.setdefault(kind, Notice(kind, where))
        new = [name for name in names if name not in notice.names]
        notice.count += len(new) if names else count
        notice.names += new

    def refuse(self, fault: InputError, *, count: int = 1) -> None:
        """Raise the error about an entry of a file.

        A subclass may count it instead: if this function returns, the reader leaves the entry out
        and goes on. count: entries with the same error.
        """
        raise fault

    def unreported(self) -> Notices:
        """Notices of another reading of a file whose notices are already counted."""
        return Notices()

    def __iter__(self) -> Iterator[Notice]:
        return iter(self._by_kind.values())

    def lines(self) -> list[str]:
        """One line per kind: `12 x CRLF line ends, first at dev.kbest:1`."""
        return [
            f"{n.count} x {n.to_text()}" + (f", first at {n.first}" if n.first else "")
            for n in self
        ]


class RerankWarning(UserWarning):
    """Input that is accepted, but that its owner should know about."""


class PythonWarnings(Notices):
    """Notices of functions called from Python: of each kind the first becomes a `RerankWarning`."""

    def add(
        self,
        kind: str,
        *,
        source: str = "",
        line: int | None = None,
        count: int = 1,
        names: Sequence[str] = (),
    ) -> None:
        """Count a warning, and issue it if it is the first of its kind."""
        known = kind in self._by_kind
        super().add(kind, source=source, line=line, count=count, names=names)
        if not known:
            notice = self._by_kind[kind]
            text = f"{notice.first}: {notice.to_text()}" if notice.first else notice.to_text()
            warnings.warn(printable(text), RerankWarning, stacklevel=2)
