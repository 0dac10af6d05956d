"""`rerank report`."""

from __future__ import annotations

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.options import (
    Messages,
    count_option,
    docs_option,
    message_options,
    no_docs_option,
    reference_option,
)
from rerank.cli.values import FILE, SEED, TEXT


@click.command(
    cls=CommandWithHeadings,
    headings={"trace": "Decoding", "docs": "References", "title": "Page", "strict": "Messages"},
)
@click.option("--trace", required=True, type=FILE, help="Trace of decode --trace.")
@click.option(
    "--baseline",
    type=FILE,
    help="Trace of another decoding of the same lists [default: the first candidates].",
)
@click.option("--summary", type=FILE, help="Summary of decode --summary: figures of the search.")
@click.option("--weights", type=FILE, help="Weights file of the decoding: how it was tuned.")
@docs_option
@no_docs_option
@reference_option
@click.option("--source", type=FILE, help="Text in the source language, one sentence per line.")
@click.option("--title", type=TEXT, help="Title of the page.")
@count_option(
    "--show-documents",
    "shown",
    default=250,
    help="Number of documents whose changed sentences are shown: the best, the worst, and some "
    "by chance.",
)
@click.option("--seed", default=1, type=SEED, help="Random seed of intervals, tests and chance.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "json"]),
    default="html",
    help="A page for people, or its numbers for machines.",
)
@click.option("--out", default="-", type=FILE, help="The page.")
@message_options
def report(
    trace: str,
    baseline: str | None,
    summary: str | None,
    weights: str | None,
    docs: str | None,
    no_docs: str | None,
    references: tuple[str, ...],
    source: str | None,
    title: str | None,
    shown: int,
    seed: int,
    form: str,
    out: str,
    messages: Messages,
) -> None:
    """Show a decoding as a page: whether it helped, where, what changed, and why.

    \b
    The page is one file, which opens offline in any browser.

    \b
    Example:
      rerank report --trace test.trace --summary test.json --weights weights.json \\
        --docs test.docids --ref test.en --out report.html
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        pipeline.report(
            pipeline.Decoded(trace, baseline, summary, weights, source),
            references,
            out,
            docs=docs,
            no_docs=no_docs,
            title=title,
            shown=shown,
            form=form,
            seed=seed,
            notices=notices,
        )
