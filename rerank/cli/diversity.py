"""`rerank diversity`."""

from __future__ import annotations

import json
from typing import Any

import click

from rerank.cli.lists import reading_options
from rerank.cli.options import quiet_option, strict_option, told


@click.command()
@click.option("--kbest", required=True, help="Moses n-best list; - is stdin; gz and xz are seen.")
@click.option("--docs", help="Document id of each source line, if ids fall within documents.")
@reading_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "tsv"]),
    default="text",
    show_default=True,
    help="A summary for people, or every list for machines.",
)
@strict_option
@quiet_option
def diversity(
    kbest: str, docs: str | None, form: str, strict: bool, quiet: bool, **reading: Any
) -> None:
    """Distinct candidates of each list, and their mean edit distance.

    \b
    Example:
      rerank diversity --kbest test.nbest.gz --top 20 --diverse
    """
    from rerank import pipeline

    with told(strict, quiet) as notices:
        result = pipeline.diversity(pipeline.Lists(kbest, docs, **reading), notices=notices)
    if form == "json":
        click.echo(json.dumps(result.to_dict(), allow_nan=False))
    else:
        click.echo(result.to_tsv() if form == "tsv" else result.to_text(), nl=False)
