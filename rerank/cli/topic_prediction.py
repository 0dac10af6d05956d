"""`rerank topics train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.options import (
    Messages,
    count_option,
    device_option,
    documents_option,
    message_options,
    threads_option,
)
from rerank.cli.training_options import RATE
from rerank.values import FILE, FOLDER, MOST_LINES, Real, TableName

if TYPE_CHECKING:
    from lm.topics.prediction.training import EpochReport

WIDEST = 1 << 16  # layer that `lm.topics.prediction.PredictorConfig` allows
_TOPICS = "File with the topic of each sentence, a label per line, as topics label writes it"


@click.command(
    cls=CommandWithHeadings,
    headings={
        "train": "Data and output",
        "architecture": "Model",
        "epochs": "Training",
        "device": "Machine",
        "strict": "Messages",
    },
)
@click.option(
    "--train",
    required=True,
    type=FILE,
    help="Training text: one sentence per line, documents parted as --documents says.",
)
@click.option("--topics", required=True, type=FILE, help=f"{_TOPICS}, beside --train.")
@click.option("--valid", required=True, type=FILE, help="Validation text in the same format.")
@click.option("--valid-topics", required=True, type=FILE, help="Topics beside --valid.")
@documents_option
@click.option(
    "--out", required=True, type=FOLDER, metavar="DIR", help="New folder for the predictor."
)
@click.option(
    "--architecture",
    type=TableName("lm.composition:TOPIC_PREDICTORS"),
    default="unrolled",
    help="unrolled is an LSTM for each sentence, which knows of earlier ones by the thought vector "
    "alone; rolled-up is one LSTM for all sentences of a document; bow-dnn is a feed-forward "
    "network over the bag of a sentence's words.",
)
@click.option(
    "--inputs",
    type=TableName("lm.composition:TOPIC_INPUTS"),
    default="words+topics",
    help="What is read: words, the topic of the sentence, and the thought vector, a projection of "
    "the previous sentence's last hidden state.",
)
@click.option(
    "--given-next-words",
    is_flag=True,
    help="Read the words of the sentence whose topic is predicted, and the topic of the one "
    "before it, in place of those of the sentence before.",
)
@click.option(
    "--target",
    type=click.Choice(["topic", "joint"]),
    default="topic",
    help="What is predicted: the topic, or jointly the topic and the words that are read.",
)
@count_option("--embed", most=WIDEST, default=128, help="Size of embeddings of words and topics.")
@count_option("--hidden", most=WIDEST, default=256, help="Size of the hidden layers.")
@count_option("--layers", most=64, default=1, help="Number of hidden layers.")
@click.option(
    "--recurrence",
    type=TableName("lm.composition:RECURRENCES"),
    help="Cell of the hidden layers [default: peephole].",
)
@count_option(
    "--thought",
    "thought",
    most=WIDEST,
    help="Size of the thought vector [default: an eighth of --hidden].",
)
@count_option(
    "--vocab", "vocabulary", most=MOST_LINES, default=10_000, help="Vocabulary size, in words."
)
@count_option(
    "--vocab-min-count",
    "min_count",
    most=MOST_LINES,
    default=1,
    help="Number of times that a word of the vocabulary is in the training text.",
)
@count_option("--epochs", default=10, help="Number of passes over the training text, at most.")
@count_option(
    "--patience",
    least=0,
    default=3,
    help="Epochs without a new best on the validation text after which training ends; 0 goes on.",
)
@count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed.")
@count_option("--streams", default=16, help="Batch size: documents read in parallel.")
@count_option("--segment", default=8, help="Sentences of a document through which gradients go.")
@click.option(
    "--optimiser",
    type=click.Choice(["adamw", "muon", "sgd", "adagrad", "adadelta"]),
    default="adamw",
    help="How gradients become updates.",
)
@click.option(
    "--learning-rate",
    type=Real(0, 10, above=True),
    default=3e-3,
    help="Peak learning rate.",
)
@click.option(
    "--weight-decay",
    type=Real(0, 10),
    default=1e-2,
    help="Share by which an update shrinks weights, times the learning rate.",
)
@click.option(
    "--clip",
    type=Real(0, 1_000_000),
    default=5.0,
    help="Largest norm of an update's gradient; 0 does not clip.",
)
@click.option(
    "--schedule",
    type=click.Choice(["annealed", "constant", "halving"]),
    default="annealed",
    help="Learning rate over time: annealed to zero over --epochs, constant, or halved after each "
    "epoch that gains little on the validation text, until the second one.",
)
@click.option(
    "--dropout",
    type=RATE,
    default=0.2,
    help="Dropout rate of single numbers, of the inputs and before the output layer.",
)
@device_option
@threads_option
@message_options
def train(
    train: str,
    topics: str,
    valid: str,
    valid_topics: str,
    out: Path,
    threads: int | None,
    messages: Messages,
    **recipe: Any,
) -> None:
    """Train a predictor of the topic of the next sentence.

    After every sentence of a document it gives the topic of the next one a probability: the models
    of Tables 4 and 5 of Ghosh et al. 2016.

    \b
    Example:
      rerank topics train --train train.en --topics train.topics --valid valid.en \\
        --valid-topics valid.topics --inputs words+topics --out predictor.model
    """
    from rerank import pipeline

    def report(r: EpochReport) -> None:
        messages.announce(
            f"epoch {r.epoch}  train {r.training_nats:.3f} nats  valid perplexity "
            f"{r.valid.perplexity:.2f}, accuracy {r.valid.accuracy:.2%}{'  best' if r.best else ''}"
        )

    messages.announce_threads(threads)
    with messages.warnings() as notices:
        pipeline.train_topics(
            pipeline.PredictorRecipe(**recipe, threads=threads),
            pipeline.TextFiles(train, {"topics": topics}),
            pipeline.TextFiles(valid, {"topics": valid_topics}),
            out,
            notices=notices,
            report=report,
            announce=messages.announce,
        )
    messages.announce(f"predictor written to {out}")
