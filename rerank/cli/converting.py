"""`rerank convert` and `rerank first`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.lists import missing_option, normalize_option, reading_options
from rerank.cli.options import (
    Messages,
    count_option,
    interleaved_docs_option,
    kbest_option,
    message_options,
    no_docs_option,
)
from rerank.values import FILE


@click.command()
@kbest_option
@interleaved_docs_option
@no_docs_option
@reading_options
@normalize_option
@click.option(
    "--to",
    required=True,
    type=click.Choice(["moses", "jsonl", "first", "documents"]),
    help="Moses n-best list; JSON lines; the first candidate of each sentence; or n-best lists of "
    "whole documents as of Docent, which need --docs or --no-docs one.",
)
@click.option(
    "--escape",
    type=click.Choice(["moses", "none"]),
    help="Write texts with Moses' escapes (&apos; and so on), or without them [default: as they "
    "are].",
)
@count_option(
    "--n-best", default=1, help="With --to documents: number of best documents, by total."
)
@click.option("--docs-out", type=FILE, help="File for the document ids that the list has.")
@click.option("--source-out", type=FILE, help="File for the source sentences that the list has.")
@click.option("--out", default="-", type=FILE, help="File of the converted list.")
@message_options
def convert(
    kbest: str,
    docs: str | None,
    no_docs: str | None,
    to: str,
    escape: str | None,
    n_best: int,
    docs_out: str | None,
    source_out: str | None,
    out: str,
    messages: Messages,
    **reading: Any,
) -> None:
    """Convert k-best lists of other tools, and between formats.

    \b
    Reads every format of `rerank list formats`. Scores become log-probabilities in nats: those of
    fairseq are multiplied by ln 2, those of Sockeye change their sign. A Moses list that stays one
    keeps its bytes, but for what the options change.

    \b
    Example:
      rerank convert --kbest generate.out --to moses --out test.nbest.gz
    """
    from rerank import pipeline

    conversion = pipeline.Conversion(to, escape, n_best, docs_out, source_out)
    with messages.warnings() as notices:
        pipeline.convert(
            pipeline.Lists(kbest, docs, no_docs, **reading),
            out,
            conversion,
            notices=notices,
            announce=messages.announce,
        )


@click.command()
@kbest_option
@interleaved_docs_option
@no_docs_option
@reading_options
@missing_option
@normalize_option
@click.option("--source", type=FILE, help="Source text, a line a sentence, for --missing source.")
@click.option("--out", default="-", type=FILE, help="File of the translations, a line a sentence.")
@message_options
def first(
    kbest: str,
    docs: str | None,
    no_docs: str | None,
    source: str | None,
    out: str,
    messages: Messages,
    **reading: Any,
) -> None:
    """Write the first candidate of each sentence of a list.

    \b
    Example:
      rerank first --kbest test.nbest.gz --out test.1best
    """
    from rerank import pipeline

    side: dict[str, str | Path] = {} if source is None else {"source": source}
    with messages.warnings() as notices:
        pipeline.first(
            pipeline.Lists(kbest, docs, no_docs, side=side, **reading),
            out,
            notices=notices,
            announce=messages.announce,
        )
