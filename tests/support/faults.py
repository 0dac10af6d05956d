"""Rows of the table of faults: what is wrong with the files or the command, and what is said of it.

The rows stand in `tests/faults/rows/*.py`, a list `FAULTS` in each; `tests/faults/test_table.py`
runs them all. A new refusal needs one row there and no other test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Change = Callable[[bytes], bytes]
Changes = Mapping[str, "Change | str | bytes | Model | None"]
"""By file: new content, or None to remove it; by folder: the model in it."""


@dataclass(frozen=True)
class Model:
    """A language model with drawn weights: arguments of `World.model`."""

    name: str
    shape: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """A command on the files of `support.world.SOUND` after `changes`, and how it ends.

    name: row of the catalogue of faults (`--` where it has none) and words, `29-nan`.
    message: patterns, each found in standard error (of `check`: standard output) if it does not
    begin with `!`, else found nowhere.
    exit: 3 input, 2 usage, 1 the system, 0 for a warning, which `--strict` turns into 3.
    cure: what the message advises, applied and run, must succeed: files changed further, the
    command that it names, or both. None only where the message advises nothing that a test can do.
    """

    name: str
    command: str
    message: str | tuple[str, ...]
    changes: Changes = field(default_factory=dict)
    exit: int = 3
    cure: Changes | str | tuple[Changes, str] | None = None
    stdin: bytes = b""
    environment: Mapping[str, str] = field(default_factory=dict)


def table(text: str, changes: Changes, exit: int = 2) -> list[Fault]:
    """A fault a line, `name | command | message | cure`; the command of a cure may be missing."""
    return [
        Fault(name, command, message, changes, exit, cure[0] if cure else None)
        for name, command, message, *cure in (row.split(" | ") for row in text.strip().split("\n"))
    ]


# Changes of a file


def line(number: int, old: str, new: str) -> Change:
    """Another text on a line, counted from 1."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        assert old.encode() in lines[number - 1], lines[number - 1]
        lines[number - 1] = lines[number - 1].replace(old.encode(), new.encode(), 1)
        return b"\n".join(lines)

    return change


def replaced(old: str | bytes, new: str | bytes) -> Change:
    """Another text wherever one is."""
    a, b = (text.encode() if isinstance(text, str) else text for text in (old, new))

    def change(content: bytes) -> bytes:
        assert a in content, content
        return content.replace(a, b)

    return change


def put(number: int, *lines: str) -> Change:
    """Lines before the line of this number."""

    def change(content: bytes) -> bytes:
        found = content.split(b"\n")
        found[number - 1 : number - 1] = [one.encode() for one in lines]
        return b"\n".join(found)

    return change


def without(*numbers: int) -> Change:
    """The content without these lines."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        return b"\n".join(one for n, one in enumerate(lines, 1) if n not in numbers)

    return change


def order(*numbers: int) -> Change:
    """The lines of these numbers, in this order."""

    def change(content: bytes) -> bytes:
        lines = content.split(b"\n")
        return b"".join(lines[n - 1] + b"\n" for n in numbers)

    return change


def recoded(encoding: str) -> Change:
    """The text in another encoding."""
    return lambda old: old.decode().encode(encoding)


def around(start: bytes = b"", end: bytes = b"") -> Change:
    """Bytes before and after the content."""
    return lambda old: start + old + end


def both(*changes: Change) -> Change:
    """Several changes, one after another."""

    def change(old: bytes) -> bytes:
        for one in changes:
            old = one(old)
        return old

    return change
