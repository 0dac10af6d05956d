"""`rerank explain`."""

from __future__ import annotations

import click

from rerank.cli.options import Messages, format_option, message_options, print_result
from rerank.values import FILE, TEXT


@click.command()
@click.argument("trace", type=FILE)
@click.argument("place", type=TEXT, required=False, metavar="[DOC[:SENT]]")
@format_option
@message_options
def explain(trace: str, place: str | None, form: str, messages: Messages) -> None:
    """Say what a decoding changed and why, of the file of decode --trace.

    \b
    Without DOC the whole run: the features that moved most sentences, and the commonest changes
    of words. With DOC, a document id, also each of its changed sentences; with DOC:SENT one
    sentence, counted from 0 in its document.

    \b
    Example:
      rerank explain test.trace talk-7:12
    """
    from rerank import pipeline

    with messages.warnings() as notices:
        result = pipeline.explain(trace, place, notices=notices)
    print_result(result, form)
