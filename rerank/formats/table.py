"""Reading of k-best lists whose format is recognised by their first lines.

A further format is a file with a `rerank.formats.format.KBestFormat`, a line in the table of
formats (`rerank.registry.FORMATS`) and a test; or, in another package, an entry point of the group
`rerank.formats`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from rerank.corpus.documents import Documents
from rerank.corpus.grouping import MAX_K, documents_of
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.lines import display, read_lines
from rerank.formats.format import KBestFormat, Survey
from rerank.formats.tokens import shown
from rerank.notices import Notices
from rerank.registry import FORMATS

_HEAD = 20  # lines that are not blank, from which a format is recognised


def formats() -> list[KBestFormat]:
    """All formats, in the order in which they are asked whether a file is theirs.

    Those of other packages come first, since the Moses reader accepts many dialects.
    """
    return [FORMATS[name]() for name in sorted(FORMATS, key=lambda name: name in FORMATS.builtin)]


def detect(lines: Iterator[bytes], *, source: str = "") -> tuple[KBestFormat, Iterator[bytes]]:
    """The format of a file by its first lines, and all its lines.

    `InputError` for a file that is in no known format, or has no line that is not blank.
    """
    head: list[bytes] = []
    places: list[int] = []  # of the lines that are not blank
    for line in lines:
        if line.strip():
            places.append(len(head))
        head.append(line)
        if len(places) == _HEAD:
            break
    if not places:
        raise InputError("expected a k-best list, found no hypotheses", source=source)
    tried = formats()
    for known in tried:
        if known.detect(head):
            return known, chain(head, lines)
    raise InputError(
        f"expected a k-best list, found {shown(head[places[0]])}; formats tried: "
        f"{', '.join(known.name for known in tried)}; `rerank list formats` shows a line of each",
        source=source,
        line=places[0] + 1,
    )


def format_of(path: str | Path) -> KBestFormat:
    """The format of the k-best list in a file."""
    return detect(read_lines(path, Notices()), source=display(path))[0]


def survey_of(path: str | Path, *, top: int | None = None) -> Survey:
    """Figures of the k-best list in a file, of the first `top` candidates of each sentence."""
    source = display(path)
    known, lines = detect(read_lines(path, Notices()), source=source)
    return known.survey(lines, source=source, top=top)


def read_documents(
    path: str | Path,
    documents: Documents,
    notices: Notices,
    *,
    top: int | None = None,
    diverse: bool = False,
    first_id: int = 0,
    clip_inf: float | None = None,
    max_k: int = MAX_K,
) -> Iterator[KBest]:
    """The k-best lists of each document, in the order of `documents`; see `documents_of`."""
    source = display(path)
    known, lines = detect(read_lines(path, notices), source=source)
    yield from documents_of(
        known.read(lines, notices, source=source, clip=clip_inf),
        documents,
        notices,
        source=source,
        top=top,
        diverse=diverse,
        first_id=first_id,
        max_k=max_k,
    )
