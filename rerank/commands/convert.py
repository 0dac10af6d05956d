"""`rerank convert` and `rerank first`: k-best lists in another format, or as plain text."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from rerank.errors import UsageError
from rerank.files.outputs import atomic_all, check_outputs
from rerank.files.paths import display
from rerank.notices import Notices
from rerank.options import Command, flag, option, optional, optional_file, part, record
from rerank.runs.options import ListFiles, Messages, printed
from rerank.values import FILE, Whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rerank.corpus.columns import TextColumn
    from rerank.corpus.kbest import KBest
    from rerank.runs.lists import Lists, ListSource

DOCUMENTS = "documents"


@record
class Converted:
    """What is written of the lists."""

    to: str = option(
        "Moses n-best list; JSON lines; first candidates; or n-best lists of whole "
        "documents.\n\n"
        "documents: as of Docent; they need --docs or --no-docs one.",
        type=click.Choice(["moses", "jsonl", "first", DOCUMENTS]),
    )
    escape: str | None = optional(
        "Write texts with Moses' escapes (&apos; and so on), or without them [default: as they "
        "are].",
        type=click.Choice(["moses", "none"]),
    )
    clean: bool = flag(
        "Take away what is surely no translation.\n\n"
        "Closed reasoning, a code fence, control tokens at the ends, the prompt before all texts; "
        "bytes as <0xC3><0xA9> become characters."
    )
    n_best: int = option(
        "With --to documents: number of best documents, by total.", type=Whole(), default=1
    )
    docs_out: str | None = optional_file("File for the document ids that the list has.")
    source_out: str | None = optional_file("File for the source sentences that the list has.")
    out: str = option("File of the converted list.", type=FILE, default="-")

    def check(self) -> None:
        """UsageError for several documents of a list that has none."""
        if self.n_best > 1 and self.to != DOCUMENTS:
            raise UsageError("--n-best: only --to documents has several lines of a document")


@record
class ConvertOptions:
    """Options of `rerank convert`."""

    lists: ListFiles = part(ListFiles, "Lists and documents", without={"missing"})
    converted: Converted = part(Converted, "Output")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def convert(options: ConvertOptions, notices: Notices) -> str:
    """Convert k-best lists of other tools, and between formats.

    Reads every format of `rerank list formats`. Scores become log-probabilities in nats: those of
    fairseq are multiplied by ln 2, those of Sockeye change their sign. A Moses list that stays one
    keeps its bytes, but for what the options change.

    Example:
      rerank convert --kbest generate.out --to moses --out test.nbest.gz
    """
    return write_converted(options.lists.lists(), options.converted, notices)


@record
class FirstOptions:
    """Options of `rerank first`."""

    lists: ListFiles = part(
        ListFiles, "Lists and documents", without={"systems"}, required={"kbest"}
    )
    source: str | None = optional_file("Source text, a line a sentence, for --missing source.")
    out: str = option("File of the translations, a line a sentence.", type=FILE, default="-")
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def first(options: FirstOptions, notices: Notices) -> str:
    """Write the first candidate of each sentence of a list.

    Example:
      rerank first --kbest test.nbest.gz --out test.1best
    """
    side = {} if options.source is None else {"source": options.source}
    lists = options.lists.lists(side=side)
    return write_converted(lists, Converted(to="first", out=options.out), notices)


COMMAND = Command("convert", ConvertOptions, convert)
FIRST = Command("first", FirstOptions, first)


def write_converted(lists: Lists, converted: Converted, notices: Notices) -> str:
    """Write k-best lists in another format, and say what was written.

    Memory: `rerank.runs.lists.PIECE` sentences, or the largest document where sentences of
    the list are not in order, and to write lists of documents.

    Moses lists that stay so keep every byte that is not to change; those of Marian and of other
    dialects are written as Moses writes them. Each sentence is a document where documents are not
    needed: by lists of documents, and lists whose ids are not in order.
    UsageError for files of what nobody has; InputError for a list that the format cannot hold.
    """
    from rerank.corpus.spelling import FORMS, with_texts
    from rerank.formats.moses import document_lines
    from rerank.runs.lists import in_source_order
    from rerank.runs.opening import open_run

    out, to = converted.out, converted.to
    others = [path for path in (converted.docs_out, converted.source_out) if path]
    check_outputs([out, *others], lists.files)
    with open_run(_with_documents(lists, to), notices) as run:
        source = run.source
        known = _known(converted, source)
        as_read = source.format.name
        n = sentences = 0
        with ExitStack() as opened:
            file, *beside = opened.enter_context(atomic_all([out, *others]))
            if to != DOCUMENTS:
                source.documents = source.in_pieces()
            put = opened.enter_context(in_source_order(file, source.documents))
            for d, (_, kbest) in enumerate(run.read()):
                n, sentences = n + kbest.n, sentences + len(kbest)
                if converted.clean:
                    kbest = with_texts(kbest, run.defects.cleaned)
                if converted.escape is not None:
                    kbest = with_texts(kbest, FORMS[converted.escape])
                if to == "first":
                    filled = int((kbest.counts > 0).sum())
                    put(enumerate(kbest.chosen([0] * filled), kbest.first))
                elif to == DOCUMENTS:
                    put((kbest.first, line) for line in document_lines(d, kbest, converted.n_best))
                else:
                    put(_list_lines(kbest, to, source, known, notices))
            keys = {"document": converted.docs_out, "source": converted.source_out}
            for key, extra in zip([k for k, path in keys.items() if path], beside, strict=True):
                extra.writelines(line + b"\n" for line in known[key])
        removed = ", ".join(f"{kind} {n:,}" for kind, n in run.defects.removed.items() if n)
        return (
            f"{n:,} hypotheses of {sentences:,} sentences read as {as_read}, "
            f"written {'as' if out == '-' else f'to {display(out)} as'} {to}"
            + (f"; taken away: {removed}" if removed else "")
        )


def _known(converted: Converted, source: ListSource) -> dict[str, Sequence[bytes]]:
    """Document id and source of each source line; UsageError for a file of what nobody has."""
    ids, sources = source.annotations
    if ids is None and source.lists.docs is not None:
        documents = source.documents
        by_line = {
            documents.line(t): name.encode() for name, lines in documents.ranges() for t in lines
        }
        ids = [by_line[line] for line in range(documents.n_file_lines)]
    if converted.docs_out and ids is None:
        raise UsageError("--docs-out: this list has no document ids of all its sentences")
    if converted.source_out and sources is None:
        raise UsageError("--source-out: this list has no sources of all its sentences")
    known = {"document": ids, "source": sources}
    return {key: lines for key, lines in known.items() if lines is not None}


def _with_documents(lists: Lists, to: str) -> Lists:
    """The lists with every sentence a document, if nothing else is said."""
    from rerank.runs.lists import own_documents

    if lists.docs is not None or lists.no_docs is not None:
        return lists
    if to == DOCUMENTS or own_documents(lists) is not None:
        return lists  # without documents the message names the options
    return replace(lists, no_docs="each")


def _list_lines(
    kbest: KBest, to: str, source: ListSource, known: dict[str, Sequence[bytes]], notices: Notices
) -> Iterator[tuple[int, bytes]]:
    """(sentence, line) of lists in the format `to`; InputError for what it cannot hold."""
    import numpy as np

    from rerank.formats.table import lines_of
    from rerank.registry import FORMATS

    documents, as_read, first_id = source.documents, source.format.name, source.lists.first_id
    places = [documents.line(kbest.first + t) for t in range(len(kbest))]
    lines = _kept_lines(kbest, (as_read, to), places, first_id, notices)
    side = {key: [column[place] for place in places] for key, column in known.items()}
    kbest = replace(kbest, lines=lines, side=side)
    nothing = np.zeros((kbest.n, 0))
    return lines_of(FORMATS[to](), kbest, documents, (), nothing, None, first_id=first_id)


def _kept_lines(
    kbest: KBest, formats: tuple[str, str], places: Sequence[int], first_id: int, notices: Notices
) -> TextColumn | None:
    """Lines as the second format keeps them, beside the features; None to make them anew."""
    from rerank.corpus.columns import TextColumn
    from rerank.formats import moses
    from rerank.formats.json_lists import kept_keys, lines_with_keys

    if kbest.lines is None or formats == ("jsonl", "jsonl"):
        return kbest.lines
    as_read = kbest.lines.to_list()
    if formats == ("moses", "moses"):
        new = [moses.as_moses_writes(line, notices, source=kbest.source) for line in as_read]
        return kbest.lines if new == as_read else TextColumn.of(new)
    if formats == ("moses", "jsonl"):
        keys = (moses.further_columns(line, notices, source=kbest.source) for line in as_read)
        return TextColumn.of(lines_with_keys(kbest.texts.to_list(), keys))
    others = [kept_keys(kbest, row)[1] for row in range(kbest.n)] if formats[0] == "jsonl" else []
    if not any(key in keys for keys in others for key in moses.AFTER_TOTAL):
        return None
    sentences = (
        replace(kbest.sentence(t), lines=None, first=place) for t, place in enumerate(places)
    )
    lines = (line for sentence in sentences for line in moses.moses_lines(sentence, first_id))
    return TextColumn.of([moses.with_columns(*both) for both in zip(lines, others, strict=True)])
