"""`rerank train-lm` and `rerank perplexity`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.cli.options import (
    announcer,
    device_option,
    format_option,
    quiet_option,
    strict_option,
    told,
)

if TYPE_CHECKING:
    from lm.training import Report

MODELS = ["rnnlm", "drnnlm", "codclm", "ccdclm", "hrnnlm"]


@click.command("train-lm")
@click.option("--model", required=True, type=click.Choice(MODELS), help="Composition to train.")
@click.option(
    "--train", required=True, help="Training text: sentence per line, blank line between documents."
)
@click.option("--valid", required=True, help="Held-out text in the same form.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the model.")
@click.option(
    "--embed",
    default=128,
    show_default=True,
    type=click.IntRange(1),
    help="Size K of the word embeddings.",
)
@click.option(
    "--hidden",
    default=256,
    show_default=True,
    type=click.IntRange(1),
    help="Size H of the hidden layers.",
)
@click.option(
    "--layers", default=1, show_default=True, type=click.IntRange(1, 64), help="Recurrent layers."
)
@click.option(
    "--recurrence",
    type=click.Choice(["lstm", "cifg"]),
    default="lstm",
    show_default=True,
    help="Cell; cifg is the coupled-gate cell of Ji et al.'s code.",
)
@click.option(
    "--tied/--untied",
    default=True,
    show_default=True,
    help="Share embeddings with the output layer.",
)
@click.option(
    "--vocab",
    "vocabulary",
    default=10_000,
    show_default=True,
    type=click.IntRange(1),
    help="Most frequent words kept.",
)
@click.option(
    "--epochs",
    default=5,
    show_default=True,
    type=click.IntRange(1),
    help="Passes over the training text.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Time limit; the learning rate anneals towards it. Such a run depends on the clock.",
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0, 2**31 - 1))
@click.option("--dropout", default=0.1, show_default=True, type=click.FloatRange(0, 0.95))
@click.option(
    "--context-dropout",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Share of sentences trained without context.",
)
@click.option(
    "--learning-rate",
    default=3e-3,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Peak of AdamW's learning rate.",
)
@click.option(
    "--negatives",
    default=1024,
    show_default=True,
    type=click.IntRange(0),
    help="Sampled-softmax words an update; 0 is the exact softmax.",
)
@click.option(
    "--streams",
    default=64,
    show_default=True,
    type=click.IntRange(1),
    help="Documents read side by side.",
)
@click.option(
    "--precision",
    type=click.Choice(["auto", "float32", "bfloat16"]),
    default="auto",
    show_default=True,
)
@click.option("--resume", is_flag=True, help="Go on with an interrupted run in --out.")
@device_option
@strict_option
@quiet_option
def train_lm(
    train: str, valid: str, out: Path, resume: bool, strict: bool, quiet: bool, **recipe: Any
) -> None:
    """Train a document language model.

    \b
    Example:
      rerank train-lm --model codclm --train train.en.gz --valid valid.en --out codclm.lm
    """
    from rerank import pipeline

    say = announcer(quiet)

    def report(r: Report) -> None:
        say(
            f"epoch {r.epoch:5.2f}  {r.seconds / 60:5.1f} min  {r.words_per_second:7,.0f} words/s  "
            f"train {r.training_nats:.3f} nats  valid perplexity {r.valid_perplexity:.2f}"
            f"{'  best' if r.best else ''}"
        )

    with told(strict, quiet) as notices:
        pipeline.train_lm(
            pipeline.Recipe(**recipe),
            train,
            valid,
            out,
            notices=notices,
            resume=resume,
            report=report,
            announce=say,
        )
    say(f"model written to {out}")


@click.command()
@click.option(
    "--lm", required=True, type=click.Path(path_type=Path), help="Folder made by train-lm."
)
@click.argument("text")
@format_option
@device_option
@strict_option
@quiet_option
def perplexity(lm: Path, text: str, form: str, device: str, strict: bool, quiet: bool) -> None:
    """Perplexity of TEXT (sentence per line, blank line between documents; - is stdin).

    \b
    Example:
      rerank perplexity --lm codclm.lm valid.en --format json
    """
    from rerank import pipeline

    with told(strict, quiet) as notices:
        result = pipeline.perplexity(lm, text, notices=notices, device=device)
    if form == "json":
        click.echo(json.dumps({"schema": 1, **result.as_json()}))
        return
    click.echo(
        f"perplexity {result.perplexity:.2f} (without </s> {result.perplexity_without_eos:.2f}), "
        f"{result.nats_per_token:.4f} nats per token over {result.tokens:,} words "
        f"({result.oov:,} out of vocabulary) in {result.sentences:,} sentences"
    )
