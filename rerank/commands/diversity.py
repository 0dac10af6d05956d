"""`rerank diversity`: how much the candidates of a sentence differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rerank.commands.run import ListFiles, Messages, form_option, print_result
from rerank.options import Command, part, record

if TYPE_CHECKING:
    from rerank.notices import Notices
    from rerank.pipeline.lists import Lists
    from rerank.report.diversity import Diversities


@record
class DiversityOptions:
    """Options of `rerank diversity`."""

    lists: ListFiles = part(
        ListFiles,
        "Lists and documents",
        without={"systems", "no_docs", "missing"},
        required={"kbest"},
    )
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
        result = diversity_of(options.lists.lists(), notices)
    print_result(result, options.form)


COMMAND = Command("diversity", DiversityOptions, diversity)


def diversity_of(lists: Lists, notices: Notices) -> Diversities:
    """The diversity of k-best lists, as `--top` and `--diverse` leave them.

    Documents determine only in which order ids may come (`rerank.corpus.grouping.documents_of`);
    without --docs every list is a document. Memory: a document, and about 200 bytes per list.
    """
    import numpy as np

    from rerank.corpus.diversity import Diversity
    from rerank.corpus.diversity import diversity as diversity_of_list
    from rerank.pipeline.kbest_source import KBestSource
    from rerank.report.diversity import Diversities

    if lists.docs is None:
        lists = replace(lists, no_docs="each")
    found: dict[int, Diversity] = {}
    with KBestSource.open(lists, notices) as source:
        for _, kbest in source.read():
            for t in np.flatnonzero(kbest.counts).tolist():
                tokens = [kbest.tokens(row) for row in kbest.rows(t)]
                line = source.documents.line(kbest.first + t)
                found[lists.first_id + line] = diversity_of_list(tokens)
    return Diversities(dict(sorted(found.items())))
