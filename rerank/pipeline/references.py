"""References of the sentences of k-best lists, and the documents that they may state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rerank.commands.lists import Lists, own_documents
from rerank.corpus.documents import Documents, difference_of
from rerank.corpus.spelling import nfc_lines
from rerank.errors import InputError
from rerank.files.lines import is_pipe
from rerank.files.paths import display, file_of
from rerank.formats.side_information import SOURCE
from rerank.formats.translations import (
    documents_in,
    matched,
    read_reference_texts,
    read_with_documents,
)
from rerank.notices import Notices, Printer, log


def read_targets(
    lists: Lists,
    references: Sequence[str | Path],
    notices: Notices,
    announce: Printer = log.info,
) -> tuple[Documents, list[list[bytes]]]:
    """The documents of lists, and the references of their sentences: [sentence][file].

    Sentences without a reference are left out with `Lists.drop_unreferenced`, otherwise an
    InputError. Where only the first reference has documents, a line says so.
    """
    lists.check()
    documents, drop = own_documents(lists), lists.drop_unreferenced
    if documents is None:
        if lists.docs is None and lists.no_docs is None:
            _announce_documents(lists, references, notices, announce)
        found = read_with_documents(lists.docs, lists.no_docs, references, notices, drop=drop)
    else:
        target = documents if lists.systems else documents.n_lines  # segments of XML have names
        texts = read_reference_texts(references, target, notices, model=lists.name)
        found = matched(texts, documents, notices, drop=drop)
    documents, targets = found
    return documents, nfc_lines(targets) if lists.in_nfc else targets


def documents_of_reference(references: Sequence[str | Path], notices: Notices) -> Documents | None:
    """The documents that the first reference states; None if it states none."""
    if not references or is_pipe(file_of(references[0])):
        return None
    return documents_in(references[0], notices)


def check_source_order(
    lists: Lists, references: Sequence[str | Path], documents: Documents, notices: Notices
) -> None:
    """InputError if the source states other documents than the first reference, which has these."""
    source = lists.side.get(SOURCE)
    others = None if source is None else documents_in(source, notices)
    if others is not None and (difference := difference_of(others, documents)):
        raise InputError(
            f"expected the documents of {display(references[0])} in their order, found "
            f"{difference}; give --docs FILE with the documents in the order of the list",
            source=display(source or ""),
        )


def _announce_documents(
    lists: Lists, references: Sequence[str | Path], notices: Notices, announce: Printer
) -> None:
    """Announce that documents and their order are those of the first reference, if they are."""
    documents = documents_of_reference(references, notices)
    if documents is not None:
        check_source_order(lists, references, documents, notices)
        announce(
            f"documents: those of {display(references[0])}, in its order, which must be that of "
            "the list's source; otherwise give --docs FILE"
        )
