"""`rerank convert`: k-best lists in another format, or as plain text."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from rerank.commands.run import ListFiles, Messages
from rerank.errors import UsageError
from rerank.options import Command, option, part, record
from rerank.values import FILE, Whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rerank.commands.list_run import ListRun
    from rerank.commands.lists import Lists
    from rerank.notices import Notices

DOCUMENTS = "documents"


@record
class Converted:
    """What is written of the lists."""

    to: str = option(
        "Moses n-best list; JSON lines; the first candidate of each sentence; or n-best lists of "
        "whole documents as of Docent, which need --docs or --no-docs one.",
        type=click.Choice(["moses", "jsonl", "first", DOCUMENTS]),
    )
    escape: str | None = option(
        "Write texts with Moses' escapes (&apos; and so on), or without them [default: as they "
        "are].",
        type=click.Choice(["moses", "none"]),
        default=None,
    )
    n_best: int = option(
        "With --to documents: number of best documents, by total.", type=Whole(), default=1
    )
    docs_out: str | None = option(
        "File for the document ids that the list has.", type=FILE, default=None
    )
    source_out: str | None = option(
        "File for the source sentences that the list has.", type=FILE, default=None
    )
    out: str = option("File of the converted list.", type=FILE, default="-")

    def check(self) -> None:
        """UsageError for several documents of a list that has none."""
        if self.n_best > 1 and self.to != DOCUMENTS:
            raise UsageError("--n-best: only --to documents has several lines of a document")


@record
class ConvertOptions:
    """Options of `rerank convert`."""

    lists: ListFiles = part(
        ListFiles, "Lists and documents", without={"systems", "missing"}, required={"kbest"}
    )
    converted: Converted = part(Converted, "Output")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


def convert(options: ConvertOptions) -> None:
    """Convert k-best lists of other tools, and between formats.

    Reads every format of `rerank list formats`. Scores become log-probabilities in nats: those of
    fairseq are multiplied by ln 2, those of Sockeye change their sign. A Moses list that stays one
    keeps its bytes, but for what the options change.

    Example:
      rerank convert --kbest generate.out --to moses --out test.nbest.gz
    """
    with options.messages.warnings() as notices:
        said = write_converted(options.lists.lists(), options.converted, notices)
        options.messages.announce(said)


COMMAND = Command("convert", ConvertOptions, convert)


def write_converted(lists: Lists, converted: Converted, notices: Notices) -> str:
    """Write k-best lists in another format, and say what was written.

    Memory: `rerank.commands.lists.PIECE` sentences, or the largest document where sentences of
    the list are not in order, and to write lists of documents.

    Moses lists that stay so keep every byte that is not to change; those of Marian and of other
    dialects are written as Moses writes them (`rerank.formats.conversion`). Without documents,
    which only lists of documents and lists whose ids are not in order need, each sentence is one.
    UsageError for files of what nobody has; InputError for a list that the format cannot hold.
    """
    from rerank.commands.list_run import ListRun
    from rerank.commands.lists import in_source_order
    from rerank.corpus.spelling import FORMS, with_texts
    from rerank.files.outputs import atomic_all, check_outputs
    from rerank.files.paths import display
    from rerank.formats.conversion import Conversion

    out, to = converted.out, converted.to
    others = [path for path in (converted.docs_out, converted.source_out) if path]
    check_outputs([out, *others], lists.files)
    with ListRun.open(_with_documents(lists, to), notices) as source:
        ids, sources = _known(converted, source)
        as_read = source.file.format.name
        conversion = Conversion(as_read, to, lists.first_id, converted.n_best, ids, sources)
        n = sentences = 0
        with ExitStack() as opened:
            file, *beside = opened.enter_context(atomic_all([out, *others]))
            if to != DOCUMENTS:
                source.documents = source.file.in_pieces(source.documents)
            put = opened.enter_context(in_source_order(file, source.documents))
            for d, (_, kbest) in enumerate(source.read()):
                n, sentences = n + kbest.n, sentences + len(kbest)
                if converted.escape is not None:
                    kbest = with_texts(kbest, FORMS[converted.escape])
                put(conversion.lines(d, kbest, source.documents, notices))
            asked = (ids, converted.docs_out), (sources, converted.source_out)
            for lines, extra in zip((own for own, path in asked if path), beside, strict=True):
                extra.writelines(line + b"\n" for line in lines or ())
        return (
            f"{n:,} hypotheses of {sentences:,} sentences read as {as_read}, "
            f"written {'as' if out == '-' else f'to {display(out)} as'} {to}"
        )


def _known(
    converted: Converted, source: ListRun
) -> tuple[Sequence[bytes] | None, Sequence[bytes] | None]:
    """Document id and source of each source line; UsageError for a file of what nobody has."""
    ids, sources = source.file.annotations
    if ids is None and source.lists.docs is not None:
        found = source.documents
        by_line = {
            found.line(t): name.encode()
            for d, name in enumerate(found.ids)
            for t in range(*found.span(d))
        }
        ids = [by_line[line] for line in range(found.n_file_lines)]
    if converted.docs_out and ids is None:
        raise UsageError("--docs-out: this list has no document ids of all its sentences")
    if converted.source_out and sources is None:
        raise UsageError("--source-out: this list has no sources of all its sentences")
    return ids, sources


def _with_documents(lists: Lists, to: str) -> Lists:
    """The lists with every sentence a document, if nothing else is said."""
    from rerank.commands.lists import own_documents

    if lists.docs is not None or lists.no_docs is not None:
        return lists
    if to == DOCUMENTS or own_documents(lists) is not None:
        return lists  # without documents the message names the options
    return replace(lists, no_docs="each")
