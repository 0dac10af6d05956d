"""Formats of document files: what each states, how one is recognised, and reading in any of them.

A new format is a file with a `DocumentFormat`, a line in `rerank.registry.DOCUMENT_FORMATS` and a
test; or, in another package, an entry point of the group `rerank.document_formats`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Protocol

from rerank.corpus.documents import DocumentFile, Documents, EvaluationSet
from rerank.errors import InputError, UsageError
from rerank.files.lines import is_pipe, read_lines
from rerank.files.paths import FilePath, display
from rerank.notices import Notice, Notices
from rerank.registry import DOCUMENT_FORMATS

_HEAD_LINES = 2000  # from which a format is recognised
_HEAD_BYTES = 1 << 20
MAX_BYTES = 128 << 20  # of a file whose texts are kept, unpacked


@dataclass(frozen=True, slots=True)
class ReadingChoices:
    """What the user says of a document file.

    field: number from 1 of the field that is the document id, or in JSON its key; interleaved:
    whether lines of a document may stand apart, None if the command has no option for it; most:
    number of sentences that can be needed.
    """

    field: str | None = None
    interleaved: bool | None = None
    most: Callable[[], int] | None = None


PLAIN = ReadingChoices()


class DocumentFormat(Protocol):
    """A format of document files.

    name: as in the table of formats; description: one line for people; example: a small file;
    has_texts: whether it holds texts that are matched by name; takes_field: whether it has fields
    to choose from.
    """

    name: str
    description: str
    example: bytes
    has_texts: bool
    takes_field: bool

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether a file that begins with these lines, at least one of them not blank, is one."""
        ...

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents of a file, and its texts; `InputError` where it is not valid."""
        ...


def read_documents(
    path: FilePath, notices: Notices, *, most: Callable[[], int] | None = None
) -> EvaluationSet:
    """The documents of a file in any of the formats, and the texts that it holds.

    most: number of sentences that can be needed, which is asked for if there are many;
    InputError for more, before they are read.
    """
    file = path if isinstance(path, DocumentFile) else DocumentFile(path)
    source = display(path)
    if source.startswith("sacrebleu:"):
        from rerank.formats.documents.sacrebleu_sets import cached_docids

        file = DocumentFile(cached_docids(source), "docids")
    lines = read_lines(file.path, notices)
    name = file.format_name
    if name is None and file.field is not None:
        name = "docids" if file.field.isdigit() else "jsonl"
    known: DocumentFormat
    if name is not None:
        known = DOCUMENT_FORMATS.named(name)()
    else:
        known, lines = _by_content(lines)
    if file.field is not None and not known.takes_field:
        raise UsageError(
            f"--docs-field {file.field}: the format {known.name} has no fields to choose from; "
            "leave it out"
        )
    choices = ReadingChoices(file.field, file.allow_interleaved, most)
    return known.read(lines, notices, source=source, choices=choices)


def documents_of_file(
    path: FilePath, notices: Notices, *, most: Callable[[], int] | None = None
) -> Documents:
    """The documents of a file in any of the formats; most: see `read_documents`."""
    return read_documents(path, notices, most=most).documents


def chosen_documents(
    docs: FilePath | None,
    no_docs: str | None,
    count_lines: Callable[[], int],
    notices: Notices,
    *,
    most: Callable[[], int] | None = None,
) -> Documents:
    """Documents as the options say, of which exactly one must be given (`UsageError`)."""
    if docs is not None and no_docs is None:
        return documents_of_file(docs, notices, most=most)
    if docs is None and no_docs == "each":
        return Documents.each(count_lines())
    if docs is None and no_docs == "one":
        return Documents.one(count_lines())
    raise UsageError(
        "expected one of --docs FILE (a document id per source line, or another format of "
        "`rerank list document-formats`), --no-docs each (every line a document) and --no-docs one "
        f"(all lines one document), found {'none' if docs is None else 'both'}; give one"
    )


def read_texts(path: FilePath, notices: Notices) -> EvaluationSet | None:
    """The content of a file with texts that are matched by name; None for a plain text or a pipe.

    Reads the first lines only if the file is a plain text. A pipe cannot be read twice, and is
    always a plain text. The last files that were read are kept, since a run may take one text after
    the other from a file.
    """
    if is_pipe(path):
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None  # whoever reads the text says why
    found, warnings = _texts(os.fspath(path), status.st_mtime_ns, status.st_size)
    known, source = {(one.kind, one.first) for one in notices}, display(path)
    for one in warnings:
        if (one.kind, one.first) not in known:
            line = one.first.removeprefix(f"{source}:")
            place = int(line) if line.isdigit() else None
            notices.add(one.kind, source=source, line=place, count=one.count)
    return found


@lru_cache(maxsize=4)
def _texts(path: str, modified: int, size: int) -> tuple[EvaluationSet | None, tuple[Notice, ...]]:
    """The content of a file of this state, and what there is to warn of."""
    notices = Notices()
    lines = read_lines(path, Notices())
    head, _ = _head_of(lines)
    if _named(head):
        for known in formats():
            if known.has_texts and known.detect(head):
                again = read_lines(path, notices)
                found = known.read(again, notices, source=display(path), choices=PLAIN)
                return found, tuple(notices)
    return None, ()


def formats() -> list[DocumentFormat]:
    """All formats, in the order in which they are asked whether a file is theirs.

    Those of other packages come first, since any lines may be document ids.
    """
    names = sorted(DOCUMENT_FORMATS, key=lambda name: name in DOCUMENT_FORMATS.builtin)
    return [DOCUMENT_FORMATS[name]() for name in names]


def bounded(lines: Iterable[bytes], source: str) -> Iterator[bytes]:
    """The lines of a file whose texts are kept; InputError beyond `MAX_BYTES`."""
    size = 0
    for line in lines:
        size += len(line) + 1
        if size > MAX_BYTES:
            raise InputError(
                f"expected a file of at most {MAX_BYTES:,} bytes, unpacked, found more; is this "
                "the right file?",
                source=source,
            )
        yield line


def one_line(text: bytes) -> bytes:
    """The text of a segment on one line: white space around line ends is layout; the rest stays."""
    parts = (part.strip(b" \t") for part in text.replace(b"\r", b"\n").split(b"\n"))
    return b" ".join(part for part in parts if part)


def sizes_of(found: Iterable[tuple[str, int]]) -> Documents:
    """Documents of (id, number of sentences), in order."""
    ids, starts = list[str](), [0]
    for name, size in found:
        ids.append(name)
        starts.append(starts[-1] + size)
    return Documents(tuple(ids), tuple(starts))


def _by_content(lines: Iterator[bytes]) -> tuple[DocumentFormat, Iterator[bytes]]:
    """The format of a file by its first lines, and all its lines."""
    head, rest = _head_of(lines)
    *others, last = formats()
    if any(line.strip() for line in head):
        last = next((known for known in others if known.detect(head)), last)
    return last, chain(head, rest)


def _head_of(lines: Iterator[bytes]) -> tuple[list[bytes], Iterator[bytes]]:
    """The first lines of a file, and the others."""
    head, size = list[bytes](), 0
    for line in lines:
        head.append(line)
        size += len(line) + 1
        if len(head) == _HEAD_LINES or size > _HEAD_BYTES:
            break
    return head, lines


def _named(head: Sequence[bytes]) -> bool:
    """Whether the first line that is not blank begins like XML, SGML or JSON."""
    first = next((line.strip() for line in head if line.strip()), b"")
    return first.startswith((b"<", b"{"))
