"""Errors that a user can correct, each with its exit code.

0 success · 1 the run failed · 2 usage or configuration · 3 bad input data ·
75 stopped early with the state saved · 130/143 a signal with nothing saved.
A message is one line: what was expected, what was found, and the cure; what it shows of files is
printable.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Self

# controls but TAB, zero-width and bidirectional characters, separators of lines, soft hyphen
_INVISIBLE = re.compile(
    "[\0-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]"
)
_SHOWN = 60  # bytes of a token in a message
MADE_OF: dict[str, Callable[[int], str]] = {}
"""Where the lines of a file that a run has made come from, by the name of the file in messages."""


def place(source: str, line: int | None) -> str:
    """The place of a message: `file:line`, or where a line that a run has made comes from."""
    if line is None:
        return source
    return MADE_OF[source](line) if source in MADE_OF else f"{source}:{line}"


class RerankError(Exception):
    """A run that failed for a reason outside the program: input or output, memory, a scorer."""

    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class UsageError(RerankError):
    """Invalid or contradictory options or configuration."""

    exit_code = 2


class ArgumentError(UsageError, TypeError):
    """A value that is not of the type that a function, or an attribute of a scorer, takes."""

    @classmethod
    def of(cls, what: str, expected: str, found: object) -> Self:
        """The error about an argument of Python."""
        return cls(f"{what}: expected {expected}, found {type(found).__name__} {found!r:.60}")


class InputError(RerankError):
    """Bad input data, with its place: `file:line: expected …, found …; cure`."""

    exit_code = 3

    def __init__(self, message: str, *, source: str = "", line: int | None = None) -> None:
        self.source = source
        self.line = line
        self.what = printable(message)
        where = place(source, line)
        super().__init__(f"{where}: {message}" if where else message)


class SideError(InputError):
    """Bad side information of a sentence of a document, whose file and line the caller knows.

    kind: of side information; sentence: its number in the document, from 0.
    """

    def __init__(self, message: str, *, kind: str, document: str, sentence: int) -> None:
        self.kind, self.document, self.sentence = kind, document, sentence
        super().__init__(message, source=f"{kind} of document {document!r}, sentence {sentence}")

    def located(self, source: str, line: int) -> InputError:
        """The error with its place in a file."""
        return InputError(self.what, source=source, line=line)


class StoppedEarly(RerankError):
    """A run stopped by a signal or a time limit, with its state saved."""

    exit_code = 75


def printable(line: str) -> str:
    """A line of a message, with characters that are not printable as Python's escapes."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def visible(text: str) -> str:
    """Text of a page with each invisible character as `‹U+202E›`."""
    return _INVISIBLE.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)


def shown(data: bytes) -> str:
    """The first 60 bytes at most, quoted and printable, for a message."""
    text = repr(data[:_SHOWN].decode("utf-8", "backslashreplace"))
    return text if len(data) <= _SHOWN else f"{text}…"
