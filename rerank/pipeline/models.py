"""The machine of a run's language models, and their score cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rerank.commands.distribution import Shard
from rerank.errors import UsageError
from rerank.files.cache import Cache, cache_folder, cache_limit
from rerank.notices import Notices


@dataclass(frozen=True, slots=True)
class Scoring:
    """Machine that language models run on, and the score cache.

    cache: its folder, None for that of the environment or the system; threads: on the CPU, None
    for what suits the models; shard: the documents that are scored, None for all; ray: address of
    a Ray cluster that scores all, or `local` for one on this machine
    (`rerank.commands.distribution`); memory: bytes of the process, beyond which candidates lie in
    files (`rerank.files.arrays`).
    """

    device: str = "auto"
    dtype: str = "float32"
    deterministic: bool = False
    cache: str | Path | None = None
    no_cache: bool = False
    threads: int | None = None
    shard: Shard | None = None
    ray: str | None = None
    memory: int | None = None

    @property
    def machine(self) -> dict[str, Any]:
        """What opens language models."""
        fields = ("device", "threads", "dtype", "deterministic")
        return {name: getattr(self, name) for name in fields}

    def open_cache(self, notices: Notices) -> Cache | None:
        """The cache, which may hold as much as the environment says."""
        if self.no_cache and self.cache is not None:
            raise UsageError("--cache and --no-cache exclude each other; give one of them")
        if self.no_cache:
            return None
        folder = None if self.cache is None else Path(self.cache)
        return Cache(cache_folder(folder), notices, cache_limit())


FLOAT32 = Scoring()
