"""`rerank perplexity`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from rerank.cli.options import (
    Messages,
    all_of,
    device_option,
    documents_option,
    message_options,
    print_result,
    table_format_option,
    threads_option,
)
from rerank.cli.side_information import side_of, side_options
from rerank.errors import UsageError
from rerank.torchrun import process_number
from rerank.values import FILE, FOLDER, PART


@click.command()
@click.option("--lm", type=FOLDER, metavar="DIR", help="Language model made by train-lm.")
@click.option(
    "--ngram",
    type=FILE,
    help="In place of --lm: n-gram language model in ARPA format, made by train-ngram, lmplz or "
    "SRILM, for example --ngram model.arpa.gz.",
)
@click.argument("text", type=FILE, metavar="TEXT")
@all_of(side_options(beside="line of TEXT, blank where that is blank"))
@click.option("--across-documents", is_flag=True, help="Let contexts cross the ends of documents.")
@documents_option
@click.option(
    "--document-cache",
    type=PART,
    metavar="SHARE",
    help="Interpolate the model with a document cache, the unigram of the document so far, of "
    "weight SHARE, for example 0.1.",
)
@click.option(
    "--duplicate-last-word",
    is_flag=True,
    help="Read and count the last word of each sentence twice, as the published program of Ji et "
    "al. 2016 does: only to compare with their figures.",
)
@click.option(
    "--per-document",
    is_flag=True,
    help="Print the figures of each document, too; documents count from 0.",
)
@click.option(
    "--tags",
    type=FILE,
    help="A file beside TEXT with a tag for each word, such as its part of speech: print the "
    "figures of the words of each tag, and of </s>, too.",
)
@table_format_option
@device_option
@threads_option
@message_options
def perplexity(
    lm: Path | None,
    ngram: str | None,
    text: str,
    tags: str | None,
    form: str,
    messages: Messages,
    **options: Any,
) -> None:
    """Compute the perplexity of TEXT under a language model.

    TEXT has one sentence per line, and by default a blank line between documents; - is standard
    input.

    \b
    Example:
      rerank perplexity --lm codclm.lm valid.en --format json
    """
    from rerank.pipeline.ngram_models import ngram_perplexity
    from rerank.pipeline.perplexity import perplexity as perplexity_of
    from rerank.pipeline.tags import TaggedText
    from rerank.report.perplexity import PerplexityReport

    if ngram is not None:
        _refuse_options()
    elif lm is None:
        raise UsageError("expected --lm DIR or --ngram FILE, found neither; give one of them")
    if form == "tsv" and tags and options["per_document"]:
        raise UsageError("--format tsv: one table; leave out --tags or --per-document")
    messages.announce_threads(options["threads"])
    with messages.warnings() as notices:
        files = TaggedText(text, side_of(options), tags)
        if lm is None:
            named = {name: options[name] for name in ("documents", "per_document")}
            result = ngram_perplexity(str(ngram), text, notices=notices, **named)
        else:
            result = perplexity_of(lm, files, notices=notices, **options)
    given = tuple(files.side)
    if process_number() == 0:
        print_result(PerplexityReport(result, options["duplicate_last_word"], given), form)


_OF_NGRAMS = frozenset({"ngram", "text", "documents", "per_document", "form", "strict", "quiet"})


def _refuse_options() -> None:
    """UsageError for an option that n-gram models do not have, or another model."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
        if given and option.name not in _OF_NGRAMS:
            raise UsageError(
                f"{option.opts[0]}: not for the n-gram model of --ngram; leave one of them out"
            )
