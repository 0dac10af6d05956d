"""Score cache on disk: arrays by content, which do not depend on the feature weights.

Arrays that were put are returned unchanged, or not at all. A shard is
`<folder>/<group>/<name>.scores`, both hex digests: arrays as safetensors, then the SHA-256 of
schema, group, name and these. It may come from anybody: unless every byte is as expected, it is a
cache miss. `<name>.answers` beside it holds answers that were paid for, such as those of servers
(`AnswerStore`). If the cache cannot be written, the run goes on without it. Processes share a
folder without locks: shards are renamed into place, and the last writer wins. Files with other
names and targets of links are never touched.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
import sys
import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.errors import RerankError, UsageError
from rerank.files.outputs import atomic
from rerank.files.paths import FilePath, display
from rerank.notices import Notices

_DIGEST = re.compile("[0-9a-f]{16,64}")
_SHARD = re.compile(r"[0-9a-f]{16,64}\.(scores|answers)")
_ANSWERS = re.compile(r"[0-9a-f]{16,64}\.answers")
# temporary files of `outputs.atomic`: the first 50 characters of the name, process, random digits
_ASIDE = re.compile(r"\.[0-9a-f]{16,50}[.a-z]{0,7}\.\d+\.[0-9a-f]{8}\.tmp")
_STALE_SECONDS = 3600

_SCHEMA = "rerank score cache 1"  # a new number makes older shards misses
_ANSWER_SCHEMA = b"rerank answers 1"  # a new number makes older answers unknown
_DIGEST_BYTES = 32
_CODES = {"F64": "f8", "F32": "f4", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U8": "u1"}
_DTYPES = {name: np.dtype(f"<{code}") for name, code in _CODES.items()}
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


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
        path, arrays, damaged = self._path(group, name), None, False
        file = _regular(path)
        if file is not None and file.st_size <= self.limit:  # a foreign file may be large
            try:  # read, never mapped: a file that is cut off under a map is a SIGBUS
                arrays = unpacked(group, name, path.read_bytes())
                damaged = arrays is None
            except OSError as fault:
                damaged = not isinstance(fault, FileNotFoundError)  # removed by another process
        if damaged:
            self.notices.add("damaged-cache", source=display(path))
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
        path = self._path(group, name)
        if not self.writable:
            return False
        data = packed(group, name, arrays)
        if len(data) > self.limit:
            self.notices.add("large-document", source=display(path))
            return False
        before = _regular(path)
        try:
            self._make_folders(path)
            if before is None:
                with suppress(OSError):  # a link or a pipe, which `atomic` would write through
                    path.unlink()
            with atomic(path) as file:
                file.write(data)
            self._grow(path, len(data))
        except (RerankError, OSError) as fault:
            self._give_up(fault)
            return False
        except BaseException:  # a signal, perhaps after the shard was renamed into place
            after = _regular(path)
            self.saved += after is not None and (before is None or after.st_ino != before.st_ino)
            raise
        self.saved += 1
        return True

    def append(self, group: str, name: str, data: bytes) -> None:
        """Add bytes, which are on disk then, to the answers of a name that no other process has."""
        path = self.folder / group / f"{name}.answers"
        if not self.writable:
            return
        try:
            self._make_folders(path)
            with open(path, "ab", buffering=0) as file:
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
                os.fsync(file.fileno())
            self._grow(path, len(data))
            self.saved += 1
        except OSError as fault:
            self._give_up(fault)

    def answers(self, group: str) -> Iterator[bytes]:
        """The answers of all names of a group, those used last at the end."""
        for file in sorted(_files(self.folder, _ANSWERS), key=lambda file: file.used):
            if file.path.parent.name == group and file.size <= self.limit:
                with suppress(OSError):  # removed by another process
                    yield file.path.read_bytes()
                    os.utime(file.path)  # its recency, for eviction

    def _make_folders(self, path: Path) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)

    def _grow(self, path: Path, size: int) -> None:
        """Count bytes that were added to a file, and delete others if it is too much."""
        self._total += size
        if self._total > self.limit:
            self._trim(path)

    def _give_up(self, fault: RerankError | OSError) -> None:
        """Write nothing any more, with a warning."""
        self.writable = False
        reason = str(fault)
        if isinstance(fault, OSError):
            where = f"{display(fault.filename)}: " if fault.filename else ""
            reason = where + (fault.strerror or str(fault)).lower()
        self.notices.add("cache-not-written", reason=reason)

    def refuse(self, group: str, name: str) -> None:
        """Count what `get` found as a damaged shard, whose arrays are not those of the scorer."""
        self.notices.add("damaged-cache", source=display(self._path(group, name)))
        self.hits, self.misses = self.hits - 1, self.misses + 1

    def remove(self, group: str, name: str) -> None:
        """Delete the arrays of a name, if there are any."""
        with suppress(OSError):
            self._path(group, name).unlink()

    def _path(self, group: str, name: str) -> Path:
        return self.folder / group / f"{name}.scores"

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


# Location and limit


def cache_folder(chosen: FilePath | None = None) -> Path:
    """The chosen folder, else $RERANK_CACHE, else `rerank` in the system's cache folder."""
    if chosen := os.environ.get("RERANK_CACHE") if chosen is None else chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # others are to be ignored, says the XDG specification
        return Path(base, "rerank")
    local = os.environ.get("LOCALAPPDATA")
    if sys.platform == "win32" and local:
        return Path(local, "rerank", "cache")
    try:
        home = Path.home()
    except RuntimeError:  # an account without a home
        raise UsageError("no home folder for the score cache; set RERANK_CACHE=DIR") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "rerank"


