"""`rerank lm-eval next-sentence`."""

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
from rerank.values import FILE


@click.command("next-sentence")
@models_option
@click.argument("text", type=FILE, metavar="TEXT")
@documents_option
@count_option(
    "--block", default=50, least=2, most=1000, help="Passages of a block, candidates of each other."
)
@count_option(
    "--context", default=3, most=1000, help="Sentences of a passage before the one to choose."
)
@count_option("--blocks", default=100, most=100_000, help="Most blocks.")
@click.option(
    "--candidates",
    type=click.Choice(["separate", "consecutive", "same-topic"]),
    default="separate",
    help="Which passages are in a block: from different documents, drawn at random, as in the "
    "paper; consecutive in the text, which is harder and needs fewer documents; or passages whose "
    "last sentences have one topic of --topics, the paper's second experiment.",
)
@click.option(
    "--topics",
    type=FILE,
    help="File with a topic for each line of TEXT, as `rerank topics label` writes it, blank where "
    "TEXT is: for models that are given topics (each candidate its own), and for --candidates "
    "same-topic.",
)
@count_option("--seed", default=1, least=0, most=2**31 - 1, help="Random seed of the blocks.")
@click.option(
    "--errors",
    type=FILE,
    help="Write the wrong choices to this file, one JSON object per line.",
)
@format_option
@device_option
@threads_option
@message_options
def next_sentence(
    lms: tuple[tuple[str, Path], ...],
    text: str,
    form: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Measure how often a language model chooses the sentence that follows a passage.

    TEXT has one sentence per line, and by default a blank line between documents; for paragraphs,
    as in Ghosh et al. 2016, give --documents paragraphs. It is cut in passages of four sentences:
    the fourth is chosen, given the other three, among the fourth sentences of all passages of the
    block. Scores are those of equation 4 there, log p without its normaliser, and log p given the
    context less log p without.

    \b
    Example:
      rerank lm-eval next-sentence --lm clstm.lm --lm rnnlm.lm --errors wrong.jsonl test.en
    """
    from rerank.pipeline.lm_eval.next_sentence import BlockSettings
    from rerank.pipeline.lm_eval.next_sentence import next_sentence as next_sentence_of

    messages.announce_threads(options["threads"])
    names = ("block", "context", "candidates", "blocks", "seed")
    settings = BlockSettings(**{name: options.pop(name) for name in names})
    with messages.warnings() as notices:
        result = next_sentence_of(lms, text, settings, notices=notices, **options)
    print_result(result, form)
