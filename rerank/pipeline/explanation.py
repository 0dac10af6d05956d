"""`rerank explain`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rerank.errors import UsageError
from rerank.files.lines import spool
from rerank.files.paths import display
from rerank.formats.trace import read_trace
from rerank.notices import Notices, PythonWarnings
from rerank.report.explanation import Explanation


def explain(
    trace: str | Path, place: str | None = None, *, notices: Notices | None = None
) -> Explanation:
    """What a decoding changed and why, of its trace.

    place: `DOC`, a document, or `DOC:SENT`, one of its sentences, from 0; None for the whole run.
    The trace is read once, or twice for a place. Memory: as `Explanation.of`.
    """
    notices = notices or PythonWarnings()
    name = display(trace)
    document = sentence = None
    with spool(trace) as path:
        if place is not None:
            documents = {choice.document for choice in read_trace(path, name, Notices())}
            document, sentence = split_place(place, documents, name)
        found = Explanation.of(read_trace(path, name, notices), document, sentence)
    if sentence is not None and not found.shown:
        raise UsageError(f"{place}: {name} has no sentence {sentence} of {document!r}")
    return found


def split_place(place: str, documents: Collection[str], source: str) -> tuple[str, int | None]:
    """Document and sentence of `DOC` or `DOC:SENT`; UsageError for another document."""
    if place in documents:
        return place, None
    document, colon, number = place.rpartition(":")
    if colon and document in documents and number.isdigit() and len(number) < 10:
        return document, int(number)
    few = ", ".join(sorted(documents)[:3])
    raise UsageError(
        f"{place}: expected DOC or DOC:SENT, a document of {source} and the number of a sentence "
        f"from 0; its documents are {few}{', …' if len(documents) > 3 else ''}"
    )
