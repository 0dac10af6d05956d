"""`rerank lm-eval contrastive`."""

from __future__ import annotations

from pathlib import Path

import click

from rerank.cli.options import (
    Messages,
    count_option,
    device_option,
    message_options,
    print_result,
    table_format_option,
    threads_option,
)
from rerank.values import FILE, FOLDER


@click.command()
@click.option(
    "--lm",
    "lms",
    required=True,
    multiple=True,
    type=FOLDER,
    metavar="DIR",
    help="Language model made by train-lm; repeatable.",
)
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@count_option(
    "--seed", default=1, least=0, most=2**31 - 1, help="Random seed of the other items' contexts."
)
@table_format_option
@device_option
@threads_option
@message_options
def contrastive(
    lms: tuple[Path, ...],
    files: tuple[str, ...],
    seed: int,
    form: str,
    device: str,
    threads: int | None,
    messages: Messages,
) -> None:
    """Measure how often a language model prefers the right sentence to wrong variants of it.

    Each line of FILE is an item: {"context": [SENTENCE, ...], "right": SENTENCE, "wrong": SENTENCE
    or [SENTENCE, ...]}, and, if items are to be grouped, "phenomenon", "language" or "pronoun".
    Accuracy is measured with the item's context, without context, and with another item's.

    \b
    Example:
      rerank lm-eval contrastive --lm codclm.lm --lm rnnlm.lm pronouns.jsonl
    """
    from rerank.pipeline.lm_eval.contrastive import contrastive as contrastive_of

    messages.announce_threads(threads)
    with messages.warnings() as notices:
        result = contrastive_of(
            lms, files, notices=notices, seed=seed, device=device, threads=threads
        )
    print_result(result, form)
