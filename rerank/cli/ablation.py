"""`rerank ablate`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.lists import HEADINGS, list_options, split
from rerank.cli.options import (
    Messages,
    drop_unreferenced_option,
    engine_message_options,
    paper_format_option,
    print_result,
    reference_option,
    threads_option,
)
from rerank.cli.searching import search_options
from rerank.values import FILE, WEIGHT


@click.command(
    cls=CommandWithHeadings, headings={**HEADINGS, "weights": "Weights", "form": "Output"}
)
@list_options
@threads_option
@reference_option
@drop_unreferenced_option
@search_options
@click.option("--weights", required=True, type=FILE, help="Feature weights, as of decode.")
@click.option(
    "--null-weights",
    type=FILE,
    help="Weights that were tuned without context (tune-mert --no-docs each), for one more row.",
)
@click.option(
    "--default-weight",
    type=WEIGHT,
    metavar="WEIGHT",
    help="Weight of the features that the weights file lacks [default: refuse such a file].",
)
@paper_format_option
@engine_message_options
def ablate(
    references: tuple[str, ...],
    weights: str,
    null_weights: str | None,
    default_weight: float | None,
    form: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Say what the contexts of a decoding are worth, under the same weights.

    \b
    The candidates are chosen in the contexts of the decoding, in none, in those of another
    document, and in those of the references.

    \b
    Example:
      rerank ablate --kbest test.nbest.gz --docs test.docids --lm codclm=models/codclm \\
        --weights weights.json --ref test.en
    """
    from rerank.pipeline.ablation import ablate as ablate_of

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        lists, search = split(options)
        result = ablate_of(
            lists,
            references,
            weights,
            null_weights=null_weights,
            search=search,
            default_weight=default_weight,
            notices=notices,
            announce=messages.announce,
            details=messages.detail,
        )
    print_result(result, form)
