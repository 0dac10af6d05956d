"""`rerank cloze`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from rerank.cli.options import (
    Messages,
    count_option,
    device_option,
    format_option,
    message_options,
    threads_option,
)
from rerank.files.terminal import show
from rerank.values import FILE, FOLDER


@click.command()
@click.option(
    "--lm",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="Language model made by train-lm.",
)
@click.argument("text", type=FILE, metavar="TEXT")
@count_option("--answers", default=5, help="Number of answers to each query.")
@format_option
@device_option
@threads_option
@message_options
def cloze(
    lm: Path,
    text: str,
    answers: int,
    form: str,
    device: str,
    threads: int | None,
    messages: Messages,
) -> None:
    """Fill in missing words of TEXT with a language model.

    TEXT has one sentence per line and a blank line between documents. The last sentence of each
    document has ___ in place of one word. The model scores this sentence, after those before it,
    completed with every word of its vocabulary. Output: the line, an answer and its
    natural-log probability, with TABs between them.

    \b
    Example:
      rerank cloze --lm rlm.lm queries.en --answers 1
    """
    from rerank import pipeline

    messages.announce_threads(threads)
    with messages.warnings() as notices:
        result = pipeline.cloze(
            lm, text, notices=notices, answers=answers, device=device, threads=threads
        )
    if form == "json":
        show(json.dumps({"schema": 1, **result.as_json()}, ensure_ascii=False))
    else:
        show(result.to_text())
