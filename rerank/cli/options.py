"""Options and endings that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from rerank.notices import Notices

Command = TypeVar("Command", bound=Callable[..., Any])

device_option = click.option(
    "--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N."
)
cache_option = click.option(
    "--cache",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of kept scores [default: $RERANK_CACHE, or rerank in the user's cache folder].",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Results and errors only.")
strict_option = click.option(
    "--strict", is_flag=True, help="Turn every warning into an error (exit code 3)."
)
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for machines.",
)


def announcer(quiet: bool) -> Callable[[str], None]:
    """Writer of lines for people, on stderr."""
    return (lambda line: None) if quiet else (lambda line: click.echo(line, err=True))


@contextmanager
def told(strict: bool, quiet: bool) -> Iterator[Notices]:
    """Notices of a command, summarised on stderr when it ends."""
    notices = Notices(strict=strict)
    try:
        yield notices
    finally:
        if not quiet:
            for line in notices.lines():
                click.echo(f"warning: {line}", err=True)
