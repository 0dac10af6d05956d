"""`rerank cache info` and `rerank cache clear`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from rerank.files.paths import display
from rerank.files.terminal import show
from rerank.options import Command, optional, part, record
from rerank.runs.options import CACHE_HELP, form_option, print_result
from rerank.values import FOLDER


@record
class ClearOptions:
    """Options of `rerank cache clear`."""

    cache: Path | None = optional(CACHE_HELP, type=FOLDER, metavar="DIR")


@record
class InfoOptions:
    """Options of `rerank cache info`."""

    folder: ClearOptions = part(ClearOptions)
    form: str = form_option("text", "json")


@dataclass(frozen=True, slots=True)
class CacheContent:
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


def info(options: InfoOptions) -> None:
    """Show the cache's folder, its size and its size limit.

    Scores are grouped by language model; $RERANK_CACHE_GB limits their total size.

    Example:
      rerank cache info --format json
    """
    from rerank.files.cache import cache_folder, cache_limit, shards_of

    folder = cache_folder(options.folder.cache)
    sizes: dict[str, list[int]] = {}
    for shard in shards_of(folder):
        sizes.setdefault(shard.path.parent.name, []).append(shard.size)
    groups = tuple((group, len(known), sum(known)) for group, known in sorted(sizes.items()))
    shards, size = sum(n for _, n, _ in groups), sum(size for _, _, size in groups)
    print_result(CacheContent(folder, shards, size, cache_limit(), groups), options.form)


def clear(options: ClearOptions) -> None:
    """Remove all cached scores, and no other file of the folder.

    Example:
      rerank cache clear --cache scores
    """
    from rerank.files.cache import abandoned, cache_folder, groups_of, shards_of

    folder, removed = cache_folder(options.cache), 0
    for file in [*shards_of(folder), *abandoned(folder)]:
        file.path.unlink(missing_ok=True)
        removed += file.size
    for group in groups_of(folder):
        with suppress(OSError):  # not empty
            group.rmdir()
    show(f"removed {removed / 1e6:,.1f} MB of scores from {display(folder)}")


def _amount(shards: int, size: int) -> str:
    return f"{shards:,} shard{'' if shards == 1 else 's'}, {size / 1e6:,.1f} MB"


COMMAND = click.Group(
    "cache",
    commands=[Command("info", InfoOptions, info), Command("clear", ClearOptions, clear)],
    help="Show or clear the cache of scores from earlier runs.",
)
