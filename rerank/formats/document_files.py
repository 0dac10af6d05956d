"""Formats of document files: what each states, how one is recognised, and reading in any of them.

A new format is a `DocumentFormat`, a line in `rerank.registry.DOCUMENT_FORMATS` and a test; or, in
another package, an entry point of the group `rerank.document_formats`. Test sets that sacrebleu has
in its cache, `sacrebleu:wmt23/ru-en`, stand for their files; nothing is downloaded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Literal, Protocol

from rerank.corpus.documents import DocumentFile, Documents, EvaluationSet, Role
from rerank.errors import UsageError
from rerank.files.lines import is_pipe, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import chunks
from rerank.notices import Notice, Notices
from rerank.registry import DOCUMENT_FORMATS

_HEAD_LINES = 2000  # from which a format is recognised
_HEAD_BYTES = 1 << 20
MAX_BYTES = 128 << 20  # of a file whose texts are kept, unpacked
PREFIX = "sacrebleu:"
_NAME = re.compile(rf"{PREFIX}(?P<set>.+)/(?P<pair>[A-Za-z-]+)")


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
    """The documents of a file in any of the formats.

    most: number of sentences that can be needed, which is asked for if there are many;
    InputError for more, before they are read.
    """
    file = path if isinstance(path, DocumentFile) else DocumentFile(path)
    source = display(path)
    if source.startswith(PREFIX):
        file = DocumentFile(cached_files(source, "documents")[0], "docids")
    lines = read_lines(file.path, notices)
    name = file.format_name
    if name is None and file.field is not None:
        name = "docids" if file.field.isdigit() else "jsonl"
    if name is not None:
        known: DocumentFormat = DOCUMENT_FORMATS.named(name)()
    else:
        head = _head_of(lines)
        lines = chain(head, lines)
        *others, known = formats()
        if any(line.strip() for line in head):
            known = next((one for one in others if one.detect(head)), known)
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
            notices.add(one.kind, source=source, line=place, count=one.count, asked=one.asked)
    return found


@lru_cache(maxsize=4)
def _texts(path: str, modified: int, size: int) -> tuple[EvaluationSet | None, tuple[Notice, ...]]:
    """The content of a file of this state, and what there is to warn of."""
    notices = Notices()
    head = _head_of(read_lines(path, Notices()))
    first = next((line.strip() for line in head if line.strip()), b"")
    if first.startswith((b"<", b"{")):  # as XML, SGML and JSON begin
        for known in formats():
            if known.has_texts and known.detect(head):
                again = read_lines(path, notices)
                choices = DocumentFile(path)
                found = known.read(again, notices, source=display(path), choices=choices)
                return found, tuple(notices)
    return None, ()


def formats() -> list[DocumentFormat]:
    """All formats, in the order in which they are asked whether a file is theirs.

    Those of other packages come first, since any lines may be document ids.
    """
    names = sorted(DOCUMENT_FORMATS, key=lambda name: name in DOCUMENT_FORMATS.builtin)
    return [DOCUMENT_FORMATS[name]() for name in names]


def _head_of(lines: Iterator[bytes]) -> list[bytes]:
    """The first lines of a file."""
    return next(chunks(islice(lines, _HEAD_LINES), _HEAD_BYTES), [])


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
    paths = {one.removeprefix(start): os.path.join(folder, one) for one in names}
    files = {
        field: path
        for field, path in paths.items()
        if path == pattern + field and os.path.isfile(path) and os.path.getsize(path)
    }
    field = {"source": "src", "reference": "ref", "documents": "docid"}[role]
    if role == "reference":
        found = {field: path for field, path in files.items() if re.match("ref(-|$)", field)}
        if translator is not None and f"ref-{translator}" not in found:
            there = ", ".join(field.removeprefix("ref-") for field in found) or "none"
            raise UsageError(f"{name}: no reference {translator!r}; there are: {there}")
        if found:
            return list(found.values()) if translator is None else [found[f"ref-{translator}"]]
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

    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(f"expected {PREFIX}TESTSET/PAIR, as {PREFIX}wmt23/ru-en, found {name!r}")
    if found["set"] not in DATASETS:
        near = difflib.get_close_matches(found["set"], DATASETS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"{name}: sacrebleu has no test set {found['set']!r}; {hint}there are "
            f"{len(DATASETS)}, which sacrebleu lists"
        )
    dataset: Any = DATASETS[found["set"]]
    if found["pair"] not in dataset.langpairs:
        raise UsageError(
            f"{name}: the test set has no language pair {found['pair']!r}; it has "
            f"{', '.join(sorted(dataset.langpairs))}"
        )
    return found["set"], found["pair"], dataset._get_txt_file_path(found["pair"], "")
