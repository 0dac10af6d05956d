"""Outputs of several systems for the same sentences, a document at a time.

Plain texts with a line per sentence are read as they are needed; texts of WMT XML and its like,
and texts with separators between documents, are held in memory by their readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.evaluation_set import Lines
from rerank.corpus.kbest import split_words
from rerank.corpus.translations import (
    Translation,
    documents_in,
    read_systems,
    read_texts_of,
)
from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display, file_and_name
from rerank.notices import Notices
from rerank.registry import ALL_SYSTEMS as ALL

PREFIX = "sys"  # of the names of indicator features
Named = tuple[str, FilePath]


@dataclass(frozen=True, slots=True)
class SystemOutputs:
    """Outputs of M systems for the sentences of documents.

    names: (M,) of the systems; texts: (M,) a file with a line per sentence, or the lines in memory.
    """

    documents: Documents
    names: tuple[str, ...]
    texts: tuple[FilePath | Translation, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names (M,) of the indicator features: `sys` and the letters and digits of the name.

        A label that an earlier system has gets a number: `sysA`, `sysA2`.
        """
        found: list[str] = []
        for name in self.names:
            stem = label = PREFIX + re.sub(r"[^0-9A-Za-z]", "", name)
            number = 1
            while label in found:
                number += 1
                label = f"{stem}{number}"
            found.append(label)
        return tuple(found)

    def read(self, notices: Notices) -> Iterator[list[list[bytes | None]]]:
        """The outputs of each document: [sentence][system], None for one that is missing.

        Blanks around words are those of a k-best list: one between words, none at the ends.
        """
        plain = [
            None if isinstance(one, Translation) else read_lines(one, notices) for one in self.texts
        ]
        for d in range(len(self.documents)):
            start, stop = self.documents.span(d)
            outputs: list[Lines] = []
            for text, lines in zip(self.texts, plain, strict=True):
                if isinstance(text, Translation):
                    outputs.append(text.lines[start:stop])
                else:
                    outputs.append(list(islice(lines or (), stop - start)))
            yield [list(map(_spaced, each)) for each in zip(*outputs, strict=True)]


def read_outputs(systems: Sequence[Named], documents: Documents, notices: Notices) -> SystemOutputs:
    """The outputs of systems: (NAME, file) or, for all systems of WMT XML, (`ALL`, file).

    Files are read several times; missing segments are counted. UsageError for two systems of one
    name, and for a single one; InputError for a text with another number of lines, or without any
    output for a document.
    """
    found: dict[str, FilePath | Translation] = {}
    for given, path in systems:
        for name, text in _texts(given, path, documents, notices):
            if name in found:
                raise UsageError(
                    f"--systems: two systems are named {name!r}; give one of them as "
                    "NAME=FILE with another name, or leave it out"
                )
            found[name] = text
            _check(text, documents, notices)
    if len(found) < 2:
        raise UsageError(
            f"--systems: expected two systems or more, found {', '.join(found)}; there is nothing "
            "to rerank"
        )
    return SystemOutputs(documents, tuple(found), tuple(found.values()))


def documents_of_systems(systems: Sequence[Named], notices: Notices) -> Documents | None:
    """The documents that the first of the files states that states any; None if none does."""
    for _, path in systems:
        found = documents_in(path, notices)
        if found is not None:
            return found
    return None


def count_sentences(systems: Sequence[Named]) -> int:
    """Number of lines of the first of the systems, where all are plain texts."""
    return sum(1 for _ in read_lines(systems[0][1], Notices()))


def _texts(
    given: str, path: FilePath, documents: Documents, notices: Notices
) -> Iterator[tuple[str, FilePath | Translation]]:
    """Name and text of each system that an option gives."""
    if given == ALL:
        yield from read_systems(path, documents, notices)[1].items()
        return
    if documents.lines is None and _is_plain(path) and _has_lines(path, documents.n_read):
        yield given, path
        return
    found = read_texts_of(path, documents, notices, model="the source", role="system")
    if len(found) > 1:
        names = ", ".join(text.name for text in found[:30])
        raise UsageError(
            f"--systems {given}={display(path)}: expected one system, found {len(found)}; give "
            f"{names}; or the file without a name, for all of them"
        )
    yield given, found[0]


def _is_plain(path: FilePath) -> bool:
    """Whether a file is a plain text, of which no text is chosen by name."""
    return file_and_name(path)[1] is None and documents_in(path, Notices()) is None


def _has_lines(path: FilePath, n_lines: int) -> bool:
    """Whether a plain text has so many lines."""
    return sum(1 for _ in read_lines(path, Notices())) == n_lines


def _check(text: FilePath | Translation, documents: Documents, notices: Notices) -> None:
    """Count missing segments; InputError for a system without any output for a document."""
    if not isinstance(text, Translation):
        return
    for name, lines in zip(documents.ids, documents.split(text.lines), strict=True):
        if lines and all(line is None for line in lines):
            raise InputError(
                f"expected outputs for all documents, found none for {shown_id(name)}; leave "
                "the system out, or give --docs without this document",
                source=text.name,
            )
    if count := sum(line is None for line in text.lines):
        kind = "segment without translation, for which the system has no candidate"
        notices.add(kind, source=text.name, count=count)


def _spaced(line: bytes | None) -> bytes | None:
    return None if line is None else b" ".join(split_words(line))
