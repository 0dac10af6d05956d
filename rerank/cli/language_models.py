"""`rerank train-lm` and `rerank perplexity`."""

from __future__ import annotations

import json
from dataclasses import replace
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
from rerank.cli.training_options import of_recipe, training_options
from rerank.cli.values import FILE, FOLDER, MOST_LINES
from rerank.files.terminal import show
from rerank.registry import MODELS

if TYPE_CHECKING:
    from lm.run import Report

WIDEST = 1 << 16  # layer that `lm.model.Config` allows


@click.command(
    "train-lm",
    cls=CommandWithHeadings,
    headings={
        "train": "Data and output",
        "model": "Model",
        "initialisation": "Training",
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
    "--curve",
    type=FILE,
    help="New file for the learning curve: tab-separated figures of every validation. --resume "
    "extends it.",
)
@click.option(
    "--model",
    required=True,
    type=MemberName(MODELS),
    help="Language model; `rerank list models` shows what each is.",
)
@click.option(
    "--recipe",
    type=click.Choice(["strong", "paper", "code"]),
    default="strong",
    help="Defaults of the options for the model and its training: strong for use, shown here; "
    "paper is the training of the model's own paper, code that of its authors' program. The run "
    "prints what it uses.",
)
@count_option(
    "--vocab",
    "vocabulary",
    most=MOST_LINES,
    **of_recipe("10000", "Vocabulary size: the most frequent words of the training text"),
)
@count_option(
    "--vocab-min-count",
    "min_count",
    most=MOST_LINES,
    **of_recipe("1", "Number of times that a word of the vocabulary is in the training text"),
)
@click.option(
    "--size",
    type=click.Choice(["small", "medium", "large"]),
    help="Defaults of --embed, --hidden and --layers: small 128, 256, 1; medium 256, 512, 1; "
    "large 512, 1024, 2 [default: those of --recipe].",
)
@count_option("--embed", most=WIDEST, **of_recipe("128", "Size of the word embeddings"))
@count_option("--hidden", most=WIDEST, **of_recipe("256", "Size of the hidden layers"))
@count_option("--layers", most=64, **of_recipe("1", "Number of recurrent layers"))
@click.option(
    "--recurrence",
    type=click.Choice(["lstm", "cifg"]),
    **of_recipe("lstm", "Recurrent cell; cifg is the LSTM with coupled gates of Ji et al.'s code"),
)
@click.option("--tied/--untied", **of_recipe("tied", "Share embeddings with the output layer"))
@click.option(
    "--head",
    type=click.Choice(["softmax", "classes", "self-normalised"]),
    help="How words are predicted: classes is a softmax over classes of words and one over the "
    "words of a class (exact, scores faster); self-normalised is trained so that its logits are "
    "scores without a normaliser (fastest, error stated) [default: that of the model].",
)
@training_options
@device_option
@threads_option
@message_options
def train_lm(
    train: str,
    valid: str,
    out: Path,
    resume: bool,
    curve: str | None,
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
    from rerank.pipeline.processes import is_first_process

    if not is_first_process():
        messages = replace(messages, quiet=True)

    def report(r: Report) -> None:
        messages.announce(
            f"epoch {r.epoch:5.2f}  {r.seconds / 60:5.1f} min  {r.words_per_second:7,.0f} words/s  "
            f"train {r.training_nats:.3f} nats  valid perplexity {r.valid_perplexity:.2f}"
            f"{'' if r.stage == 'words' else f' of {r.stage}'}"
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
            curve=curve,
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
    show(
        f"perplexity {result.perplexity:.2f} (without </s> {result.perplexity_without_eos:.2f}), "
        f"{result.nats_per_token:.4f} nats per token over {result.tokens:,} words "
        f"({result.oov:,} out of vocabulary) in {result.sentences:,} sentences"
    )
    if result.log_z is not None:
        show(f"scores of this model are not normalised: {result.log_z.to_text()}")
