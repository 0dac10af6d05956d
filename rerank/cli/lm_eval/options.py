"""Options of the experiments on texts: language models, by name, and how documents are parted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rerank.cli.options import (
    count_option,
    device_option,
    documents_option,
    format_option,
    message_options,
    threads_option,
)
from rerank.values import FILE, FOLDER, Pair

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


def permuted_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """The models, the text, and the options of permutations of its documents."""
    for option in reversed(
        (
            models_option,
            click.argument("text", type=FILE, metavar="TEXT"),
            documents_option,
            count_option(
                "--permutations",
                default=20,
                most=10_000,
                help="Permutations of the sentences of each document; fewer where fewer have "
                "another text.",
            ),
            count_option(
                "--seed", default=1, least=0, most=2**31 - 1, help="Random seed of permutations."
            ),
            format_option,
            device_option,
            threads_option,
            message_options,
        )
    ):
        command = option(command)
    return command
