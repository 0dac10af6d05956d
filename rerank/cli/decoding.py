"""`rerank decode` and `rerank score`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.lists import HEADINGS, distribution_options, list_options, split
from rerank.cli.options import (
    Messages,
    count_option,
    engine_message_options,
    threads_option,
)
from rerank.cli.searching import path_options, search_options
from rerank.files.terminal import say
from rerank.values import FILE, TEXT, WEIGHT

default_weight_option = click.option(
    "--default-weight",
    type=WEIGHT,
    metavar="WEIGHT",
    help="Weight of the features that the weights file lacks [default: refuse such a file].",
)


@click.command(
    cls=CommandWithHeadings, headings={**HEADINGS, "weights": "Weights", "out": "Output"}
)
@list_options
@threads_option
@distribution_options
@search_options
@click.option(
    "--weights",
    required=True,
    type=FILE,
    help="Feature weights: JSON, rescore.ini, moses.ini or run*.dense.",
)
@default_weight_option
@click.option(
    "--out",
    default="-",
    type=FILE,
    help="Chosen translations, one line per source sentence.",
)
@click.option(
    "--kbest-out",
    type=FILE,
    help="The k-best list with the features that were added, and new totals. Features that depend "
    "on context hold for the chosen path: a candidate with a larger total than the chosen one "
    "may lose more in other sentences.",
)
@click.option("--summary", type=FILE, help="Choices and scores of every document, as JSON.")
@count_option("--n-best", default=1, help="Number of best paths per document in the summary.")
@click.option(
    "--trace",
    type=FILE,
    help="Features, margins and marginals of every sentence, as JSON lines; see rerank explain.",
)
@click.option(
    "--explain",
    type=TEXT,
    metavar="DOC[:SENT]",
    help="Say why the choices of a document, or of one sentence of it, counted from 0, were made.",
)
@click.option("--dry-run", is_flag=True, help="Estimate the running time and stop.")
@engine_message_options
def decode(
    weights: str,
    default_weight: float | None,
    out: str,
    kbest_out: str | None,
    summary: str | None,
    n_best: int,
    trace: str | None,
    explain: str | None,
    dry_run: bool,
    messages: Messages,
    **options: Any,
) -> None:
    """Choose the best candidates for whole documents.

    \b
    Example:
      rerank decode --kbest test.nbest.gz --docs test.docids --lm codclm=models/codclm \\
        --weights weights.json --out test.out
    """
    from rerank.pipeline.decoding import Reports
    from rerank.pipeline.decoding import decode as decode_lists

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        lists, search = split(options)
        result = decode_lists(
            lists,
            weights,
            out,
            search=search.listing(n_best),
            default_weight=default_weight,
            reports=Reports(kbest_out, summary, trace, explain),
            dry_run=dry_run,
            notices=notices,
            announce=messages.announce,
            details=messages.detail,
        )
    if result is not None:
        if result.explanation is not None:  # a result, which --quiet leaves
            say(result.explanation.to_text().removesuffix("\n"))
        messages.announce(result.to_text())


@click.command(
    cls=CommandWithHeadings,
    headings={**HEADINGS, "weights": "Path to score after", "out": "Output"},
)
@list_options
@threads_option
@distribution_options
@path_options
@click.option(
    "--weights",
    type=FILE,
    help="Score candidates after the path decoded with these weights [default: after the first "
    "candidates].",
)
@default_weight_option
@click.option(
    "--out",
    default="-",
    type=FILE,
    help="The k-best list with the new features appended.",
)
@engine_message_options
def score(
    weights: str | None,
    default_weight: float | None,
    out: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Append features to a k-best list, for other tuners and decoders.

    \b
    Example:
      rerank score --kbest dev.nbest --docs dev.docids --lm codclm=models/codclm --out dev.scored
    """
    from rerank.pipeline.scoring import score as score_lists

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        lists, search = split(options)
        score_lists(
            lists,
            out,
            weights=weights,
            default_weight=default_weight,
            search=search,
            notices=notices,
            announce=messages.announce,
            details=messages.detail,
        )
