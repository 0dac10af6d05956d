"""Large arrays: in memory as long as they fit there, beyond it in temporary files.

The files have no name: the system frees them when the arrays are gone or the process ends, also
when it is killed. They lie in the folder that `TMPDIR` names, which should be on a disk. Pages of
them that were read count as memory of the process until they are released; then the system still
has them, as long as nothing else needs the room.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from weakref import ReferenceType, WeakSet, finalize, ref

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rerank.errors import RerankError
from rerank.files.paths import display

SMALL = 1 << 16  # bytes: arrays below it stay in memory
_BLOCK = 1 << 28  # bytes of a file that holds many arrays
_ALIGNED = 64
WATCH = "memory of arrays"  # name of the thread that releases pages
_SECONDS = 0.02  # between two looks at the memory of the process
_FEW = 32 << 20  # bytes of files in memory that are not worth releasing
_DOCUMENT = 0.25  # share of the memory for the lists of a document
# shares of the memory up to which arrays stay there: what is needed most comes last
_KEPT, _LARGE, _WORKING = 0.25, 0.75, 1.0

SHARE = 0.5  # of the available memory that arrays take by default
_OTHERS = 240 << 20  # bytes that a run takes beside these arrays once its libraries are loaded
_MEMINFO = re.compile(r"^MemAvailable:\s*(\d+) kB", re.MULTILINE)
# limit and use of a control group: version 2, then version 1 (Linux)
_GROUPS = (
    ("", "sys/fs/cgroup", "memory.max", "memory.current"),
    ("memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)
_CACHED = re.compile(r"^(?:total_)?inactive_file (\d+)$", re.MULTILINE)  # can be dropped at once


class ArrayStore:
    """Where a run's large arrays lie, on which their values do not depend.

    memory: bytes for arrays in memory; whole: bytes of the process beyond which pages of files are
    released; None for no limit. Threads may make arrays at once. RerankError for a full disk.
    """

    def __init__(self, memory: int | None = None, whole: int | None = None) -> None:
        self.memory, self.whole = memory, whole
        self.on_disk = 0  # bytes written to files so far
        self._held = 0
        self._freed: deque[int] = deque()  # bytes of arrays that are gone; finalizers take no lock
        self._lock = Lock()
        self._files: WeakSet[mmap.mmap] = WeakSet()
        self._block: mmap.mmap | None = None  # with room for more arrays behind `_filled`
        self._filled = 0

    @classmethod
    def of_process(cls, memory: int | None) -> ArrayStore:
        """A store for a process that may have so many bytes, by default half of what is left."""
        if memory is None:
            return cls(int(SHARE * available_memory()))
        return cls(max(0, memory - resident_memory()[0] - _OTHERS), memory)

    def large(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """A new array without values, for as long as a pool lives."""
        return self._new(shape, dtype, _LARGE)

    def working(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """A new array without values that a search reads and writes all the time."""
        return self._new(shape, dtype, _WORKING)

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array itself, or a copy on disk: one of many, each of which is seldom read."""
        if self._fits(array.nbytes, _KEPT):
            return self._until_gone(array)
        return self.filed(array)

    def filed(self, array: NDArray[Any]) -> NDArray[Any]:
        """A copy of the array on disk, one of many in a file."""
        if array.nbytes == 0:
            return array
        place = -(-self._filled // _ALIGNED) * _ALIGNED
        if self._block is None or place + array.nbytes > len(self._block):
            self.release()
            self._block, place = self._file(max(_BLOCK, array.nbytes)), 0
        self._filled = place + array.nbytes
        copy = np.frombuffer(self._block, array.dtype, array.size, place).reshape(array.shape)
        copy[...] = array
        return copy

    def in_file(self, shape: Sequence[int], dtype: DTypeLike) -> NDArray[Any]:
        """A new array without values in a file of its own, or in memory if it is small."""
        return self._new(shape, dtype, None)

    def has_room(self, size: int) -> bool:
        """Whether the lists of one document may have so many bytes in memory, beside the rest."""
        return self.memory is None or size <= _DOCUMENT * self.memory

    def release(self) -> None:
        """Let the pages of all files leave the memory of the process; their content stays."""
        if hasattr(mmap, "MADV_DONTNEED"):
            with self._lock:
                for file in self._files:
                    file.madvise(mmap.MADV_DONTNEED)

    def _new(self, shape: Sequence[int], dtype: DTypeLike, share: float | None) -> NDArray[Any]:
        """A new array, in a file if it is not small and does not fit into a share of the memory."""
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if size < SMALL:
            return np.empty(shape, dtype)
        if share is not None and self._fits(size, share):
            return self._until_gone(np.empty(shape, dtype))
        return np.frombuffer(self._file(size), dtype).reshape(shape)

    def _fits(self, size: int, share: float) -> bool:
        """Whether so many bytes fit into a share of the memory; then they are taken."""
        if self.memory is None:
            return True
        with self._lock:
            while self._freed:
                self._held -= self._freed.popleft()
            fits = self._held + size <= share * self.memory
            self._held += size if fits else 0
        return fits

    def _until_gone(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array, whose bytes were taken, and are free again when it is gone."""
        if self.memory is not None:
            finalize(array, self._freed.append, array.nbytes).atexit = False
        return array

    def _file(self, size: int) -> mmap.mmap:
        """A file of so many bytes without a name, in memory as the system sees fit."""
        folder = tempfile.gettempdir()
        try:
            with tempfile.TemporaryFile(prefix="rerank-", dir=folder) as file:
                if hasattr(os, "posix_fallocate"):  # a full disk is heard of too late otherwise
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    os.truncate(file.fileno(), size)
                pages = mmap.mmap(file.fileno(), size)
        except OSError as fault:
            if fault.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise RerankError(
                f"no space left in {display(folder)} for {size / 1e6:,.0f} MB of candidates that "
                "do not fit into --memory; name a folder with more room in TMPDIR, or allow more "
                "memory"
            ) from None
        with self._lock:
            first = not self.on_disk
            self._files.add(pages)
            self.on_disk += size
        if first and self.whole is not None:
            others = resident_memory()[1]  # libraries
            watched = ref(self), self.whole, others
            Thread(target=_watch, args=watched, name=WATCH, daemon=True).start()
        return pages


IN_MEMORY = ArrayStore()


def _watch(store: ReferenceType[ArrayStore], whole: int, others: int) -> None:
    """Release a store's pages whenever the process has too much in memory, until it is gone.

    others: bytes of other files in memory, which stay.
    """
    while (arrays := store()) is not None:
        resident, of_files = resident_memory()
        if resident > whole and of_files > others + _FEW:
            arrays.release()
        del arrays
        time.sleep(_SECONDS)


# What the machine has left


def available_memory() -> int:
    """Bytes that can be used without swapping; `sys.maxsize` where the system does not say.

    The least of what Linux states and of what the limits of control groups leave.
    """
    available = _MEMINFO.search(_text("/proc/meminfo"))
    if available is None:
        return sys.maxsize
    return min([int(available[1]) << 10, *_left_by_groups()])


def resident_memory() -> tuple[int, int]:
    """Bytes of this process in memory, and of mapped files among them; zeros if unknown."""
    pages = _text("/proc/self/statm").split()[1:3]
    if not pages:
        return 0, 0
    resident, of_files = (int(number) * os.sysconf("SC_PAGE_SIZE") for number in pages)
    return resident, of_files


def size_text(size: int) -> str:
    """A number of bytes for people, in units of 1,024 bytes each as options have them.

    >>> size_text(3 << 30), size_text(1_600_000_000)
    ('3G', '1.49G')
    """
    for unit, letter in ((1 << 30, "G"), (1 << 20, "M")):
        if size >= unit:
            return f"{size / unit:.3g}{letter}"
    return f"{size / 1024:.3g}K"


def _left_by_groups() -> list[int]:
    """What each limit of a control group of this process leaves."""
    left = []
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        for name, folder, limit, used in _GROUPS:
            if name not in controllers.split(","):
                continue
            innermost = Path("/", folder, path.lstrip("/"))
            for group in (innermost, *innermost.parents[: len(Path(path).parts) - 1]):
                numbers = [_text(group / file).strip() for file in (limit, used)]
                if all(number.isdecimal() for number in numbers):
                    cached = _CACHED.findall(_text(group / "memory.stat"))
                    use = int(numbers[1]) - max(map(int, cached), default=0)
                    left.append(max(0, int(numbers[0]) - use))
    return left


def _text(file: str | Path) -> str:
    """Text of a file of the system; empty where there is none."""
    try:
        return Path(file).read_text()
    except OSError:
        return ""
