"""Options that name files of side information: `--source`, `--topics`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import click

from rerank.registry import SIDE_INFORMATION
from rerank.values import FILE


def side_options(
    prefix: str = "", beside: str = "source line", also: Mapping[str, str] = MappingProxyType({})
) -> list[Callable[..., Any]]:
    """An option for each kind.

    prefix: of their names; beside: what has a line in the files; also: what else needs them, by
    kind.
    """
    return [
        click.option(
            f"--{prefix}{kind}",
            type=FILE,
            help=f"File with {content}, a line for each {beside}, for models that need it"
            f"{also.get(kind, '')}.",
        )
        for kind, content in SIDE_INFORMATION.items()
    ]


def side_of(options: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """The files that were given, by kind, taken from a command's options."""
    given = {kind: options.pop(f"{prefix}{kind}") for kind in SIDE_INFORMATION}
    return {kind: file for kind, file in given.items() if file is not None}
