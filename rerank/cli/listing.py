"""`rerank list`: what there is to choose from."""

from __future__ import annotations

import json
import shutil

import click

from rerank.cli.options import format_option
from rerank.files.terminal import say, show

_HELP = {
    "models": "Show the models of train-lm: order, context, fusion, head, source, parameters.",
    "scorers": "Show the scorers and the option of each.",
    "decoders": "Show the decoders of --search: orders served, where exact, cost, options, source.",
    "metrics": "Show the metrics of --objective.",
    "formats": "Show the formats of k-best lists, which are recognised by their first lines.",
}


@click.group("list")
def list_group() -> None:
    """Show what there is to choose from: built in, and from installed packages."""


def _command(kind: str) -> click.Command:
    @format_option
    def print_members(form: str) -> None:
        from rerank.listing import listing

        found = listing(kind)
        for warning in found.warnings:
            say(f"warning: {warning}")
        if form == "json":
            show(json.dumps(found.rows, ensure_ascii=False, indent=2))
        else:
            show(found.to_text(min(100, shutil.get_terminal_size().columns)))

    example = f"\b\nExample:\n  rerank list {kind}\n  rerank list {kind} --format json"
    return click.command(kind, help=f"{_HELP[kind]}\n\n{example}")(print_members)


for _kind in _HELP:
    list_group.add_command(_command(_kind))
