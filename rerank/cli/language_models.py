"""`rerank train-lm` and `rerank perplexity`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.names import MemberName
from rerank.cli.options import (
    Messages,
    count_option,
    device_option,
    format_option,
    message_options,
    threads_option,
)
from rerank.cli.values import FILE, FOLDER, MOST_LINES, SHARE, Real
from rerank.files.terminal import show
from rerank.registry import MODELS

if TYPE_CHECKING:
    from lm.training import Report

WIDEST = 1 << 16  # layer that `lm.model.Config` allows


@click.command(
    "train-lm",
    cls=CommandWithHeadings,
    headings={
        "train": "Data and output",
        "model": "Model",
        "epochs": "Training",
        "device": "Machine",
        "strict": "Messages",
    },
)
@click.option(
    "--train",
    required=True,
    type=FILE,
    help="Training text: one sentence per line, a blank line between documents.",
)
@click.option("--valid", required=True, type=FILE, help="Validation text in the same format.")
@click.option(
    "--out",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="New folder for the model.",
)
@click.option("--resume", is_flag=True, help="Continue the interrupted training in --out.")
@click.option(
    "--model",
    required=True,
    type=MemberName(MODELS),
    help="Language model; `rerank list models` shows what each is.",
)
@count_option(
    "--vocab",
    "vocabulary",
    default=10_000,
    most=MOST_LINES,
    help="Vocabulary size: the most frequent words of the training text.",
)
@count_option(
    "--embed",
    most=WIDEST,
    help="Size of the word embeddings; the models of Lin et al. have that of the hidden layers "
    "[default: 128, or --hidden].",
)
@count_option("--hidden", default=256, most=WIDEST, help="Size of the hidden layers.")
@count_option("--layers", default=1, most=64, help="Number of recurrent layers.")
@click.option(
    "--recurrence",
    type=click.Choice(["lstm", "cifg", "htanh"]),
    help="Recurrent cell; cifg is the LSTM with coupled gates of Ji et al.'s code, htanh the "
    "clipped layer of Lin et al. [default: lstm, or that of the model].",
)
@click.option(
    "--tied/--untied",
    default=None,
    help="Share embeddings with the output layer [default: tied, or as the model has it].",
)
@click.option(
    "--head",
    type=click.Choice(["softmax", "classes", "self-normalised", "hashed"]),
    help="How words are predicted: classes is a softmax over classes of words and one over the "
    "words of a class (exact, scores faster); self-normalised is trained so that its logits are "
    "scores without a normaliser (fastest, error stated); hashed adds maximum-entropy n-gram "
    "features to the softmax (exact) [default: that of the model].",
)
@count_option(
    "--hash-size",
    most=2**31 - 1,
    help="Numbers in a table of hashed features, 8 bytes each in training and 4 afterwards; "
    "hrnnlm-lin has two tables [default: 10000000].",
)
@count_option(
    "--hash-order",
    least=2,
    most=3,
    help="Longest n-grams of hashed features: 2, or 3 for trigrams as well [default: 2].",
)
@count_option("--epochs", default=5, help="Number of passes over the training text.")
@click.option(
    "--minutes",
    type=Real(0, 1_000_000, above=True),
    help="Time limit, towards which the learning rate is annealed; results then depend on the "
    "speed of the machine.",
)
@count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed.")
@click.option("--dropout", default=0.1, type=Real(0, 0.95), help="Dropout rate.")
@click.option(
    "--context-dropout",
    default=0.1,
    type=SHARE,
    help="Share of sentences that are trained without context.",
)
@click.option(
    "--learning-rate",
    default=3e-3,
    type=Real(0, 10, above=True),
    help="Peak learning rate of AdamW.",
)
@count_option(
    "--negatives",
    least=0,
    help="Words sampled per update for the sampled softmax; 0 trains the full softmax. Not with "
    "--head classes or hashed [default: 1024].",
)
@count_option("--streams", default=64, help="Batch size, in documents read in parallel.")
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    help="Precision of training; auto is bfloat16 where the hardware is faster with it.",
)
@device_option
@threads_option
@message_options
def train_lm(
    train: str,
    valid: str,
    out: Path,
    resume: bool,
    threads: int | None,
    messages: Messages,
    **recipe: Any,
) -> Report:
    """Train a document language model.

    \b
    Example:
      rerank train-lm --model codclm --train train.en.gz --valid valid.en --out codclm.lm
    """
    from rerank import pipeline

    def report(r: Report) -> None:
        messages.announce(
            f"epoch {r.epoch:5.2f}  {r.seconds / 60:5.1f} min  {r.words_per_second:7,.0f} words/s  "
            f"train {r.training_nats:.3f} nats  valid {'' if r.predicts_end else 'bag-of-words '}"
            f"perplexity {r.valid_perplexity:.2f}"
            f"{f'  {r.log_z.to_text()}' if r.log_z else ''}{'  best' if r.best else ''}"
        )

    messages.announce_threads(threads)
    with messages.warnings() as notices:
        last = pipeline.train_lm(
            pipeline.Recipe(**recipe, threads=threads),
            train,
            valid,
            out,
            notices=notices,
            resume=resume,
            report=report,
            announce=messages.announce,
        )
    messages.announce(f"model written to {out}")
    return last


@click.command()
@click.option(
    "--lm",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="Language model made by train-lm.",
)
@click.argument("text", type=FILE, metavar="TEXT")
@format_option
@device_option
@threads_option
@message_options
def perplexity(
    lm: Path, text: str, form: str, device: str, threads: int | None, messages: Messages
) -> None:
    """Compute the perplexity of TEXT under a language model.

    TEXT has one sentence per line and a blank line between documents; - is standard input.

    \b
    Example:
      rerank perplexity --lm codclm.lm valid.en --format json
    """
    from rerank import pipeline

    messages.announce_threads(threads)
    with messages.warnings() as notices:
        result = pipeline.perplexity(lm, text, notices=notices, device=device, threads=threads)
    if form == "json":
        show(json.dumps({"schema": 1, **result.as_json()}))
        return
    counts = (
        f"{result.tokens:,} words ({result.oov:,} out of vocabulary) in {result.sentences:,} "
        "sentences"
    )
    if not result.predicts_end:
        show(
            f"{result.nats_per_token:.4f} nats per word of a bag of words over {counts}; word "
            "order and </s> are not predicted: not comparable with perplexities of other models"
        )
        return
    show(
        f"perplexity {result.perplexity:.2f} (without </s> {result.perplexity_without_eos:.2f}), "
        f"{result.nats_per_token:.4f} nats per token over {counts}"
    )
    if result.log_z is not None:
        show(f"scores of this model are not normalised: {result.log_z.to_text()}")
