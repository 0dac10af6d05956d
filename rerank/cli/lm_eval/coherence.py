"""`rerank lm-eval coherence`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rerank.cli.lm_eval.options import models_option
from rerank.cli.options import (
    Messages,
    count_option,
    device_option,
    documents_option,
    format_option,
    message_options,
    print_result,
    threads_option,
)
from rerank.cli.values import FILE


@click.command()
@models_option
@click.argument("text", type=FILE, metavar="TEXT")
@documents_option
@count_option(
    "--permutations",
    default=20,
    most=10_000,
    help="Permutations of the sentences of each document; fewer where fewer have another text.",
)
@count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed of permutations.")
@format_option
@device_option
@threads_option
@message_options
def coherence(
    lms: tuple[tuple[str, Path], ...],
    text: str,
    form: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Measure how often a language model prefers a document to permutations of its sentences.

    TEXT has one sentence per line, and by default a blank line between documents. The accuracy is
    printed as in Lin et al. 2015 (sentence ordering: the share of all pairs of a document and a
    permutation), with a test over documents between models, and as in Ji et al. 2016 (coherence:
    mean and standard deviation over 1,000 samples of the documents, with their z-test).

    \b
    Example:
      rerank lm-eval coherence --lm codclm.lm --lm rnnlm.lm --permutations 20 test.en
    """
    from rerank import pipeline

    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        result = pipeline.coherence(lms, text, notices=notices, **options)
    print_result(result, form)
