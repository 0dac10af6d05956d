"""Store of the score cache: arrays that were put are returned unchanged, or not at all.

A shard that is incomplete or damaged is a cache miss; if the cache cannot be written, the run goes
on without it. Processes share a folder without locks: shards are renamed into place, and the last
writer wins.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rerank.cache.folder import abandoned, shard_path, shards_of, size_of
from rerank.cache.shards import packed, unpacked
from rerank.errors import RerankError
from rerank.files.outputs import atomic
from rerank.files.paths import display
from rerank.notices import Notices

_DAMAGED = "damaged score cache shard, computed again"
_TOO_LARGE = "document with more scores than the cache may hold, not kept; raise RERANK_CACHE_GB"


class Cache:
    """Arrays by group (digest of the scorer) and name (digest of the texts), in hex digits.

    folder: made when the first shard is written. limit: bytes of all shards together.
    writable: whether no shard has failed to be written; saved: shards written; hits, misses: calls
    of `get` that found, or did not find, a shard.
    """

    def __init__(self, folder: Path, notices: Notices, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.hits = self.misses = self.saved = 0
        self.notices = notices
        self.writable = True
        # at least the bytes of all shards; they are counted when it seems too much
        self._total: float = math.inf

    def get(self, group: str, name: str) -> dict[str, NDArray[Any]] | None:
        """Arrays as they were put, read-only views of one buffer; None is a cache miss.

        A shard that is damaged or unreadable is a miss with a warning. O(bytes).
        """
        path = shard_path(self.folder, group, name)
        arrays = self._read(path, group, name)
        if arrays is None:
            self.misses += 1
            return None
        self.hits += 1
        with suppress(OSError):
            os.utime(path)  # its recency, for eviction
        return arrays

    def put(self, group: str, name: str, arrays: Mapping[str, NDArray[Any]]) -> bool:
        """Write arrays; whether they are on disk now.

        arrays: of any shape, int8 to int64, uint8, float32 or float64. After the first system
        error, which is a warning, nothing more is written. When the shards exceed the limit, the
        least recently used ones are deleted, never this one.
        """
        path = shard_path(self.folder, group, name)
        if not self.writable:
            return False
        data = packed(group, name, arrays)
        if len(data) > self.limit:
            self.notices.add(_TOO_LARGE, source=display(path))
            return False
        before = _identity(path)
        try:
            self._write(path, data)
            if self._total > self.limit:
                self._trim(path)
        except (RerankError, OSError) as fault:
            self.writable = False
            self.notices.add(f"score cache not written: {_reason(fault)}")
            return False
        except BaseException:  # a signal, perhaps after the shard was renamed into place
            self.saved += _identity(path) not in (None, before)
            raise
        self.saved += 1
        return True

    def remove(self, group: str, name: str) -> None:
        """Delete the arrays of a name, if there are any."""
        with suppress(OSError):
            shard_path(self.folder, group, name).unlink()

    def _read(self, path: Path, group: str, name: str) -> dict[str, NDArray[Any]] | None:
        size = size_of(path)
        if size is None or size > self.limit:  # bounds the memory for a foreign file
            return None
        try:  # read, never mapped: a file that is cut off under a map is a SIGBUS
            arrays = unpacked(group, name, path.read_bytes())
        except FileNotFoundError:  # removed by another process
            return None
        except OSError:
            arrays = None
        if arrays is None:
            self.notices.add(_DAMAGED, source=display(path))
        return arrays

    def _write(self, path: Path, data: bytes) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        if size_of(path) is None:
            with suppress(OSError):  # a link or a pipe, which `atomic` would write through
                path.unlink()
        with atomic(path) as file:
            file.write(data)
        self._total += len(data)

    def _trim(self, kept: Path) -> None:
        """Delete the oldest shards until 90% of the limit is left, if they exceed the limit.

        The remaining 10% lets many shards be added before the folder is read again.
        """
        for file in abandoned(self.folder):
            with suppress(OSError):
                file.path.unlink()
        shards = sorted(shards_of(self.folder), key=lambda shard: shard.used)
        self._total = sum(shard.size for shard in shards)
        goal = self.limit if self._total <= self.limit else self.limit * 9 // 10
        for shard in shards:
            if self._total <= goal:
                break
            if shard.path != kept:
                with suppress(OSError):
                    shard.path.unlink(missing_ok=True)
                    self._total -= shard.size


def _identity(path: Path) -> int | None:
    """Inode of a file, which differs from that of a file it has replaced; None for no file."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _reason(fault: RerankError | OSError) -> str:
    if isinstance(fault, RerankError):
        return str(fault)
    name = f"{display(fault.filename)}: " if fault.filename else ""
    return name + (fault.strerror or str(fault)).lower()
