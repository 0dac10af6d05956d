"""`rerank explain`: what a decoding changed, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rerank.commands.run import Messages, form_option, print_result
from rerank.errors import UsageError
from rerank.options import Command, argument, part, record
from rerank.values import FILE, TEXT

if TYPE_CHECKING:
    from rerank.notices import Notices
    from rerank.report.explanation import Explanation


@record
class ExplainOptions:
    """Options of `rerank explain`."""

    trace: str = argument("TRACE", type=FILE)
    place: str | None = argument("[DOC[:SENT]]", type=TEXT, default=None)
    form: str = form_option("text", "json", help="Output as text or as JSON.")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def explain(options: ExplainOptions) -> None:
    """Say what a decoding changed and why, of the file of decode --trace.

    Without DOC the whole run: the features that moved most sentences, and the commonest changes
    of words. With DOC, a document id, also each of its changed sentences; with DOC:SENT one
    sentence, counted from 0 in its document.

    Example:
      rerank explain test.trace talk-7:12
    """
    with options.messages.warnings() as notices:
        result = explanation(options, notices)
    print_result(result, options.form)


COMMAND = Command("explain", ExplainOptions, explain)


def explanation(options: ExplainOptions, notices: Notices) -> Explanation:
    """What a decoding changed and why, of its trace, or of a place in it.

    The trace is read once, or twice for a place. Memory: as `Explanation.of`.
    """
    from rerank.files.lines import spool
    from rerank.files.paths import display
    from rerank.formats.run_records import read_trace
    from rerank.notices import Notices
    from rerank.report.explanation import Explanation, split_place

    name, place = display(options.trace), options.place
    document = sentence = None
    with spool(options.trace) as path:
        if place is not None:
            documents = {choice.document for choice in read_trace(path, name, Notices())}
            document, sentence = split_place(place, documents, name)
        found = Explanation.of(read_trace(path, name, notices), document, sentence)
    if sentence is not None and not found.shown:
        raise UsageError(f"{place}: {name} has no sentence {sentence} of {document!r}")
    return found
