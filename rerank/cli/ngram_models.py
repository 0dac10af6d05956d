"""`rerank train-ngram`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.options import Messages, count_option, documents_option, message_options
from rerank.values import FILE, MOST_LINES

MOST_ORDER = 6  # of `lm.ngrams`


@click.command("train-ngram")
@click.option(
    "--train",
    required=True,
    type=FILE,
    help="Training text: one sentence per line; blank lines are not sentences.",
)
@click.option(
    "--out",
    required=True,
    type=FILE,
    help="ARPA file to write, compressed if it ends in .gz, .xz or .bz2; - is standard output.",
)
@count_option("--order", most=MOST_ORDER, default=5, help="Words of the longest n-grams.")
@click.option(
    "--smoothing",
    type=click.Choice(["kneser-ney", "stupid-backoff"]),
    default="kneser-ney",
    help="kneser-ney is interpolated modified Kneser-Ney (Chen & Goodman 1999), as lmplz has it; "
    "stupid-backoff (Brants et al. 2007) is no probability, and other programs refuse its file.",
)
@click.option(
    "--discount-fallback",
    is_flag=True,
    help="Take the discounts 0.5, 1 and 1.5 for orders whose counts give none, as in small or "
    "made-up texts; such a text is refused otherwise.",
)
@count_option(
    "--vocab",
    "vocabulary",
    most=MOST_LINES,
    help="Vocabulary size: the most frequent words; the others are <unk> [default: all words].",
)
@count_option(
    "--vocab-min-count",
    "min_count",
    most=MOST_LINES,
    default=1,
    help="Number of times that a word of the vocabulary is in the training text.",
)
@documents_option
@message_options
def train_ngram(train: str, out: str, messages: Messages, **recipe: Any) -> None:
    """Estimate an n-gram language model and write it in ARPA format.

    It is for --ngram of score, decode, tune-mert and perplexity, and for other programs.

    \b
    Example:
      rerank train-ngram --order 5 --train train.en.gz --out model.arpa.gz
    """
    from rerank.pipeline.ngram_models import NGramRecipe
    from rerank.pipeline.ngram_models import train_ngram as train_ngram_of

    with messages.warnings() as notices:
        train_ngram_of(
            NGramRecipe(**recipe), train, out, notices=notices, announce=messages.announce
        )
