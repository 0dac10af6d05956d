"""Paths that a file system can hold."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from rerank.errors import UsageError

_SHOWN = 40  # characters of a long path in a message


def refuse_long(path: str | Path) -> None:
    """UsageError for a path of which a name, or the whole, is longer than the system allows."""
    try:
        os.lstat(path)
    except OSError as fault:
        if fault.errno == errno.ENAMETOOLONG:
            from rerank.files.lines import display

            size, longest = len(os.fsencode(path)), max(map(len, os.fsencode(path).split(b"/")))
            raise UsageError(
                f"{display(path)[:_SHOWN]}… is too long for the file system: {size} bytes, "
                f"{longest} in one name; choose a shorter path"
            ) from None
