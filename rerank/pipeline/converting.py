"""`rerank convert` and `rerank first`: k-best lists in another format, or as plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from rerank.corpus.columns import TextColumn
from rerank.corpus.documents import Documents
from rerank.corpus.escaping import FORMS, with_texts
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, UsageError
from rerank.files.outputs import atomic_all, check_outputs
from rerank.files.paths import display
from rerank.formats.document_nbest import document_lines
from rerank.formats.further_columns import (
    AFTER_TOTAL,
    as_moses_writes,
    further_columns,
    with_columns,
)
from rerank.formats.jsonl import kept_keys, lines_with_keys
from rerank.formats.moses import moses_lines
from rerank.formats.table import KBestFormat, lines_of
from rerank.notices import Notices, PythonWarnings
from rerank.pipeline.input_order import in_source_order
from rerank.pipeline.kbest_file import of_sentences
from rerank.pipeline.kbest_source import KBestSource
from rerank.pipeline.lists import Lists, own_documents
from rerank.pipeline.sources import Printer, log
from rerank.registry import FORMATS

DOCUMENTS, FIRST = "documents", "first"
WRITTEN = ("moses", "jsonl", FIRST, DOCUMENTS)


@dataclass(frozen=True, slots=True)
class Conversion:
    """What `convert` writes.

    to: of `WRITTEN`; escape: form of the texts, `moses` or `none` [default: as they are]; n_best:
    documents of a list of documents; docs_out, source_out: files for the document ids and sources
    that the list has.
    """

    to: str
    escape: str | None = None
    n_best: int = 1
    docs_out: str | None = None
    source_out: str | None = None


def convert(
    lists: Lists,
    out: str | Path,
    conversion: Conversion,
    *,
    notices: Notices | None = None,
    announce: Printer = log.info,
) -> None:
    """Write k-best lists to `out` in another format.

    Memory: `rerank.pipeline.kbest_file.PIECE` sentences, or the largest document where sentences of
    the list are not in order, and to write lists of documents.

    Moses lists that stay so keep every byte that is not to change; those of Marian and of other
    dialects are written as Moses writes them (`rerank.formats.further_columns`). Without documents,
    which only lists of documents and lists whose ids are not in order need, each sentence is one.
    UsageError for options that have no meaning together; InputError for a list that the format
    cannot hold.
    """
    notices = notices or PythonWarnings()
    _check(conversion)
    others = [path for path in (conversion.docs_out, conversion.source_out) if path]
    check_outputs([out, *others], lists.files)
    with KBestSource.open(_with_documents(lists, conversion), notices) as source:
        document_ids, sources = source.file.annotations
        beside = _Beside.of(conversion, source, document_ids, sources)
        write = _writer(conversion, source, beside)
        n = sentences = 0
        with ExitStack() as opened:
            file, *extra = opened.enter_context(atomic_all([out, *others]))
            if conversion.to != DOCUMENTS:
                source.documents = source.file.in_pieces(source.documents)
            put = opened.enter_context(in_source_order(file, source.documents))
            for d, (name, kbest) in enumerate(source.read()):
                n, sentences = n + kbest.n, sentences + len(kbest)
                if conversion.escape is not None:
                    kbest = with_texts(kbest, FORMS[conversion.escape])
                put(write(d, name, kbest))
            beside.write(conversion, extra)
        announce(
            f"{n:,} hypotheses of {sentences:,} sentences read as {source.file.format.name}, "
            f"written {'as' if str(out) == '-' else f'to {display(out)} as'} {conversion.to}"
        )


def first(
    lists: Lists,
    out: str | Path,
    *,
    notices: Notices | None = None,
    announce: Printer = log.info,
) -> None:
    """Write the first candidate of each sentence, a line each; empty where there is none."""
    convert(lists, out, Conversion(FIRST), notices=notices, announce=announce)


@dataclass(frozen=True, slots=True)
class _Beside:
    """Documents and sources of the source lines, where they are known."""

    documents: Sequence[bytes] | None
    sources: Sequence[bytes] | None

    @classmethod
    def of(
        cls,
        conversion: Conversion,
        source: KBestSource,
        documents: Sequence[bytes] | None,
        sources: Sequence[bytes] | None,
    ) -> _Beside:
        """Those of the list, or of --docs; UsageError for a file of what nobody has."""
        lists = source.lists
        if documents is None and lists.docs is not None:
            found = source.documents
            ids = {
                found.line(t): name.encode()
                for d, name in enumerate(found.ids)
                for t in range(*found.span(d))
            }
            documents = [ids[line] for line in range(found.n_read)]
        if conversion.docs_out and documents is None:
            raise UsageError("--docs-out: this list has no document ids of all its sentences")
        if conversion.source_out and sources is None:
            raise UsageError("--source-out: this list has no sources of all its sentences")
        return cls(documents, sources)

    def of_sentences(self, kbest: KBest, documents: Documents) -> dict[str, Sequence[bytes]]:
        """Those of the sentences of one of the documents, by the keys of JSON lines."""
        given = {"document": self.documents, "source": self.sources}
        return of_sentences(kbest, documents, given)

    def write(self, conversion: Conversion, files: Sequence[BinaryIO]) -> None:
        """Write the files that were asked for, in their order."""
        wanted = [
            (conversion.docs_out, self.documents),
            (conversion.source_out, self.sources),
        ]
        chosen = [lines for path, lines in wanted if path]
        for file, lines in zip(files, chosen, strict=True):
            file.writelines(line + b"\n" for line in lines or ())


def _check(conversion: Conversion) -> None:
    """UsageError for options that have no meaning together."""
    if conversion.to not in WRITTEN:
        raise UsageError(f"--to {conversion.to}: expected one of {', '.join(WRITTEN)}")
    if conversion.n_best > 1 and conversion.to != DOCUMENTS:
        raise UsageError("--n-best: only --to documents has several lines of a document")


def _with_documents(lists: Lists, conversion: Conversion) -> Lists:
    """The lists with every sentence a document, if nothing else is said."""
    if lists.docs is not None or lists.no_docs is not None:
        return lists
    if own_documents(lists) is not None:
        return lists
    if conversion.to == DOCUMENTS:
        return lists  # the message names the options
    return replace(lists, no_docs="each")


def _writer(
    conversion: Conversion, source: KBestSource, beside: _Beside
) -> Callable[[int, str, KBest], Iterator[tuple[int, bytes]]]:
    """What gives (sentence, line) of a document, by its number, id and lists."""
    if conversion.to == FIRST:
        return lambda d, name, kbest: enumerate(
            kbest.chosen([0] * int((kbest.counts > 0).sum())), kbest.first
        )
    if conversion.to == DOCUMENTS:
        return lambda d, name, kbest: (
            (kbest.first, line) for line in document_lines(d, kbest, conversion.n_best)
        )
    target: KBestFormat = FORMATS[conversion.to]()
    first_id = source.lists.first_id

    def lines(d: int, name: str, kbest: KBest) -> Iterator[tuple[int, bytes]]:
        documents = source.documents
        kbest = replace(kbest, side=beside.of_sentences(kbest, documents))
        as_read = source.file.format.name
        if as_read != target.name and target.name == "moses" and kbest.texts.block_has(b"|||"):
            _refuse_bars(kbest)
        kbest = _in_form(kbest, as_read, target.name, documents, source.notices, first_id)
        nothing = np.zeros((kbest.n, 0))
        return lines_of(target, kbest, documents, (), nothing, None, first_id=first_id)

    return lines


def _in_form(
    kbest: KBest, as_read: str, target: str, documents: Documents, notices: Notices, first_id: int
) -> KBest:
    """The lists with lines of another format, which hold what it keeps beside the features."""
    if kbest.lines is None or (as_read == target and target != "moses"):
        return kbest
    if as_read == target:
        own = kbest.lines.to_list()
        new = [as_moses_writes(line, notices, source=kbest.source) for line in own]
        return kbest if new == own else replace(kbest, lines=TextColumn.of(new))
    if (as_read, target) == ("moses", "jsonl"):
        own = kbest.lines.to_list()
        keys = (further_columns(line, notices, source=kbest.source) for line in own)
        return replace(kbest, lines=TextColumn.of(lines_with_keys(kbest.texts.to_list(), keys)))
    if (as_read, target) == ("jsonl", "moses"):
        others = [kept_keys(kbest, row)[1] for row in range(kbest.n)]
        if any(key in one for one in others for key in AFTER_TOTAL):
            sentences = (
                replace(kbest.sentence(t), lines=None, first=documents.line(kbest.first + t))
                for t in range(len(kbest))
            )
            lines = (line for one in sentences for line in moses_lines(one, first_id))
            found = [with_columns(a, b) for a, b in zip(lines, others, strict=True)]
            return replace(kbest, lines=TextColumn.of(found))
    return replace(kbest, lines=None)


def _refuse_bars(kbest: KBest) -> None:
    """InputError for a text that a Moses list cannot hold."""
    for t in range(len(kbest)):
        if any(b"|||" in kbest.texts[row] for row in kbest.rows(t)):
            raise InputError(
                f"expected no '|||' in a text of a Moses list, found one of sentence "
                f"{kbest.first + t} (from 0); give --escape moses",
                source=kbest.source,
            )
