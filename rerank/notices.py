"""Counted warnings: input that is accepted, but that its owner should know about.

Each kind is reported once, at the end, with its count and its first place; `strict`
turns the first of them into an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rerank.errors import InputError


@dataclass(slots=True)
class Notice:
    """One kind of accepted oddity: how often it came and where it came first."""

    kind: str
    first: str
    count: int = 0


class Notices:
    """Collector of counted warnings, one per run."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self._by_kind: dict[str, Notice] = {}

    def add(self, kind: str, *, source: str = "", line: int | None = None, count: int = 1) -> None:
        """Count an oddity; `kind` is a phrase that states it and, where there is one, its cure."""
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

    def as_json(self) -> list[dict[str, object]]:
        """The same for machines: `[{"kind": …, "count": …, "first": …}]`."""
        return [{"kind": n.kind, "count": n.count, "first": n.first} for n in self]
