"""Notices: counted warnings about input that is accepted, but that its owner should know about.

In the shell each kind is reported once, at the end, with its count and its first place; `strict`
turns the first of them into an error. In Python they are warnings
(`rerank.api.PythonWarnings`). Readers hand the errors after which they could go on
to `refuse`, which raises them, unless they are to be counted as well (`rerank.check.findings`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from rerank.errors import InputError, place

NAMED = 5  # names in a warning
Printer: TypeAlias = Callable[[str], None]  # prints a line about a run
log = logging.getLogger("rerank")  # lines about a run, unless the caller prints them
_NAME_WORDS = 4  # at most, in the name of a kind
_NEVER_LAST = re.compile("(-(a|an|the|of|to|in|by|for|as|that|than|with|is|are|not|and|or))+$")


def kind_name(kind: str) -> str:
    """The name of a kind of warning, for `--allow`: the first words of its phrase.

    >>> kind_name("feature without weight; 0.5 is used")
    'feature-without-weight'
    """
    phrase = re.split(r"[;:,(]", kind.lower(), maxsplit=1)[0]
    return _NEVER_LAST.sub("", "-".join(re.findall("[a-z]+", phrase)[:_NAME_WORDS]))


def is_allowed(kind: str, allowed: Collection[str]) -> bool:
    """Whether `--allow` names a kind, by its name or the first words of it."""
    return any(f"{kind_name(kind)}-".startswith(f"{name}-") for name in allowed)


def vain(allowed: Collection[str], kinds: Collection[str]) -> Iterator[str]:
    """A line for each name of `--allow` that no kind of warning of a run has."""
    names = ", ".join(sorted(set(map(kind_name, kinds))))
    for name in allowed:
        if not any(is_allowed(kind, [name]) for kind in kinds):
            found = f"kinds of this run: {names}" if names else "this run has no warnings"
            yield f"--allow {name}: no warning of that kind; {found}"


@dataclass(slots=True)
class Notice:
    """One kind of warning: how often it occurred, where first, and the names that it is about.

    asked: whether it is about what the user has asked for by an option.
    """

    kind: str
    first: str
    count: int = 0
    names: list[str] = field(default_factory=list)
    asked: bool = False

    def to_text(self) -> str:
        """What was found: `feature without weight, counted as 0: LM0, TM0, WP0, …`."""
        named = ", ".join(self.names[:NAMED] + ["…"] * (len(self.names) > NAMED))
        return f"{self.kind}: {named}" if named else self.kind


class Notices:
    """Warnings of a run, counted by kind.

    strict: whether they are errors, but for those about what an option asks for, and for the kinds
    that are `allowed`.
    """

    def __init__(self, *, strict: bool = False, allowed: Collection[str] = ()) -> None:
        self.strict, self.allowed = strict, allowed
        self._by_kind: dict[str, Notice] = {}
        self._returned = 0

    def add(
        self,
        kind: str,
        *,
        source: str = "",
        line: int | None = None,
        count: int = 1,
        names: Sequence[str] = (),
        asked: bool = False,
    ) -> None:
        """Count a warning; `kind` is a phrase: what was found and, where there is one, the cure.

        names: what the warning is about, such as features; each counts once, and `count` does not.
        asked: whether an option asks for what is warned of, so that `strict` accepts it.
        """
        if self.strict and not asked and not is_allowed(kind, self.allowed):
            text, name = Notice(kind, "", names=list(names)).to_text(), kind_name(kind)
            raise InputError(
                f"{text} (an error under --strict; --allow {name} accepts it)",
                source=source,
                line=line,
            )
        where = place(source, line)
        notice = self._by_kind.setdefault(kind, Notice(kind, where, asked=asked))
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
        """One line per kind: `12 x CRLF line ends, first at dev.kbest:1 [crlf-line-ends]`.

        Kinds whose lines were returned before are left out.
        """
        begin, self._returned = self._returned, len(self._by_kind)
        return [
            f"{n.count} x {n.to_text()}{f', first at {n.first}' * bool(n.first)} "
            f"[{kind_name(n.kind)}]"
            for n in islice(self, begin, None)
        ]


class RerankWarning(UserWarning):
    """Input that is accepted, but that its owner should know about; its kind, as for `--allow`."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind
