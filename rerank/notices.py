"""Notices: counted warnings about input that is accepted, but that its owner should know about.

In the shell each is reported once, at the end, with its count and its first place; `strict` turns
the first of them into an error. In Python they are warnings
(`rerank.options.PythonWarnings`). Readers hand the errors after which they could go on
to `refuse`, which raises them, unless they are to be counted as well (`rerank.check.findings`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeAlias

from rerank.diagnostics import Diagnostic, diagnostics
from rerank.errors import InputError, place

NAMED = 5  # names in a warning
Printer: TypeAlias = Callable[[str], None]  # prints a line about a run
log = logging.getLogger("rerank")  # lines about a run, unless the caller prints them


@dataclass(slots=True)
class Notice:
    """A warning: its kind, what it says, its cure, how often it occurred, and where first.

    names: what it is about, such as features; asked: whether an option asks for what it warns of.
    """

    kind: Diagnostic
    sentence: str
    cure: str
    source: str = ""
    line: int | None = None
    count: int = 1
    names: list[str] = field(default_factory=list)
    asked: bool = False
    first: str = ""

    def to_text(self, *, cured: bool = False) -> str:
        """`feature that equals another: LM0, TM0, …; leave it out`; cured: with that of a note."""
        named = listed(self.names)
        cure = "" if self.kind.is_note and not cured else self.cure
        return "; ".join(filter(None, [": ".join(filter(None, [self.sentence, named])), cure]))


@dataclass(frozen=True, slots=True)
class Strictness:
    """Which warnings are errors, by their names: those `denied`, and all under `strict`.

    Of all, not those `allowed` and those about what an option asks for.
    """

    strict: bool = False
    allowed: Collection[str] = ()
    denied: Collection[str] = ()

    def refuses(self, name: str, *, asked: bool) -> str:
        """The option under which a warning is an error; empty if it is none."""
        if name in self.denied:
            return "--deny"
        return "--strict" if self.strict and not asked and name not in self.allowed else ""


def listed(names: Collection[str]) -> str:
    """The first names, and … for further ones."""
    return ", ".join([*names][:NAMED] + ["…"] * (len(names) > NAMED))


class Notices:
    """Warnings of a run, counted by what they say; strictness: which of them are errors."""

    def __init__(self, strictness: Strictness = Strictness()) -> None:
        self.strictness = strictness
        self._by_text: dict[str, Notice] = {}
        self._returned = 0

    def add(
        self,
        name: str,
        /,
        *,
        source: str = "",
        line: int | None = None,
        count: int = 1,
        names: Sequence[str] = (),
        asked: bool = False,
        **values: object,
    ) -> None:
        """Count a warning of this name in `rerank.diagnostics`, with the values of its fields.

        names: what the warning is about, such as features; each counts once, and `count` does not.
        asked: whether an option asks for what is warned of, so that `strict` accepts it.
        """
        kind = diagnostics()[name]
        texts = kind.sentence_of(values), kind.cure_of(values)
        first = place(source, line)
        self.take(Notice(kind, *texts, source, line, count, [*names], asked, first))

    def take(self, notice: Notice) -> None:
        """Count what another reading has counted; InputError for one that is an error."""
        name = notice.kind.name
        if option := self.strictness.refuses(name, asked=notice.asked):
            accepted = f"; --allow {name} accepts it" * (option == "--strict")
            end, where = f"(an error under {option}{accepted})", (notice.source, notice.line)
            raise InputError(f"{notice.to_text()} {end}", source=where[0], line=where[1])
        known = self._by_text.get(notice.sentence)
        if known is None:
            count = len(notice.names) or notice.count
            self._by_text[notice.sentence] = replace(notice, count=count, names=[*notice.names])
            return
        new = [name for name in notice.names if name not in known.names]
        known.count += len(new) if notice.names else notice.count
        known.names += new

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
        return iter(self._by_text.values())

    def lines(self) -> list[str]:
        """A line each: `12 x CRLF line ends, first at dev.kbest:1 [R003 crlf-line-ends]`.

        Those whose lines were returned before are left out.
        """
        begin, self._returned = self._returned, len(self._by_text)
        return [
            f"{one.count} x {one.to_text()}{f', first at {one.first}' * bool(one.first)} "
            f"[{one.kind.label}]"
            for one in islice(self, begin, None)
        ]


class RerankWarning(UserWarning):
    """Input that is accepted, but that its owner should know about; its kind, as for `--allow`."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind
