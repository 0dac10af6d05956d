"""Store of the score cache: arrays in, the same arrays out, or none.

A shard is whole and what it claims to be, or it is computed again; a cache that cannot be written
is done without. Processes share a folder without locks: a shard appears at once and whole, the
last writer wins.
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
from rerank.files.lines import display
from rerank.files.outputs import atomic
from rerank.notices import Notices

_DAMAGED = "damaged score cache shard, computed again"
_TOO_LARGE = "document with more scores than the cache may hold, not kept; raise RERANK_CACHE_GB"


class Cache:
    """Arrays by group (what computed them) and name (what they are of), both hex digests.

    folder: made when the first shard is written. limit: bytes of all shards together.
    hits, misses: calls of `get` that found, or did not find, a shard; saved: shards written.
    """

    def __init__(self, folder: Path, notices: Notices, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.hits = self.misses = self.saved = 0
        self.notices = notices
        self._writable = True
        # at least the bytes of all shards; they are counted when it seems too much
        self._total: float = math.inf

    def get(self, group: str, name: str) -> dict[str, NDArray[Any]] | None:
        """Arrays as they were put, read-only views of one buffer; None where there is no shard.

        A shard that is damaged, or cannot be read, is noticed and counts as missing. O(bytes).
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
        """Whether the arrays are on disk now, whole.

        arrays: of any shape, int8 to int64, uint8, float32 or float64. After the first fault of
        the system, which is noticed, nothing more is written. When the shards exceed the limit,
        the least recently used ones go, never this one.
        """
        path = shard_path(self.folder, group, name)
        if not self._writable:
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
            self._writable = False
            self.notices.add(f"score cache not written: {_reason(fault)}")
            return False
        except BaseException:  # a signal, which may come when the shard has its name
            self.saved += _identity(path) not in (None, before)
            raise
        self.saved += 1
        return True

    def _read(self, path: Path, group: str, name: str) -> dict[str, NDArray[Any]] | None:
        size = size_of(path)
        if size is None or size > self.limit:  # a bound on the memory that a stranger's file takes
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
        """Counts the shards; if they exceed the limit, the oldest go until nine tenths hold them.

        The tenth is what lets many shards come before the folder is read again.
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
    """What tells a file from the one that had its name before; None for no file."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _reason(fault: RerankError | OSError) -> str:
    if isinstance(fault, RerankError):
        return str(fault)
    name = f"{display(fault.filename)}: " if fault.filename else ""
    return name + (fault.strerror or str(fault)).lower()
