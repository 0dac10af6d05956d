"""`rerank topics`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.options import (
    Messages,
    count_option,
    docs_option,
    documents_option,
    format_option,
    message_options,
    print_result,
)
from rerank.cli.topic_prediction import train
from rerank.values import FILE, FOLDER, MOST_LINES, TableName

MOST_TOPICS = 1 << 16


@click.group()
def topics() -> None:
    """Topics of sentences: learned from text, written beside it, and predicted."""


@topics.command()
@click.argument("text", type=FILE, metavar="TEXT")
@click.option(
    "--topic-model",
    type=TableName("lm.composition:TOPIC_MODELS"),
    default="kmeans",
    help="kmeans clusters TF-IDF vectors in a latent semantic space, lda is latent Dirichlet "
    "allocation; both from stretches of ten sentences. They need the extra `topics` "
    "(scikit-learn); topics label does not.",
)
@count_option("--topics-number", most=MOST_TOPICS, default=100, help="Number of topics.")
@count_option(
    "--vocab", "vocabulary", most=MOST_LINES, default=10_000, help="Vocabulary size, in words."
)
@count_option(
    "--vocab-min-count",
    "min_count",
    most=MOST_LINES,
    default=1,
    help="Number of times that a word of the vocabulary is in TEXT.",
)
@count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed.")
@documents_option
@click.option(
    "--out", required=True, type=FOLDER, metavar="DIR", help="New folder for the topic model."
)
@format_option
@message_options
def learn(text: str, out: Path, form: str, messages: Messages, **recipe: Any) -> None:
    """Learn the topics of TEXT, and print the words of each that are the strongest in it.

    TEXT has a sentence per line, documents parted as --documents says. Topic 0 is that of
    sentences without a word that counts.

    \b
    Example:
      rerank topics learn train.en --topics-number 50 --out topics.model
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        found = pipeline.learn_topics(pipeline.TopicRecipe(**recipe), text, out, notices=notices)
    print_result(found, form)


@topics.command()
@click.option(
    "--model",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="Topic model made by rerank topics learn.",
)
@click.argument("text", type=FILE, metavar="TEXT")
@documents_option
@docs_option
@click.option("--out", default="-", type=FILE, help="Output; - is standard output.")
@message_options
def label(
    model: Path, text: str, documents: str, docs: str | None, out: str, messages: Messages
) -> None:
    """Write the topic of each sentence of TEXT, a number per line, as a file for --topics.

    Lines between documents stay as they are; with --docs every line is a sentence instead, as in
    files beside k-best lists: the source, or a translation.

    \b
    Example:
      rerank topics label --model topics.model train.en --out train.topics
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        n = pipeline.label_topics(model, text, out, notices=notices, documents=documents, docs=docs)
    messages.announce(f"{n:,} sentences labelled")


topics.add_command(train)
