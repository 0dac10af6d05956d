"""`rerank explain`: what a decoding changed, and why."""

from __future__ import annotations

from rerank.errors import UsageError
from rerank.files.lines import spool
from rerank.files.paths import display
from rerank.formats.run_records import read_trace
from rerank.notices import Notices
from rerank.options import Command, argument, part, record
from rerank.report.explanation import Explanation, split_place
from rerank.runs.options import Messages, form_option, printed
from rerank.values import FILE, TEXT


@record
class ExplainOptions:
    """Options of `rerank explain`."""

    trace: str = argument("TRACE", type=FILE)
    place: str | None = argument("[DOC[:SENT]]", type=TEXT, default=None)
    form: str = form_option("text", "json")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def explain(options: ExplainOptions, notices: Notices) -> Explanation:
    """Say what a decoding changed and why, of the file of decode --trace.

    Without DOC the whole run: the features that moved most sentences, the commonest changes of
    words and, of lists of --systems, the segments of each engine by document, with --glossary the
    terms that are kept and missed. With DOC, a document id, also each of its sentences that is
    changed or misses a term; with DOC:SENT one sentence, counted from 0 in its document.

    Example:
      rerank explain test.trace talk-7:12
    """
    name, place = display(options.trace), options.place
    document = sentence = None
    with spool(options.trace) as path:
        if place is not None:  # the trace is read twice
            documents = {choice.document for choice in read_trace(path, name, Notices())}
            document, sentence = split_place(place, documents, name)
        result = Explanation.of(read_trace(path, name, notices), document, sentence)
    if sentence is not None and not result.shown:
        raise UsageError(f"{place}: {name} has no sentence {sentence} of {document!r}")
    return result


COMMAND = Command("explain", ExplainOptions, explain)
