"""Input files that must not change while a run reads them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from rerank.errors import RerankError
from rerank.files.paths import FilePath, display


class RereadFile(os.PathLike[str]):
    """Path of a file that is read several times, each time with the content of the first time.

    RerankError where size or time of modification differ at the beginning or at the end of a
    reading, or the digest of the bytes that a whole reading has seen.
    """

    def __init__(self, path: FilePath) -> None:
        self.path = Path(path)
        self._status: tuple[int, int] | None = None
        self._digest = b""

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def check(self) -> None:
        """RerankError if the file is not what it was when it was first opened."""
        if self._status not in (None, _status(self.path)):
            raise _changed(self.path)

    @contextmanager
    def reading(self, file: BinaryIO) -> Iterator[BinaryIO]:
        """The opened file, checked; after a reading that is broken off no digest is compared."""
        hashed = _HashedFile(file)
        self._status = self._status or _status(file.fileno())
        self.check()
        yield cast(BinaryIO, hashed)
        self.check()
        found = hashed.digest.digest()
        if self._digest not in (b"", found):
            raise _changed(self.path)
        self._digest = found


class _HashedFile:
    """A file whose bytes are hashed as they are read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self._file.read(size)
        self.digest.update(data)
        return data


class InputFiles:
    """Input files of a run, as they are when it begins."""

    def __init__(self, paths: Iterable[FilePath]) -> None:
        self._before = {os.fspath(path): _status(path) for path in paths}

    def check(self) -> None:
        """RerankError if the size or the time of modification of a file is another one now."""
        for path, before in self._before.items():
            if _status(path) != before:
                raise _changed(path)


def _status(file: FilePath | int) -> tuple[int, int] | None:
    """Size and time of modification in ns; None for pipes, devices, `-` and missing files."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def _changed(path: FilePath) -> RerankError:
    return RerankError(
        f"{display(path)} has changed while it was read; run the command again when no other "
        "program writes the file, or on a copy"
    )
