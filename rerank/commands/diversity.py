"""`rerank diversity`: how much the candidates of a sentence differ."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rerank.commands.run import KBEST_HELP, Messages, form_option, print_result
from rerank.corpus.reading import DocumentOptions, ReadingOptions
from rerank.options import Command, option, part, record
from rerank.values import FILE

if TYPE_CHECKING:
    from rerank.notices import Notices
    from rerank.report.diversity import Diversities


@record
class MeasuredList:
    """The list that is measured."""

    kbest: str = option(KBEST_HELP, type=FILE, once=True)
    documents: DocumentOptions = part(DocumentOptions, without={"no_docs"})
    reading: ReadingOptions = part(ReadingOptions, without={"missing"})


@record
class DiversityOptions:
    """Options of `rerank diversity`."""

    lists: MeasuredList = part(MeasuredList, "Lists and documents")
    form: str = form_option(
        "text", "json", "tsv", help="A summary as text, or every sentence's figures as JSON or TSV."
    )
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def diversity(options: DiversityOptions) -> None:
    """Count distinct candidates and their mean edit distance.

    --docs is needed only if ids fall within documents.

    Example:
      rerank diversity --kbest test.nbest.gz --top 20 --diverse
    """
    with options.messages.warnings() as notices:
        result = diversity_of(options.lists, notices)
    print_result(result, options.form)


COMMAND = Command("diversity", DiversityOptions, diversity)


def diversity_of(measured: MeasuredList, notices: Notices) -> Diversities:
    """The diversity of k-best lists, as `--top` and `--diverse` leave them.

    Documents determine only in which order ids may come (`rerank.corpus.grouping.documents_of`);
    without --docs every list is a document. Memory: a document, and about 200 bytes per list.
    """
    import numpy as np

    from rerank.corpus.diversity import Diversity
    from rerank.corpus.diversity import diversity as diversity_of_list
    from rerank.pipeline.kbest_source import KBestSource
    from rerank.pipeline.lists import Lists
    from rerank.report.diversity import Diversities

    docs, reading = measured.documents.file, measured.reading
    no_docs = "each" if docs is None else None
    lists = Lists(measured.kbest, docs, no_docs, **asdict(reading))
    found: dict[int, Diversity] = {}
    with KBestSource.open(lists, notices) as source:
        for _, kbest in source.read():
            for t in np.flatnonzero(kbest.counts).tolist():
                tokens = [kbest.tokens(row) for row in kbest.rows(t)]
                line = source.documents.line(kbest.first + t)
                found[reading.first_id + line] = diversity_of_list(tokens)
    return Diversities(dict(sorted(found.items())))
