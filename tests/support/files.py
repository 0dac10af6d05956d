"""Text files in the current folder."""

from collections.abc import Iterable
from pathlib import Path


def write(name: str, lines: Iterable[str]) -> None:
    """Write a file of these lines in UTF-8."""
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
