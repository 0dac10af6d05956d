"""`rerank lm-eval pairs`."""

from __future__ import annotations

from typing import Any

import click

from rerank.cli.lists import normalize_option, reading_options
from rerank.cli.options import (
    Messages,
    by_name,
    count_option,
    format_option,
    interleaved_docs_option,
    kbest_option,
    message_options,
    no_docs_option,
    print_result,
    reference_option,
)
from rerank.values import FILE, TEXT, Pair


@click.command()
@kbest_option
@interleaved_docs_option
@no_docs_option
@reference_option
@click.option("--out", required=True, type=FILE, help="File for the items.")
@click.option(
    "--class",
    "word_class",
    type=TEXT,
    default="pronouns",
    metavar="NAME",
    help="Words in which the variants differ: the English lists pronouns, auxiliaries or function, "
    "or the NAME of a --word-list [default: pronouns].",
)
@click.option(
    "--word-list",
    "word_lists",
    multiple=True,
    type=Pair("NAME=FILE", FILE),
    metavar="NAME=FILE",
    help="A list of words, one a line, for --class; repeatable.",
)
@count_option(
    "--context", least=0, default=3, most=1000, help="Sentences of the reference before each item."
)
@reading_options
@normalize_option
@format_option
@message_options
def pairs(
    kbest: str,
    docs: str | None,
    no_docs: str | None,
    references: tuple[str, ...],
    out: str,
    word_class: str,
    word_lists: tuple[tuple[str, str], ...],
    context: int,
    form: str,
    messages: Messages,
    **reading: Any,
) -> None:
    """Make contrastive items from k-best lists, for `lm-eval contrastive`.

    An item is a candidate of a list and others that differ from it in one pronoun, or another
    word of --class: the right one's is in the reference, the others' are not.

    \b
    Example:
      rerank lm-eval pairs --kbest dev.nbest.gz --docs dev.docids --ref dev.en --out pairs.jsonl
    """
    from rerank.commands.lists import Lists
    from rerank.pipeline.lm_eval.pairs import contrastive_pairs

    with messages.warnings() as notices:
        result = contrastive_pairs(
            Lists(kbest, docs, no_docs, **reading),
            references,
            out,
            word_class=word_class,
            word_lists=by_name("--word-list", word_lists),
            context=context,
            notices=notices,
        )
    print_result(result, form)
