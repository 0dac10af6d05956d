"""Outputs with lines for each sentence, in the order of the source, whatever that of documents.

Documents whose lines stand apart (`--allow-interleaved`) are searched one after the other, and
their lines wait in a temporary file until all are known.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, TypeAlias

from rerank.corpus.documents import Documents

LineWriter: TypeAlias = Callable[[Iterable[tuple[int, bytes]]], None]
"""Takes (sentence, line): sentences count from 0 through all documents, lines have no end."""


@contextmanager
def in_source_order(file: BinaryIO, documents: Documents) -> Iterator[LineWriter]:
    """A writer of lines to a file, which has all of them when the block ends without an error.

    Lines of one sentence stay in the order in which they are written. Memory: for interleaved
    documents three numbers a line, otherwise nothing.
    """
    if not documents.interleaved:
        yield lambda lines: file.writelines(line + b"\n" for _, line in lines)
        return
    places: list[tuple[int, int, int]] = []  # line of the source, begin and size in the scratch
    with tempfile.TemporaryFile(prefix="rerank-") as scratch:

        def write(lines: Iterable[tuple[int, bytes]]) -> None:
            for sentence, line in lines:
                places.append((documents.line(sentence), scratch.tell(), len(line) + 1))
                scratch.write(line + b"\n")

        yield write
        for _, begin, size in sorted(places):
            scratch.seek(begin)
            file.write(scratch.read(size))
