"""Paths of files: their names in messages, and those that no file system can hold."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TypeAlias

from rerank.errors import UsageError
from rerank.files.terminal import printable

FilePath: TypeAlias = str | os.PathLike[str]
STDIN = "<stdin>"
_SHOWN = 40  # characters of a long path in a message


def refuse_long(path: str | Path) -> None:
    """UsageError for a path of which a name, or the whole, is longer than the system allows."""
    try:
        os.lstat(path)
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:
            size, longest = len(os.fsencode(path)), max(map(len, os.fsencode(path).split(b"/")))
            raise UsageError(
                f"{display(path)[:_SHOWN]}… is too long for the file system: {size} bytes, "
                f"{longest} in one name; choose a shorter path"
            ) from None


def display(path: FilePath) -> str:
    """Name of a file in messages: printable, on one line; `<stdin>` for `-` and for its copy."""
    name = STDIN if str(path) == "-" else str(path)
    if re.fullmatch("<.+>", Path(name).name):  # a copy made by `spool`
        name = Path(name).name
    return printable(name)
