"""`rerank train-lm` and `rerank perplexity`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rerank.cli.headings import CommandWithHeadings
from rerank.cli.names import MemberName, TableName
from rerank.cli.options import (
    Messages,
    count_option,
    device_option,
    format_option,
    message_options,
    threads_option,
)
from rerank.cli.values import FILE, FOLDER, MOST_LINES, SHARE, TEXT, Real
from rerank.files.terminal import show
from rerank.registry import MODELS

if TYPE_CHECKING:
    from lm.training import Report

WIDEST = 1 << 16  # layer that `lm.model.Config` allows

documents_option = click.option(
    "--documents",
    type=click.Choice(["blank", "equals"]),
    default="blank",
    help="What parts documents: blank lines, or lines whose first character is =, which close "
    "one, as in the data files of Ji et al. 2016 (a blank line is an empty sentence there).",
)


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
    help="Training text: one sentence per line, documents parted as --documents says.",
)
@click.option("--valid", required=True, type=FILE, help="Validation text in the same format.")
@documents_option
@click.option(
    "--unknown",
    type=TEXT,
    metavar="WORD",
    help="Word of the texts that stands for all unknown words, as <unk> always does; UNK in the "
    "data files of Ji et al. 2016.",
)
@click.option(
    "--out",
    required=True,
    type=FOLDER,
    metavar="DIR",
    help="New folder for the model.",
)
@click.option("--resume", is_flag=True, help="Continue the interrupted training in --out.")
@count_option(
    "--longest",
    help="Leave sentences of more than N words out of training, also as context of the next ones; "
    "validation has all [default: keep all].",
)
@click.option(
    "--across-documents",
    is_flag=True,
    help="Let contexts cross the ends of documents: each text is one stream, the training text in "
    "4 x --streams stretches.",
)
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
@count_option("--embed", default=128, most=WIDEST, help="Size of the word embeddings.")
@count_option("--hidden", default=256, most=WIDEST, help="Size of the hidden layers.")
@count_option("--layers", default=1, most=64, help="Number of recurrent layers.")
@click.option(
    "--recurrence",
    type=TableName("lm.zoo:RECURRENCES"),
    default="lstm",
    help="Recurrent cell: cifg is the LSTM with coupled gates of Ji et al.'s code, as its library "
    "has it since April 2016; cifg-2015 as it had it in November 2015, when they published, "
    "without a peephole at the first word; rnn is the simple cell with a sigmoid.",
)
@click.option("--tied/--untied", default=True, help="Share embeddings with the output layer.")
@click.option(
    "--fusion",
    type=TableName("lm.zoo:FUSIONS"),
    help="Where the context enters: input concatenates it to every word, input-sum adds a "
    "projection of it, output adds it to the logits, merge feeds tanh(W h + W' c + b) to the "
    "output, input-merge is both, input-residual feeds tanh(h + Q c + P x), initial begins "
    "sentences in a carried state (drnnlm) [default: that of the model].",
)
@count_option(
    "--attention",
    most=WIDEST,
    help="Size of the hidden layer of the attention, in models that have one [default: --hidden].",
)
@click.option(
    "--head",
    type=TableName("lm.zoo:HEADS"),
    help="How words are predicted: unbiased is the softmax without a bias; classes is a softmax "
    "over classes of words and one over the words of a class (exact, scores faster); "
    "self-normalised is trained so that its logits are scores without a normaliser (fastest, error "
    "stated) [default: that of the model].",
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
    "--head classes [default: 1024].",
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
            f"train {r.training_nats:.3f} nats  valid perplexity {r.valid_perplexity:.2f}"
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
@documents_option
@click.option(
    "--duplicate-last-word",
    is_flag=True,
    help="Read and count the last word of each sentence twice, as the published program of Ji et "
    "al. 2016 does: only to compare with their figures.",
)
@click.option("--across-documents", is_flag=True, help="Let contexts cross the ends of documents.")
@format_option
@device_option
@threads_option
@message_options
def perplexity(
    lm: Path,
    text: str,
    documents: str,
    duplicate_last_word: bool,
    across_documents: bool,
    form: str,
    messages: Messages,
    **machine: Any,
) -> None:
    """Compute the perplexity of TEXT under a language model.

    TEXT has one sentence per line, and by default a blank line between documents; - is standard
    input.

    \b
    Example:
      rerank perplexity --lm codclm.lm valid.en --format json
    """
    from rerank import pipeline

    messages.announce_threads(machine["threads"])
    with messages.warnings() as notices:
        result = pipeline.perplexity(
            lm,
            text,
            notices=notices,
            documents=documents,
            duplicate_last_word=duplicate_last_word,
            across_documents=across_documents,
            **machine,
        )
    if form == "json":
        text_read = {"duplicate_last_word": duplicate_last_word}
        show(json.dumps({"schema": 1, **result.as_json(), **text_read}))
        return
    show(
        f"perplexity {result.perplexity:.2f} (without </s> {result.perplexity_without_eos:.2f}), "
        f"{result.nats_per_token:.4f} nats per token over {result.tokens:,} words "
        f"({result.oov:,} out of vocabulary) in {result.sentences:,} sentences"
        f"{', the last word of each twice' if duplicate_last_word else ''}"
    )
    if result.log_z is not None:
        show(f"scores of this model are not normalised: {result.log_z.to_text()}")
