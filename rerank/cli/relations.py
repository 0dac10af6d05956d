"""`rerank relations`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rerank.cli.options import Messages, docs_option, format_option, message_options
from rerank.files.terminal import show
from rerank.values import FILE, FOLDER


@click.group()
def relations() -> None:
    """Discourse relations between neighbouring sentences: files for --relations."""


@relations.command()
@click.argument("annotated", type=FILE, metavar="ANNOTATED")
@click.option(
    "--out", required=True, type=FOLDER, metavar="DIR", help="New folder for the classifier."
)
@format_option
@message_options
def train(annotated: str, out: Path, form: str, messages: Messages) -> None:
    """Train a classifier of relations, and print its accuracy beside the majority class.

    ANNOTATED has a JSON object per line, a document each: sentences, lists of words; relations, for
    each sentence null or an object with the sense of the relation to the sentence before; and
    split: documents of other splits than train are held out. Null is the label none.

    \b
    Example:
      rerank relations train gum.jsonl.gz --out relations.model
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        figures = pipeline.train_relations(annotated, out, notices=notices)
    if form == "json":
        show(json.dumps({"schema": 1, **figures.as_json()}, ensure_ascii=False))
    else:
        show(figures.to_text())


@relations.command()
@click.option(
    "--model",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="Classifier made by rerank relations train.",
)
@click.argument("text", type=FILE, metavar="TEXT")
@docs_option
@click.option("--out", default="-", type=FILE, help="Output; - is standard output.")
@message_options
def label(model: Path, text: str, docs: str | None, out: str, messages: Messages) -> None:
    """Write the relation of each sentence of TEXT to the one before, a label per line.

    TEXT has a sentence per line, and blank lines, which stay, between documents; with --docs it has
    a line per source sentence instead, as files beside k-best lists have: the source, or a
    translation. The label of a document's first sentence is none.

    \b
    Example:
      rerank relations label --model relations.model train.en --out train.relations
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        n = pipeline.label_relations(model, text, out, notices=notices, docs=docs)
    messages.announce(f"{n:,} sentences labelled")
