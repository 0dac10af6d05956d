"""Folder of the score cache: where it is, how large it may be, which files in it are ours.

A shard is `<folder>/<group>/<name>.scores`, both hex digests. Files with other names and targets of
links are never touched.
"""

from __future__ import annotations

import math
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rerank.errors import UsageError
from rerank.files.paths import display

_DIGEST = re.compile("[0-9a-f]{16,64}")
_SHARD = re.compile(r"[0-9a-f]{16,64}\.scores")
# temporary files of `outputs.atomic`: the first 50 characters of the name, process, random digits
_ASIDE = re.compile(r"\.[0-9a-f]{16,50}[.a-z]{0,7}\.\d+\.[0-9a-f]{8}\.tmp")
_STALE_SECONDS = 3600


# Location and limit


def cache_folder(given: Path | None = None) -> Path:
    """The folder given, else $RERANK_CACHE, else `rerank` in the system's cache folder."""
    if given is not None:
        return given
    if own := os.environ.get("RERANK_CACHE"):
        return Path(own)
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


# Report and clearing


@dataclass(frozen=True, slots=True)
class Info:
    """Content of a cache: shards and bytes in all, and as (group, shards, bytes) for each group."""

    folder: Path
    shards: int
    bytes: int
    limit: int
    groups: tuple[tuple[str, int, int], ...]

    def to_dict(self) -> dict[str, object]:
        """The report for machines."""
        return {
            "schema": 1,
            "folder": str(self.folder),
            "shards": self.shards,
            "bytes": self.bytes,
            "limit": self.limit,
            "groups": [{"group": g, "shards": n, "bytes": size} for g, n, size in self.groups],
        }

    def to_text(self) -> str:
        """The report for people: a line for the cache, then one for each group."""
        whole = _amount(self.shards, self.bytes)
        lines = [f"{display(self.folder)}: {whole} of at most {self.limit / 1e9:,.1f} GB"]
        return "\n".join([*lines, *(f"{g}: {_amount(n, size)}" for g, n, size in self.groups)])


def info(folder: Path) -> Info:
    """Content of a cache; empty if there is no folder."""
    sizes: dict[str, list[int]] = {}
    for shard in shards_of(folder):
        sizes.setdefault(shard.path.parent.name, []).append(shard.size)
    groups = tuple((group, len(found), sum(found)) for group, found in sorted(sizes.items()))
    shards, size = sum(n for _, n, _ in groups), sum(size for _, _, size in groups)
    return Info(folder, shards, size, cache_limit(), groups)


def clear(folder: Path) -> int:
    """Delete all shards, abandoned temporary files and then empty groups; the bytes freed.

    Other files in the folder and targets of links stay.
    """
    removed = 0
    for file in [*shards_of(folder), *abandoned(folder)]:
        file.path.unlink(missing_ok=True)
        removed += file.size
    for group in _groups(folder):
        with suppress(OSError):  # not empty
            group.rmdir()
    return removed


def _amount(shards: int, size: int) -> str:
    return f"{shards:,} shard{'' if shards == 1 else 's'}, {size / 1e6:,.1f} MB"


# Files of the cache


def shard_path(folder: Path, group: str, name: str) -> Path:
    """The file of a shard; group, name: digests, as `_DIGEST` has them."""
    return folder / group / f"{name}.scores"


@dataclass(frozen=True, slots=True)
class File:
    """A file of the cache: size in bytes, time of last use in ns since the epoch."""

    path: Path
    size: int
    used: int


def shards_of(folder: Path) -> Iterator[File]:
    """All shards of a folder; none if there is no folder."""
    return _files(folder, _SHARD)


def _files(folder: Path, pattern: re.Pattern[str]) -> Iterator[File]:
    """Files of groups whose names match, without links and files that vanish meanwhile."""
    for group in _groups(folder):
        for entry in _entries(group):
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                yield File(Path(entry.path), status.st_size, status.st_mtime_ns)


def abandoned(folder: Path) -> Iterator[File]:
    """Temporary files that are over an hour old, whose writers must be dead."""
    oldest = time.time_ns() - _STALE_SECONDS * 10**9
    return (file for file in _files(folder, _ASIDE) if file.used < oldest)


def _groups(folder: Path) -> list[Path]:
    return [
        Path(entry.path)
        for entry in _entries(folder)
        if _DIGEST.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
    ]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def size_of(path: Path) -> int | None:
    """Bytes of a file; None if it does not exist, or is a link, a folder or a pipe."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
