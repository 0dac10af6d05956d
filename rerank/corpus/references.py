"""Reference translations: files that have as many lines as the source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import compress

from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.spelling import ESCAPE, UNESCAPE
from rerank.corpus.translations import Translation, documents_in, read_texts_of
from rerank.errors import InputError, UsageError
from rerank.files.lines import count_lines, is_pipe
from rerank.files.paths import FilePath, display, file_of
from rerank.notices import Notices

_PLACEHOLDERS = (b"NO TRANSLATION AVAILABLE", b"NO BEST TRANSLATION")  # of WMT and Moses' tools
UNREFERENCED = "sentence without reference, left out (--drop-unreferenced)"
_SPARSEST = 1000  # sentences of documents for one with a reference, which are not believed


def read_with_documents(
    docs: FilePath | None,
    no_docs: str | None,
    references: Sequence[FilePath],
    notices: Notices,
    *,
    drop: bool | None = None,
) -> tuple[Documents, list[list[bytes]]]:
    """Documents according to the options, and the references of their sentences.

    Without options the documents are those of the first reference if it has any, as in WMT XML. The
    number of sentences is that of the document file or, without one, of the first reference. drop:
    see `matched`.
    """
    own = documents_in(references[0], notices) if references and not _is_pipe(references) else None
    if own is not None and no_docs is not None:
        raise UsageError(
            f"--no-docs {no_docs}: {display(references[0])} says what the documents are; leave it "
            "out"
        )
    model = display(references[0]) if docs is None and references else display(docs or "")
    if docs is None and own is not None:
        documents = own
    elif docs is None:
        texts = read_reference_texts(references, None, notices)
        n_lines = len(texts[0].lines)
        documents = Documents.chosen(None, no_docs, lambda: n_lines, notices)
        return matched(texts, documents, notices, drop=drop)
    else:
        most = None if own is None else partial(int, _SPARSEST * own.n_lines)
        if own is None and references and not _is_pipe(references):
            most = partial(count_lines, references[0])
        documents = Documents.chosen(docs, no_docs, int, notices, most=most)
    texts = read_reference_texts(references, documents, notices, model=model)
    return matched(texts, documents, notices, drop=drop)


def matched(
    texts: Sequence[Translation],
    documents: Documents,
    notices: Notices,
    *,
    drop: bool | None = None,
) -> tuple[Documents, list[list[bytes]]]:
    """The documents, and the references of their sentences: [sentence][reference].

    drop: leave out the sentences that a text lacks, which is otherwise an InputError; None where
    the command has no option for it. InputError if no sentence is left.
    """
    if drop and texts:
        kept = [all(line is not None for line in row) for row in _rows(texts)]
        if not any(kept):
            raise InputError(
                f"expected references of these {len(kept)} sentences, found none that is complete; "
                "is it the file of another test set?",
                source=", ".join(text.name for text in texts),
            )
        if not all(kept):
            lacking = next(text.name for text in texts if None in text.lines)
            notices.add(UNREFERENCED, source=lacking, count=kept.count(False))
            documents = documents.selected(kept)
            texts = [Translation(one.name, list(compress(one.lines, kept))) for one in texts]
    return documents, complete(texts, documents, notices, droppable=drop is not None)


def read_references(
    paths: Sequence[FilePath],
    target: Documents | int | None,
    notices: Notices,
    *,
    model: str = "the source",
) -> list[list[bytes]]:
    """References of each sentence of documents, or of so many sentences: [sentence][reference].

    model: the file with these sentences, for messages; if `target` is None, the first reference.
    InputError if a file has another number of lines, or lacks a segment.
    """
    texts = read_reference_texts(paths, target, notices, model=model)
    return complete(texts, target if isinstance(target, Documents) else None, notices)


def read_reference_texts(
    paths: Sequence[FilePath],
    target: Documents | int | None,
    notices: Notices,
    *,
    model: str = "the source",
) -> list[Translation]:
    """The references of all files, of which one may have several."""
    if not paths:
        raise UsageError("expected a reference file, found none; name one or more")
    found: list[Translation] = []
    for path in paths:
        found += read_texts_of(path, target, notices, model=model, role="reference")
        if target is None:
            target, model = len(found[0].lines), display(path)
    return found


def complete(
    texts: Sequence[Translation],
    documents: Documents | None,
    notices: Notices,
    *,
    droppable: bool = False,
) -> list[list[bytes]]:
    """The references of each sentence; InputError if a text lacks a sentence.

    droppable: whether the command can leave such sentences out, as the message then says.
    """
    cure = ", or leave these sentences out with --drop-unreferenced" if droppable else ""
    columns: list[list[bytes]] = []
    for text in texts:
        lines = [line for line in text.lines if line is not None]
        if missing := len(text.lines) - len(lines):
            first = next(n for n, line in enumerate(text.lines) if line is None)
            raise InputError(
                f"expected a reference of each of {len(text.lines)} sentences, found none of "
                f"{missing}, the first {_place(documents, first)}; choose another reference with "
                f"FILE#NAME{cure}",
                source=text.name,
            )
        for n, line in enumerate(map(bytes.strip, lines), 1):
            if not line:
                notices.add("blank reference", source=text.name, line=n)
            elif line in _PLACEHOLDERS:
                kind = "reference that only says there is no translation"
                notices.add(kind, source=text.name, line=n)
        columns.append(lines)
    _note_mixed_references([text.name for text in texts], columns, notices)
    return [list(sentence) for sentence in zip(*columns, strict=True)]


def _rows(texts: Sequence[Translation]) -> Iterator[tuple[bytes | None, ...]]:
    return zip(*(text.lines for text in texts), strict=True)


def _place(documents: Documents | None, t: int) -> str:
    """Where a sentence is, for a message."""
    if documents is None:
        return f"is {t + 1}"
    d = bisect_right(documents.starts, t) - 1
    n = t - documents.starts[d] + 1
    number = documents.segments[t] if documents.segments else str(n)
    return f"is segment {number} of document {shown_id(documents.ids[d])}"


def _is_pipe(references: Sequence[FilePath]) -> bool:
    return is_pipe(file_of(references[0]))


def note_identity(
    hypotheses: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    notices: Notices,
    *,
    source: str = "",
) -> None:
    """Add a notice if the hypotheses are identical to one of the reference files."""
    for r, lines in enumerate(zip(*references, strict=True), 1):
        if tuple(hypotheses) == lines:
            notices.add(f"hypotheses identical to reference {r}", source=source)


def _note_mixed_references(
    names: Sequence[str], files: Sequence[Sequence[bytes]], notices: Notices
) -> None:
    """Add a notice for each reference file with Moses' escapes, if another one has none."""
    escapes = [_escapes(lines) for lines in files]
    if all(escapes):
        return
    for name, found in zip(names, escapes, strict=True):
        if found:
            (first, (escape, *_)), *rest = found.items()
            notices.add(
                f"mixed escaping: this reference contains {escape} and similar, another one does "
                f"not; unescape it with Moses' {UNESCAPE}",
                source=name,
                line=first + 1,
                count=1 + len(rest),
            )


def _escapes(lines: Iterable[bytes]) -> dict[int, list[str]]:
    """The escapes of each line that has one, by index of the line."""
    found = enumerate(map(ESCAPE.findall, lines))
    return {place: [one.decode() for one in escapes] for place, escapes in found if escapes}
