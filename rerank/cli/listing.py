"""`rerank list`: what there is to choose from."""

from __future__ import annotations

import json
import shutil
from typing import Any

import click

from rerank.cli.options import format_option
from rerank.cli.training import train_lm
from rerank.files.terminal import say, show
from rerank.listing import Listing, ModelSizes, listing, model_listing

_HELP = {
    "scorers": "Show the scorers and the option of each.",
    "decoders": "Show the decoders of --search: orders served, where exact, cost, options, source.",
    "metrics": "Show the metrics of --objective.",
    "formats": "Show the formats of k-best lists, which are recognised by their first lines.",
    "document-formats": "Show the formats of --docs, which are recognised by their content.",
}


@click.group("list")
def list_group() -> None:
    """Show what there is to choose from: built in, and from installed packages."""


def _print(found: Listing, form: str) -> None:
    for warning in found.warnings:
        say(f"warning: {warning}")
    if form == "json":
        show(json.dumps(found.rows, ensure_ascii=False, indent=2))
    else:
        show(found.to_text(min(100, shutil.get_terminal_size().columns)))


@list_group.command("models")
@format_option
def models(form: str, **sizes: Any) -> None:
    """Show the models of train-lm, and their numbers of parameters for given sizes.

    \b
    Example:
      rerank list models
      rerank list models --embed 96 --hidden 96 --untied --format json
    """
    given = {name: value for name, value in sizes.items() if value is not None}
    _print(model_listing(ModelSizes(**given)), form)


# the options of train-lm that decide a model's number of parameters, with its defaults
models.params[:0] = [o for o in train_lm.params if o.name in ModelSizes.__dataclass_fields__]


def _command(kind: str) -> click.Command:
    @format_option
    def print_members(form: str) -> None:
        _print(listing(kind), form)

    example = f"\b\nExample:\n  rerank list {kind}\n  rerank list {kind} --format json"
    return click.command(kind, help=f"{_HELP[kind]}\n\n{example}")(print_members)


for _kind in _HELP:
    list_group.add_command(_command(_kind))