def cache_limit() -> int:
    """Bytes that all shards may take: $RERANK_CACHE_GB times 10⁹, of 20 if that is not set."""
    value = os.environ.get("RERANK_CACHE_GB") or "20"
    try:
        limit = float(value) * 1e9
    except ValueError:
        limit = math.nan
    if not 0 < limit < math.inf:
        raise UsageError(
            f"expected RERANK_CACHE_GB to be a positive number of gigabytes, found {value!r}; "
            "set it like this: RERANK_CACHE_GB=20"
        )
    return int(limit)


# Files of the cache


@dataclass(frozen=True, slots=True)
class CacheFile:
    """A file of the cache: size in bytes, time of last use in ns since the epoch."""

    path: Path
    size: int
    used: int


def shards_of(folder: Path) -> Iterator[CacheFile]:
    """All shards of a folder; none if there is no folder."""
    return _files(folder, _SHARD)


def abandoned(folder: Path) -> Iterator[CacheFile]:
    """Temporary files that are over an hour old, whose writers must be dead."""
    oldest = time.time_ns() - _STALE_SECONDS * 10**9
    return (file for file in _files(folder, _ASIDE) if file.used < oldest)


def groups_of(folder: Path) -> list[Path]:
    """The folders of groups."""
    return [
        Path(entry.path)
        for entry in _entries(folder)
        if _DIGEST.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
    ]


def _files(folder: Path, pattern: re.Pattern[str]) -> Iterator[CacheFile]:
    """Files of groups whose names match, without links and files that vanish meanwhile."""
    for group in groups_of(folder):
        for entry in _entries(group):
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield CacheFile(Path(entry.path), status.st_size, status.st_mtime_ns)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _regular(path: Path) -> os.stat_result | None:
    """What the system states of a file; None if there is none, or a link, a folder or a pipe.

    Its inode differs from that of a file that it has replaced.
    """
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


# Answers


class AnswerStore:
    """Answers by key, of one group of a cache; without a cache they are kept in memory alone.

    A process appends its answers to a file of its own in the folder of the group, so that processes
    share a folder without locks, and reads those of all. An answer is a line: the begin of the
    SHA-256 of schema, group, key and answer, then key and answer in base64; lines that are damaged
    or cut off are ignored. group: hex digits, the digest of what answers depend on beside their
    keys. Memory: the answers and some 200 bytes each. Threads may share it.
    """

    def __init__(self, cache: Cache | None, group: str) -> None:
        self._cache, self._group = cache, group
        self._name = secrets.token_hex(8)
        self._lock = threading.Lock()

    def get(self, key: bytes) -> bytes | None:
        """The answer that was put last under a key; None if there is none."""
        with self._lock:
            return self._answers.get(key)

    def __contains__(self, key: bytes) -> bool:
        """Whether there is an answer."""
        return self.get(key) is not None

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer: it is on disk now, unless the cache cannot be written, or has none."""
        with self._lock:
            if self._answers.get(key) == answer:
                return
            self._answers[key] = answer
            if self._cache is not None:
                line = b" ".join([self._check(key, answer), b64encode(key), b64encode(answer)])
                # of a line that was cut off the next one is no part
                self._cache.append(self._group, self._name, b"\n" + line + b"\n")

    @cached_property
    def _answers(self) -> dict[bytes, bytes]:
        """The answers of all processes before the first one was asked for, and of this one."""
        answers: dict[bytes, bytes] = {}
        for content in self._cache.answers(self._group) if self._cache is not None else ():
            for line in content.split(b"\n"):
                with suppress(ValueError):
                    check, *parts = line.split(b" ")
                    key, answer = (b64decode(part, validate=True) for part in parts)
                    if check == self._check(key, answer):
                        answers[key] = answer
        return answers

    def _check(self, key: bytes, answer: bytes) -> bytes:
        parts = _ANSWER_SCHEMA, self._group.encode(), key, answer
        return hashlib.sha256(b" ".join(map(b64encode, parts))).hexdigest()[:32].encode()


# Bytes of a shard


def packed(group: str, name: str, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The shard of arrays of any shape, of the types in `_DTYPES`."""
    from safetensors.numpy import save

    # safetensors writes the memory of a strided array, not its elements
    payload: bytes = save({key: np.asarray(a, order="C") for key, a in arrays.items()})
    return payload + _digest(group, name, payload)


def unpacked(group: str, name: str, data: bytes) -> dict[str, NDArray[Any]] | None:
    """The arrays of a shard, as read-only views of it; None if it is damaged or foreign.

    safetensors' own reader would copy them.
    """
    payload = memoryview(data)[:-_DIGEST_BYTES]
    if data[-_DIGEST_BYTES:] != _digest(group, name, payload):
        return None
    start = end = 8 + int.from_bytes(payload[:8], "little")
    arrays: dict[str, NDArray[Any]] = {}
    try:
        for key, entry in json.loads(str(payload[8:start], "utf-8")).items():
            shape, dtype = tuple(entry["shape"]), _DTYPES[entry["dtype"]]
            array: NDArray[Any] = np.ndarray(shape, dtype, payload, end)
            begin, end = end - start, end + array.nbytes
            if entry["data_offsets"] != [begin, end - start] or not array.flags.aligned:
                return None
            arrays[key] = array
    except _MALFORMED:
        return None
    return arrays if end == len(payload) else None


def _digest(group: str, name: str, payload: bytes | memoryview) -> bytes:
    sha256 = hashlib.sha256(f"{_SCHEMA}\n{group}\n{name}\n".encode())
    sha256.update(payload)
    return sha256.digest()
