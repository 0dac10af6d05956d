"""Options of the experiments on texts: language models, by name, and how documents are parted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.values import FOLDER, Pair

_UNNAMED = "\0"  # no argument of a command has this character


class NamedFolder(Pair):
    """NAME=DIR as a tuple; a DIR alone is its own name."""

    def __init__(self) -> None:
        super().__init__("NAME=DIR or DIR, for example codclm.lm", FOLDER, label=_UNNAMED)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        """The name and the folder."""
        name, folder = super().convert(value, param, ctx)
        return (str(folder) if name == _UNNAMED else name), folder


models_option = click.option(
    "--lm",
    "lms",
    required=True,
    multiple=True,
    type=NamedFolder(),
    metavar="[NAME=]DIR",
    help="Language model made by train-lm, and its name in the output; repeatable.",
)
