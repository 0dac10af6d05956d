"""Text of strangers: numbers that are read from it, and how a message shows it.

A number is written in ASCII decimals; `nan`, `1_0` and `١`, which Python takes, are none.
"""

from __future__ import annotations

import re

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST = 1e100  # size of a number that is read: products of three, and their sums, stay finite
_SHOWN = 60  # bytes of a token in a message


def printable(line: str) -> str:
    """A line of a message, with characters that are not printable as Python's escapes."""
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def shown(data: bytes) -> str:
    """The first 60 bytes at most, quoted and printable, for a message."""
    text = repr(data[:_SHOWN].decode("utf-8", "backslashreplace"))
    return text if len(data) <= _SHOWN else f"{text}…"
