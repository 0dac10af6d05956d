"""Notices: counted warnings about input that is accepted, but that its owner should know about.

In the shell each kind is reported once, at the end, with its count and its first place; `strict`
turns the first of them into an error. In Python they are warnings (`PythonWarnings`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from rerank.errors import InputError
from rerank.files.terminal import printable


@dataclass(slots=True)
class Notice:
    """One kind of warning: how often it occurred and where it occurred first."""

    kind: str
    first: str
    count: int = 0


class Notices:
    """Warnings of a run, counted by kind."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._by_kind: dict[str, Notice] = {}

    def add(self, kind: str, *, source: str = "", line: int | None = None, count: int = 1) -> None:
        """Count a warning; `kind` is a phrase: what was found and, where there is one, the cure."""
        if self.strict:
            raise InputError(f"{kind} (an error under --strict)", source=source, line=line)
        where = source if line is None else f"{source}:{line}"
        self._by_kind.setdefault(kind, Notice(kind, where)).count += count

    def __iter__(self) -> Iterator[Notice]:
        return iter(self._by_kind.values())

    def lines(self) -> list[str]:
        """One line per kind: `12 x CRLF line ends, first at dev.kbest:1`."""
        return [
            f"{n.count} x {n.kind}" + (f", first at {n.first}" if n.first else "") for n in self
        ]


class RerankWarning(UserWarning):
    """Input that is accepted, but that its owner should know about."""


class PythonWarnings(Notices):
    """Notices of functions called from Python: of each kind the first becomes a `RerankWarning`."""

    def add(self, kind: str, *, source: str = "", line: int | None = None, count: int = 1) -> None:
        """Count a warning, and issue it if it is the first of its kind."""
        known = kind in self._by_kind
        super().add(kind, source=source, line=line, count=count)
        if not known:
            first = self._by_kind[kind].first
            message = printable(f"{first}: {kind}" if first else kind)
            warnings.warn(message, RerankWarning, stacklevel=2)
