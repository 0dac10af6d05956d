"""Translations of whole documents, whose lines are no segments: `FILE,align=yes`, as of LLMs.

They are JSON lines with a text for each document, or another format whose segments have documents;
a folder with a file for each document, named by its id; or a plain text. A plain text has a
document between blank lines, or between lines of `=`, or on each line, if there are so many, or
those of its segments if it has a line for each segment; otherwise all of it is aligned with all
documents in order. Its words are parted into segments by
`rerank.corpus.edit_distance`. Memory: the texts of a file, and O(words) of the largest document.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from rerank.corpus.documents import Documents, shown_id
from rerank.errors import InputError, UsageError
from rerank.files.paths import FilePath, display, file_and_name
from rerank.formats.document_files import read_texts, text_lines
from rerank.formats.document_ids import BlankLines, EqualsLines
from rerank.notices import Notices


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

    texts, source = _texts(path, documents, notices), display(path)
    names = [f"{name}:{n}" for name, own in documents.ranges() for n in range(1, len(own) + 1)]
    if len(texts) < len(documents):
        references = [[*chain.from_iterable(references)]]
    first = 0
    for text, lines in zip(texts, references, strict=True):
        found = parted(text, [[one.decode() for one in own] for own in lines])
        for kind, numbers in (
            ("omitted-segment", found.omitted),
            ("merged-segment", found.merged),
            ("repeated-sentence", found.repeated),
        ):
            if numbers:
                notices.add(kind, source=source, names=[names[first + k] for k in numbers])
        first += len(lines)
        yield [segment.encode() for segment in found.segments]


def _texts(path: FilePath, documents: Documents, notices: Notices) -> list[str]:
    """The text of each document, or the whole text of all."""
    file, name = file_and_name(path)
    if os.path.isdir(file):
        return _in_folder(Path(file), documents, notices)
    found = read_texts(file, Notices())  # whose warnings are about segments
    if found is None:
        return _plain(path, documents, notices)
    (lines, *others) = found.text("system", name).values()
    if others:
        names = ", ".join(f"{display(file)}#{one}" for one in found.texts["system"])
        raise UsageError(
            f"{display(file)}: expected one system, found {1 + len(others)}; give {names}"
        )
    own = dict(zip(found.documents.ids, found.documents.split(lines), strict=True))
    for document in documents.ids:
        if not any(own.get(document, ())):
            raise _missing(document, display(path), "leave it out of --docs, or add its text")
    return [b"\n".join(line or b"" for line in own[one]).decode() for one in documents.ids]


def _in_folder(folder: Path, documents: Documents, notices: Notices) -> list[str]:
    """The texts of files with the ids of documents as names, with or without a suffix."""
    files: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        files |= {file.name.removesuffix(suffix): file for suffix in ("", *_endings(file))}
    for name in documents.ids:
        if name not in files:
            cure = f"name the files by the ids, as {display(folder / f'{name}.txt')}"
            raise _missing(name, display(folder), cure)
    return [b"\n".join(text_lines(files[one], notices, "system")).decode() for one in documents.ids]


def _endings(file: Path) -> list[str]:
    """The suffixes that a name ends in: `.txt.gz` and `.gz`."""
    return ["".join(file.suffixes[n:]) for n in range(len(file.suffixes))]


def _plain(path: FilePath, documents: Documents, notices: Notices) -> list[str]:
    """The texts of a plain text."""
    lines, n = [*text_lines(path, notices, "system")], len(documents)
    if n == 1:
        return [b"\n".join(lines).decode()]
    for separator in (BlankLines.separator, EqualsLines.separator):
        runs = groupby(lines, key=lambda line: separator.fullmatch(line) is None)
        parts = [[*own] for is_text, own in runs if is_text]
        if len(parts) == n:
            return [b"\n".join(own).decode() for own in parts]
    filled = [line for line in lines if line.strip()]
    if len(filled) == n:
        return [line.decode() for line in filled]
    if len(lines) == documents.n_file_lines:
        parts = [[*own] for own in documents.split(documents.in_order(lines))]
        return [b"\n".join(own).decode() for own in parts]
    notices.add("aligned-as-one", source=display(path))
    return [b"\n".join(lines).decode()]


def _missing(document: str, source: str, cure: str) -> InputError:
    return InputError(
        f"expected a text of each document, found none of {shown_id(document)}; {cure}",
        source=source,
    )
