"""Formats of document files: what each states, how one is recognised, and reading in any of them.

A new format is a `DocumentFormat`, a line in `rerank.registry.DOCUMENT_FORMATS` and a test; or, in
another package, an entry point of the group `rerank.document_formats`. Test sets that sacrebleu has
in its cache, `sacrebleu:wmt23/ru-en`, stand for their files; nothing is downloaded.

Translations of whole documents, whose lines are no segments (`FILE,align=yes`, as of LLMs), are
JSON lines with a text for each document, or another format whose segments have documents; a folder
with a file for each document, named by its id; or a plain text. A plain text has a document between
blank lines, or between lines of `=`, or on each line, if there are so many, or those of its
segments if it has a line for each segment; otherwise all of it is aligned with all documents in
order. Its words are parted into segments by `rerank.corpus.edit_distance`. Memory: the texts of a
file, and O(words) of the largest document.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, Protocol

from rerank.corpus.documents import DocumentFile, Documents, EvaluationSet, Role, shown_id
from rerank.errors import InputError, UsageError
from rerank.files.lines import is_pipe, read_lines
from rerank.files.paths import FilePath, display, file_and_name
from rerank.formats.document_ids import BlankLines, EqualsLines
from rerank.formats.plain_texts import head_of, structure, text_lines
from rerank.formats.review_tables import ReviewTable, is_workbook, read_workbook
from rerank.formats.tokens import Place, first_line
from rerank.notices import Notice, Notices
from rerank.registry import DOCUMENT_FORMATS

PREFIX = "sacrebleu:"
_NAME = re.compile(rf"{PREFIX}(.+)/([A-Za-z-]+)")


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
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: DocumentFile
    ) -> EvaluationSet:
        """The documents of a file, and its texts; `InputError` where it is not valid."""
        ...


def documents_of_file(
    path: FilePath, notices: Notices, *, most: Callable[[], int] | None = None
) -> Documents:
    """The documents of a file in any of the formats, or of a workbook of `decode --table`.

    most: number of sentences that can be needed, which is asked for if there are many;
    InputError for more, before they are read.
    """
    file = path if isinstance(path, DocumentFile) else DocumentFile(path)
    source = display(path)
    if source.startswith(PREFIX):
        file = DocumentFile(cached_files(source, "documents")[0], "docids")
    if is_workbook(file.path):
        return read_workbook(file.path, notices).documents
    lines = read_lines(file.path, notices)
    name = file.format_name
    if name is None and file.field is not None:
        name = "docids" if file.field.isdigit() else "jsonl"
    if name is not None:
        known: DocumentFormat = DOCUMENT_FORMATS.named(name)()
    else:
        head = head_of(lines)
        lines = chain(head, lines)
        *others, known = formats()
        if any(line.strip() for line in head):
            known = next((other for other in others if other.detect(head)), known)
        if known.name == "docids" and (other := structure(head)):
            raise Place(source, notices).fault(
                f"expected a document id on each line, found {other}; of JSON lines name the "
                "key of the id with --docs-field KEY, of other files write the ids, a line each"
            )
    if file.field is not None and not known.takes_field:
        raise UsageError(
            f"--docs-field {file.field}: the format {known.name} has no fields to choose from; "
            "leave it out"
        )
    return known.read(lines, notices, source=source, choices=replace(file, most=most)).documents


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
        "expected one of --docs FILE (a document id per source line, JSON lines of lists, or "
        "another format of `rerank list document-formats`), --no-docs each (every line a document) "
        "and --no-docs one (all lines one document), found "
        f"{'none' if docs is None else 'both'}; give one"
    )


def read_texts(path: FilePath, notices: Notices) -> EvaluationSet | None:
    """The content of a file with texts that are matched by name; None for a plain text or a pipe.

    Reads the first lines only if the file is a plain text. A pipe cannot be read twice, and is
    always a plain text, as those of a test set are. The last files that were read are kept, since a
    run may take one text after the other from a file.
    """
    if is_pipe(path) or str(path).startswith(PREFIX):
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None  # whoever reads the text says why
    texts, warnings = _texts(os.fspath(path), status.st_mtime_ns, status.st_size)
    known = {(notice.sentence, notice.first) for notice in notices}
    for new in warnings:
        if (new.sentence, new.first) not in known:
            notices.take(new)
    return texts


@lru_cache(maxsize=4)
def _texts(path: str, modified: int, size: int) -> tuple[EvaluationSet | None, tuple[Notice, ...]]:
    """The content of a file of this state, and what there is to warn of."""
    notices = Notices()
    if is_workbook(path):
        return read_workbook(path, notices), tuple(notices)
    head = head_of(read_lines(path, Notices()))
    # XML, SGML and JSON begin so
    if first_line(head).startswith((b"<", b"{")) or ReviewTable().detect(head):
        for known in formats():
            if known.has_texts and known.detect(head):
                again = read_lines(path, notices)
                choices = DocumentFile(path)
                texts = known.read(again, notices, source=display(path), choices=choices)
                return texts, tuple(notices)
    return None, ()


def formats() -> list[DocumentFormat]:
    """All formats, in the order in which they are asked whether a file is theirs.

    Those of other packages come first, since any lines may be document ids.
    """
    names = sorted(DOCUMENT_FORMATS, key=lambda name: name in DOCUMENT_FORMATS.builtin)
    return [DOCUMENT_FORMATS[name]() for name in names]


# Test sets of sacrebleu


def cached_files(
    name: str, role: Role | Literal["documents"], translator: str | None = None
) -> list[str]:
    """Files of a test set and language pair, `sacrebleu:wmt23/ru-en`, in the cache of sacrebleu.

    Of the references all, or the one of a translator. UsageError for an unknown set, and for one
    that is not in the cache or has no such file. The list of the fields that sacrebleu gives needs
    the test set, which it would download.
    """
    if role == "system":
        raise UsageError(f"{name}: expected a translation, found a test set; give a file")
    test_set, pair, pattern = _cached(name)
    folder, start = os.path.split(pattern)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = {n.removeprefix(start): os.path.join(folder, n) for n in names if n.startswith(start)}
    files = {f: path for f, path in paths.items() if os.path.isfile(path) and os.path.getsize(path)}
    field = {"source": "src", "reference": "ref", "documents": "docid"}[role]
    if role == "reference":
        references = {f: path for f, path in files.items() if re.match("ref(-|$)", f)}
        if translator is not None and f"ref-{translator}" not in references:
            there = ", ".join(f.removeprefix("ref-") for f in references) or "none"
            raise UsageError(f"{name}: no reference {translator!r}; there are: {there}")
        if references:
            chosen = references if translator is None else [f"ref-{translator}"]
            return [references[field] for field in chosen]
    if role == "documents" and files and field not in files:
        raise UsageError(f"{name}: the test set has no document ids; give --docs or --no-docs")
    if field not in files:
        raise UsageError(
            f"{name}: not in the cache of sacrebleu ({folder}); fetch it with: sacrebleu -t "
            f"{test_set} -l {pair} < /dev/null"
        )
    return [files[field]]


def _cached(name: str) -> tuple[str, str, str]:
    """The test set, the language pair, and how the paths of its files in the cache begin."""
    import difflib

    from sacrebleu.dataset import DATASETS

    parts = _NAME.fullmatch(name)
    if parts is None:
        raise UsageError(f"expected {PREFIX}TESTSET/PAIR, as {PREFIX}wmt23/ru-en, found {name!r}")
    test_set, pair = parts.groups()
    if test_set not in DATASETS:
        near = difflib.get_close_matches(test_set, DATASETS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{name}: sacrebleu has no test set {test_set!r}; {hint}there are "
            f"{len(DATASETS)}, which sacrebleu lists"
        )
    dataset: Any = DATASETS[test_set]
    if pair not in dataset.langpairs:
        raise UsageError(
            f"{name}: the test set has no language pair {pair!r}; it has "
            f"{', '.join(sorted(dataset.langpairs))}"
        )
    return test_set, pair, dataset._get_txt_file_path(pair, "")


# Texts of whole documents


@dataclass(frozen=True, slots=True)
class UnsegmentedText(os.PathLike[str]):
    """Path of a file, or of a folder, with texts of whole documents."""

    path: FilePath

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)


def segments_of(
    path: FilePath,
    documents: Documents,
    references: Iterable[Sequence[Sequence[bytes]]],
    notices: Notices,
) -> Iterator[list[bytes]]:
    """The segments of each document, or of all together, of a text aligned with references.

    references: [segment][reference] of each document. Segments that stay empty, and sentences that
    come again, are named in notices. InputError for a document without a text.
    """
    from rerank.corpus.edit_distance import parted  # numba

    texts, source = _whole_texts(path, documents, notices), display(path)
    names = [f"{name}:{n}" for name, lines in documents.ranges() for n in range(1, len(lines) + 1)]
    if len(texts) < len(documents):
        references = [[*chain.from_iterable(references)]]
    first = 0
    for text, lines in zip(texts, references, strict=True):
        parts = parted(text, [list(map(bytes.decode, segment)) for segment in lines])
        for kind, numbers in (
            ("omitted-segment", parts.omitted),
            ("merged-segment", parts.merged),
            ("repeated-sentence", parts.repeated),
        ):
            if numbers:
                notices.add(kind, source=source, names=[names[first + k] for k in numbers])
        first += len(lines)
        yield [segment.encode() for segment in parts.segments]


def _whole_texts(path: FilePath, documents: Documents, notices: Notices) -> list[str]:
    """The text of each document, or the whole text of all."""
    file, name = file_and_name(path)
    if os.path.isdir(file):
        folder, files = Path(file), dict[str, Path]()  # by their names, with or without suffixes
        for entry in sorted(folder.iterdir()):  # `.txt.gz` and `.gz` are suffixes of a name
            endings = ("".join(entry.suffixes[n:]) for n in range(len(entry.suffixes) + 1))
            files |= {entry.name.removesuffix(ending): entry for ending in endings}
        for document in documents.ids:
            if document not in files:
                cure = f"name the files by the ids, as {display(folder / f'{document}.txt')}"
                raise _missing(document, display(folder), cure)
        return [_joined(text_lines(files[d], notices, "system")) for d in documents.ids]
    texts = read_texts(file, Notices())  # whose warnings are about segments
    if texts is None:
        return _plain(path, documents, notices)
    (lines, *others) = texts.text("system", name).values()
    if others:
        names = ", ".join(f"{display(file)}#{system}" for system in texts.texts["system"])
        raise UsageError(
            f"{display(file)}: expected one system, found {1 + len(others)}; give {names}"
        )
    by_id = dict(zip(texts.documents.ids, texts.documents.split(lines), strict=True))
    for document in documents.ids:
        if not any(by_id.get(document, ())):
            raise _missing(document, display(path), "leave it out of --docs, or add its text")
    return [_joined(line or b"" for line in by_id[document]) for document in documents.ids]


def _plain(path: FilePath, documents: Documents, notices: Notices) -> list[str]:
    """The texts of a plain text."""
    lines, n = [*text_lines(path, notices, "system")], len(documents)
    if n == 1:
        return [_joined(lines)]
    for separator in (BlankLines.separator, EqualsLines.separator):
        runs = groupby(lines, key=lambda line: separator.fullmatch(line) is None)
        parts = [_joined(part) for is_text, part in runs if is_text]
        if len(parts) == n:
            return parts
    filled = [line for line in lines if line.strip()]
    if len(filled) == n:
        return [line.decode() for line in filled]
    if len(lines) == documents.n_file_lines:
        return [_joined(part) for part in documents.split(documents.in_order(lines))]
    notices.add("aligned-as-one", source=display(path))
    return [_joined(lines)]


def _joined(lines: Iterable[bytes]) -> str:
    return b"\n".join(lines).decode()


def _missing(document: str, source: str, cure: str) -> InputError:
    return InputError(
        f"expected a text of each document, found none of {shown_id(document)}; {cure}",
        source=source,
    )
