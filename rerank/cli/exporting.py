"""`rerank export`."""

from __future__ import annotations

from pathlib import Path

import click

from rerank.cli.options import Messages, message_options, required_docs_option
from rerank.values import FILE, FOLDER, Pair


@click.command()
@click.argument(
    "texts",
    nargs=-1,
    required=True,
    type=Pair("NAME=FILE, for example ours=test.out", FILE),
    metavar="NAME=FILE...",
)
@required_docs_option
@click.option("--out", required=True, type=FOLDER, metavar="DIR", help="New folder.")
@message_options
def export(texts: tuple[tuple[str, str], ...], docs: str, out: Path, messages: Messages) -> None:
    """Write documents as files, for BlonDe and other metrics of discourse.

    \b
    DIR/NAME/0001.txt has the first document of FILE, a sentence on each line; DIR/documents.tsv
    has the number, the id and the number of sentences of each document.

    \b
    Example:
      rerank export --docs test.docids --out documents ours=test.out ref=test.en
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        pipeline.export(texts, out, docs, notices=notices, announce=messages.announce)
