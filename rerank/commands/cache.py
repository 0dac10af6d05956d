"""`rerank cache info` and `rerank cache clear`."""

from __future__ import annotations

from pathlib import Path

import click

from rerank.commands.run import CACHE_HELP, form_option, print_result
from rerank.files.terminal import show
from rerank.options import Command, option, record
from rerank.values import FOLDER


@record
class InfoOptions:
    """Options of `rerank cache info`."""

    cache: Path | None = option(CACHE_HELP, type=FOLDER, default=None, metavar="DIR")
    form: str = form_option("text", "json", help="Output as text or as JSON.")


@record
class ClearOptions:
    """Options of `rerank cache clear`."""

    cache: Path | None = option(CACHE_HELP, type=FOLDER, default=None, metavar="DIR")


def info(options: InfoOptions) -> None:
    """Show the cache's folder, its size and its size limit.

    Scores are grouped by language model; $RERANK_CACHE_GB limits their total size.

    Example:
      rerank cache info --format json
    """
    from rerank.files.cache import cache_folder
    from rerank.files.cache import info as read

    print_result(read(cache_folder(options.cache)), options.form)


def clear(options: ClearOptions) -> None:
    """Remove all cached scores, and no other file of the folder.

    Example:
      rerank cache clear --cache scores
    """
    from rerank.files.cache import cache_folder
    from rerank.files.cache import clear as remove
    from rerank.files.paths import display

    chosen = cache_folder(options.cache)
    show(f"removed {remove(chosen) / 1e6:,.1f} MB of scores from {display(chosen)}")


COMMAND = click.Group(
    "cache",
    commands=[Command("info", InfoOptions, info), Command("clear", ClearOptions, clear)],
    help="Show or clear the cache of scores from earlier runs.",
)
