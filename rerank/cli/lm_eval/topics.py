"""`rerank lm-eval topics`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.options import (
    Messages,
    device_option,
    documents_option,
    message_options,
    print_result,
    table_format_option,
    threads_option,
)
from rerank.values import FILE, FOLDER


@click.command()
@click.option(
    "--model",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="Predictor made by rerank topics train.",
)
@click.argument("text", type=FILE, metavar="TEXT")
@click.option(
    "--topics",
    "labels",
    required=True,
    type=FILE,
    help="File with a topic label for each sentence of TEXT, as topics label writes it.",
)
@documents_option
@table_format_option
@device_option
@threads_option
@message_options
def topics(
    model: Path, text: str, labels: str, form: str, messages: Messages, **options: Any
) -> None:
    """Compute perplexity and accuracy of the topics of next sentences in TEXT.

    Beside the predictor stand baselines that were counted in its training text: the most frequent
    topic, the topic of the sentence before, and a bigram of topics (Witten-Bell).

    \b
    Example:
      rerank lm-eval topics --model predictor.model test.en --topics test.topics
    """
    from rerank import pipeline

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        files = pipeline.TextFiles(text, {"topics": labels})
        found = pipeline.evaluate_topics(model, files, notices=notices, **options)
    print_result(found, form)
