"""Text of strangers: numbers that are read from it, and how a message shows it.

A number is written in ASCII decimals; `nan`, `1_0` and `١`, which Python takes, are none.
"""

from __future__ import annotations

import re

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST = 1e100  # size of a number that is read: products of three, and their sums, stay finite
# controls but TAB, zero-width and bidirectional characters, separators of lines, soft hyphen
_INVISIBLE = re.compile(
    "[\0-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]"
)
_SHOWN = 60  # bytes of a token in a message


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
