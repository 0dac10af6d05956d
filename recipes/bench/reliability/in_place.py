"""`rerank` as it must not be: it writes its files in place, on a disk that is slow.

The negative control of `kill_loops.py`, which must find torn files: `python in_place.py decode …`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import lm.checkpoint
import lm.folders
from rerank.commands import main
from rerank.files import outputs

SECONDS = 0.1  # between the two halves of a file


class FileInPlace(outputs._TemporaryFile):
    """An output that is written under its final name."""

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """The file, emptied at once."""
        with open(self.target, "wb", buffering=0) as raw:
            yield raw
            size = raw.tell()
            content = Path(self.target).read_bytes()
            raw.truncate(size // 2)
            time.sleep(SECONDS)
            raw.seek(size // 2)
            raw.write(content[size // 2 :])

    def rename(self) -> None:
        """Nothing: the name is final."""

    def remove(self) -> None:
        """Nothing: the old content is gone."""


def replace(path: Path, raw: bytes) -> None:
    """Write a part of a model under its final name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        file.write(raw[: len(raw) // 2])
        file.flush()
        time.sleep(SECONDS)
        file.write(raw[len(raw) // 2 :])


def write_in_place() -> None:
    """Have this process write in place from now on."""
    setattr(outputs, "_TemporaryFile", FileInPlace)  # noqa: B010  it is a class, not a variable
    setattr(lm.checkpoint, "replace", replace)  # noqa: B010
    setattr(lm.folders, "replace", replace)  # noqa: B010


if __name__ == "__main__":
    write_in_place()
    main()
