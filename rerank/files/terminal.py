"""Text for people, on standard error and standard output; nothing else in `rerank` prints.

Labels, ids, keys and texts come from strangers. A terminal obeys the control characters in them,
and bidirectional controls show a line in another order, so both are printed as escapes.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# C0 and C1 without TAB and LF, separators of lines, bidirectional controls, surrogates
_OBEYED = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]"
)
_LONGEST = 4000  # characters of a line of a message
_PROGRESS: ContextVar[bool] = ContextVar("progress", default=True)


def printable(line: str) -> str:
    """A line of a message, with characters that are not printable as Python's escapes."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def harmless(text: str) -> str:
    """Text of any number of lines, with the characters that a terminal obeys as Python's escapes.

    Line ends, TABs and other white space stay, and so do invisible characters such as the joiners
    of Persian.
    """
    return _OBEYED.sub(lambda found: printable(found[0]), text)


def say(lines: str) -> None:
    """Print lines on standard error, of each at most 4,000 characters, as `printable` makes them.

    Lines that cannot be written, since the terminal has gone or the disk of a log is full, are
    lost: what a run says does not decide how it ends.
    """
    import click

    shown = (
        printable(line[:_LONGEST]) + "…" * (len(line) > _LONGEST) for line in lines.split("\n")
    )
    try:
        click.echo("\n".join(shown), err=True)
    except OSError:
        _silence()


def show(result: str) -> None:
    """Print a result on standard output; on a terminal as `harmless` makes it.

    OSError if it cannot be written.
    """
    import click

    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    # `color`: click would remove some escape sequences
    click.echo(harmless(result) if on_terminal else result, color=True)


@contextmanager
def progress_shown(shown: bool) -> Iterator[None]:
    """Show the progress of long work in a block, or do not."""
    token = _PROGRESS.set(shown)
    try:
        yield
    finally:
        _PROGRESS.reset(token)


def shows_progress() -> bool:
    """Whether the progress of long work is to be shown here."""
    return _PROGRESS.get()


def flush_messages() -> None:
    """Leave nothing to be written at exit, where Python turns a failure into exit code 120."""
    if sys.stderr is not None:
        try:
            sys.stderr.flush()
        except OSError:
            _silence()


def _silence() -> None:
    """Send what standard error still holds, and all that follows, nowhere."""
    with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stderr.fileno())


class TerminalFile(io.RawIOBase):
    """Unbuffered file into a terminal; bytes are written as `harmless` UTF-8 text."""

    def __init__(self, terminal: BinaryIO) -> None:
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        """Whether bytes can be written: yes."""
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all bytes, a character that they end inside of with the next ones."""
        left = memoryview(harmless(self._decoder.decode(bytes(data))).encode())
        while left:
            left = left[self._terminal.write(left) :]
        return memoryview(data).nbytes
