"""`rerank diversity`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.lists import normalize_option, reading_options
from rerank.cli.options import (
    Messages,
    interleaved_docs_option,
    kbest_option,
    message_options,
    print_result,
)
from rerank.files.terminal import show


@click.command()
@kbest_option
@interleaved_docs_option
@reading_options
@normalize_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "tsv"]),
    default="text",
    help="A summary as text, or every sentence's figures as JSON or TSV.",
)
@message_options
def diversity(kbest: str, docs: str | None, form: str, messages: Messages, **reading: Any) -> None:
    """Count distinct candidates and their mean edit distance.

    --docs is needed only if ids fall within documents.

    \b
    Example:
      rerank diversity --kbest test.nbest.gz --top 20 --diverse
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        result = pipeline.diversity(pipeline.Lists(kbest, docs, **reading), notices=notices)
    if form == "tsv":
        show(result.to_tsv().removesuffix("\n"))
    else:
        print_result(result, form)
