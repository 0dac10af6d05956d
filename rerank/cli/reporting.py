"""`rerank report`."""

from __future__ import annotations

from pathlib import Path

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.measures import measure_options
from rerank.cli.options import (
    Messages,
    by_name,
    count_option,
    interleaved_docs_option,
    message_options,
    no_docs_option,
    reference_option,
)
from rerank.errors import UsageError
from rerank.values import FILE, FOLDER, SEED, TEXT, Pair


@click.command(
    cls=CommandWithHeadings,
    headings={
        "trace": "Decoding",
        "docs": "References",
        "metrics": "Measures",
        "title": "Page",
        "strict": "Messages",
    },
)
@click.option("--trace", required=True, type=FILE, help="Trace of decode --trace.")
@click.option(
    "--baseline",
    type=FILE,
    help="Trace of another decoding of the same lists [default: the first candidates].",
)
@click.option("--summary", type=FILE, help="Summary of decode --summary: figures of the search.")
@click.option("--weights", type=FILE, help="Weights file of the decoding: how it was tuned.")
@interleaved_docs_option
@no_docs_option
@reference_option
@click.option("--source", type=FILE, help="Text in the source language, one sentence per line.")
@measure_options
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
@click.option(
    "--figures",
    type=FOLDER,
    metavar="DIR",
    help="Folder for figures for papers, as PDF and SVG: gains of documents, what features add.",
)
@click.option(
    "--curve",
    "curves",
    multiple=True,
    type=Pair("NAME=FILE, for example codclm=codclm.curve", FILE),
    metavar="NAME=FILE",
    help="Learning curve of train-lm --curve for the figures; repeatable.",
)
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
    metrics: tuple[str, ...],
    tokenize: str,
    scores: tuple[tuple[str, str], ...],
    word_classes: bool,
    word_lists: tuple[tuple[str, str], ...],
    word_frequencies: str | None,
    title: str | None,
    shown: int,
    seed: int,
    form: str,
    out: str,
    figures: Path | None,
    curves: tuple[tuple[str, str], ...],
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
    from rerank.report.figures import check_matplotlib

    if figures is not None:
        check_matplotlib("--figures")
    elif curves:
        raise UsageError("--curve: for the figures of --figures DIR; give it")
    more = pipeline.Additions(
        scores=scores,
        word_classes=word_classes,
        word_lists=by_name("--word-list", word_lists),
        word_frequencies=word_frequencies,
    )
    with messages.warnings() as notices:
        result = pipeline.report(
            pipeline.Decoded(trace, baseline, summary, weights, source),
            references,
            out,
            docs=docs,
            no_docs=no_docs,
            page=pipeline.Page(title, shown, form, seed),
            tokenize=tokenize,
            metrics=metrics or pipeline.DEFAULT_METRICS,
            more=more,
            notices=notices,
        )
        if figures is not None:
            for path in pipeline.draw(result, figures, curves, notices=notices):
                messages.announce(f"figure written to {path}")
