"""`rerank cache info` and `rerank cache clear`."""

from __future__ import annotations

from pathlib import Path

import click

from rerank.cli.options import cache_option, format_option, print_result
from rerank.files.terminal import show


@click.group()
def cache() -> None:
    """Show or clear the cache of scores from earlier runs."""


@cache.command()
@cache_option
@format_option
def info(cache: Path | None, form: str) -> None:
    """Show the cache's folder, its size and its size limit.

    Scores are grouped by language model; $RERANK_CACHE_GB limits their total size.

    \b
    Example:
      rerank cache info --format json
    """
    from rerank.cache import cache_folder
    from rerank.cache import info as read

    print_result(read(cache_folder(cache)), form)


@cache.command()
@cache_option
def clear(cache: Path | None) -> None:
    """Remove all cached scores, and no other file of the folder.

    \b
    Example:
      rerank cache clear --cache scores
    """
    from rerank.cache import cache_folder
    from rerank.cache import clear as remove
    from rerank.files.paths import display

    chosen = cache_folder(cache)
    show(f"removed {remove(chosen) / 1e6:,.1f} MB of scores from {display(chosen)}")
