"""`rerank cache info` and `rerank cache clear`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rerank.cli.options import cache_option, format_option


@click.group()
def cache() -> None:
    """The scores kept from earlier runs: what they take, and how to be rid of them."""


@cache.command()
@cache_option
@format_option
def info(cache: Path | None, form: str) -> None:
    """Where the cache is, how large it is and how large it may become.

    A group holds the scores of one model; RERANK_CACHE_GB is the limit of all.

    \b
    Example:
      rerank cache info --format json
    """
    from rerank.cache import cache_folder
    from rerank.cache import info as read

    found = read(cache_folder(cache))
    click.echo(json.dumps(found.to_dict()) if form == "json" else found.to_text())


@cache.command()
@cache_option
def clear(cache: Path | None) -> None:
    """Remove all scores, and nothing else that lies in the folder.

    \b
    Example:
      rerank cache clear --cache scores
    """
    from rerank.cache import cache_folder
    from rerank.cache import clear as remove
    from rerank.files.lines import display

    chosen = cache_folder(cache)
    click.echo(f"removed {remove(chosen) / 1e6:,.1f} MB of scores from {display(chosen)}")
