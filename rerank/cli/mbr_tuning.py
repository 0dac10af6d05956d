"""`rerank tune-mbr`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.lists import HEADINGS, list_options, split
from rerank.cli.options import (
    Messages,
    drop_unreferenced_option,
    engine_message_options,
    reference_option,
    threads_option,
)
from rerank.cli.searching import mbr_options
from rerank.registry import METRICS
from rerank.values import FILE, TEXT, MemberName


@click.command(
    "tune-mbr",
    cls=CommandWithHeadings,
    headings={
        **HEADINGS,
        "references": "Weights",
        "metric": "What is maximised",
        "search": "Search",
    },
)
@list_options
@threads_option
@reference_option
@drop_unreferenced_option
@click.option(
    "--weights",
    required=True,
    type=FILE,
    help="Feature weights to decode with: JSON, rescore.ini, moses.ini or run*.dense.",
)
@click.option(
    "--out", required=True, type=FILE, help="Weights with the spread: .json (or -) or .ini."
)
@click.option(
    "--metric", type=MemberName(METRICS), default="bleu", help="Corpus metric to maximise."
)
@click.option(
    "--tokenize", type=TEXT, default="none", help="Tokenizer for BLEU, of sacrebleu or moses-en."
)
@mbr_options
@engine_message_options
def tune_mbr(
    references: tuple[str, ...],
    weights: str,
    out: str,
    metric: str,
    tokenize: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Choose how flat the posterior is for `decode --search mbr`, by held-out documents.

    Its scale has a good default; another is taken if it is better by more than a standard error.
    Give documents that the weights were not tuned on.

    \b
    Example:
      rerank tune-mbr --kbest dev2.nbest.gz --docs dev2.docids --ref dev2.en \\
        --weights weights.json --out mbr.json
    """
    from rerank.pipeline.mbr_tuning import tune_mbr as tune_mbr_of

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        lists, search = split(options)
        result = tune_mbr_of(
            lists,
            references,
            weights,
            out,
            search=search,
            metric=metric,
            tokenize=tokenize,
            notices=notices,
            announce=messages.announce,
            details=messages.detail,
        )
    messages.announce(result.to_text())
