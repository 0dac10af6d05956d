"""`rerank evaluate`."""

from __future__ import annotations

import shutil
import sys
from typing import Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.lists import reading_options
from rerank.cli.options import (
    Messages,
    docs_option,
    format_option,
    message_options,
    no_docs_option,
    print_result,
    reference_option,
)
from rerank.cli.values import FILE, SEED, TEXT
from rerank.files.terminal import show


@click.command(
    cls=CommandWithHeadings,
    headings={
        "docs": "Translations and documents",
        "kbest": "Oracle",
        "tokenize": "Scoring and output",
        "strict": "Messages",
    },
)
@click.argument("systems", nargs=-1, required=True, type=FILE, metavar="HYP...")
@docs_option
@no_docs_option
@reference_option
@click.option(
    "--baseline",
    required=True,
    type=FILE,
    help="Translations that the others are compared with.",
)
@click.option("--kbest", type=FILE, help="K-best list whose oracle and anti-oracle BLEU is shown.")
@reading_options
@click.option("--tokenize", default="none", type=TEXT, help="Tokenizer of sacrebleu, such as 13a.")
@click.option("--seed", default=1, type=SEED, help="Random seed of intervals and tests.")
@format_option
@message_options
def evaluate(
    systems: tuple[str, ...],
    docs: str | None,
    no_docs: str | None,
    references: tuple[str, ...],
    baseline: str,
    kbest: str | None,
    tokenize: str,
    seed: int,
    form: str,
    messages: Messages,
    **reading: Any,
) -> None:
    """Compare translations with a baseline: BLEU, and documents better or worse.

    \b
    Example:
      rerank evaluate --docs test.docids --ref test.en --baseline test.1best test.out
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        result = pipeline.evaluate(
            docs,
            references,
            [baseline, *systems],
            no_docs=no_docs,
            kbest=None if kbest is None else pipeline.Lists(kbest, **reading),
            tokenize=tokenize,
            seed=seed,
            notices=notices,
        )
    if form == "text" and sys.stdout.isatty():
        show(result.to_text(shutil.get_terminal_size().columns).removesuffix("\n"))
    else:
        print_result(result, form)
