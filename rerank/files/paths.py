"""Paths of files: their names in messages, and those that no file system can hold."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TypeAlias

from rerank.errors import UsageError, printable

FilePath: TypeAlias = str | os.PathLike[str]
STDIN = "<stdin>"
CONFIGURATION = "rerank.config"  # key of click's context, for the file of options
SHOWN_AS: dict[str, str] = {}  # names in messages, by the paths of temporary files
_SHOWN = 40  # characters of a long path in a message


def refuse_long(path: FilePath) -> None:
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


def file_and_name(path: FilePath) -> tuple[FilePath, str | None]:
    """The file and the name of a text in it of `FILE#NAME`; None without a name.

    A path that exists is a file whatever its name.
    """
    text = str(path)
    if "#" not in text or os.path.lexists(text):
        return path, None
    places = [place for place, one in enumerate(text) if one == "#"]
    for place in places:
        if os.path.lexists(text[:place]) or text.startswith("sacrebleu:"):
            return text[:place], text[place + 1 :]
    return text[: places[0]], text[places[0] + 1 :]


def file_of(path: FilePath) -> FilePath:
    """The file of `FILE` or `FILE#NAME`."""
    return file_and_name(path)[0]


def display(path: FilePath) -> str:
    """Name of a file in messages: printable, on one line; `<stdin>` for `-` and for its copy."""
    return printable(STDIN if str(path) == "-" else SHOWN_AS.get(str(path), str(path)))


def base_name(path: FilePath) -> str:
    """Last part of a path; of a temporary copy, the name that messages give it."""
    return SHOWN_AS.get(str(path)) or Path(path).name
