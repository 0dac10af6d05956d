"""`rerank sample`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.options import (
    Messages,
    count_option,
    device_option,
    message_options,
    threads_option,
)
from rerank.values import FILE, FOLDER, Real


@click.command()
@click.option(
    "--lm",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="Language model made by train-lm.",
)
@count_option("--documents", default=1, help="Number of documents.")
@count_option("--sentences", default=10, help="Number of sentences of each document.")
@count_option(
    "--longest",
    default=100,
    help="Most words of a sentence; one that has not ended by itself is cut off there.",
)
@click.option(
    "--temperature",
    default=1.0,
    type=Real(0.01, 100),
    help="Words are drawn with probabilities proportional to p^(1/TEMPERATURE).",
)
@count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed.")
@click.option(
    "--start",
    type=FILE,
    help="Text of one document, a sentence per line, that every document continues; it is not "
    "printed.",
)
@click.option("--out", default="-", type=FILE, help="Output; - is standard output.")
@device_option
@threads_option
@message_options
def sample(
    lm: Path,
    start: str | None,
    out: str,
    device: str,
    threads: int | None,
    messages: Messages,
    **sampling: Any,
) -> None:
    """Write text drawn from a language model: a sentence per line, blank lines between documents.

    Each sentence is drawn in the context of those before it; by a model of train-lm
    --reverse-documents in that of those after it, --start being the end of the document. <unk> is
    never drawn, nor an empty sentence: the other probabilities are scaled up. The same seed gives
    the same text. Not for rnnslm, which predicts bags of words.

    \b
    Example:
      rerank sample --lm codclm.lm --documents 3 --sentences 8 --seed 7
    """
    from rerank import pipeline

    messages.announce_threads(threads)
    with messages.warnings() as notices:
        result = pipeline.sample(
            lm,
            out,
            pipeline.Sampling(**sampling),
            notices=notices,
            start=start,
            device=device,
            threads=threads,
        )
    messages.announce(result.to_text())
