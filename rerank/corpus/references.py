"""Reference translations: as many lines as the source, from one file or several.

And how the translations that are judged by them differ from them in more than words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal
from unicodedata import is_normalized

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.files.lines import display, read_lines
from rerank.notices import Notices

_PLACEHOLDERS = (b"NO TRANSLATION AVAILABLE", b"NO BEST TRANSLATION")  # of WMT and Moses' tools
_ESCAPE = re.compile(rb"&(?:amp|lt|gt|apos|quot|#124|#91|#93);")


def read_with_documents(
    docs: str | Path | None,
    no_docs: str | None,
    references: Sequence[str | Path],
    notices: Notices,
) -> tuple[Documents, list[list[bytes]]]:
    """Documents as the options say, and the references of their sentences.

    The file of document ids says how many sentences there are; without one, the first reference.
    """
    if docs is not None and no_docs is None:
        documents = Documents.from_file(docs, notices)
        n_lines = documents.n_lines
        return documents, read_references(references, n_lines, notices, model=display(docs))
    found = read_references(references, None, notices)
    return Documents.chosen(docs, no_docs, len(found), notices), found


def read_references(
    paths: Sequence[str | Path],
    n_lines: int | None,
    notices: Notices,
    *,
    model: str = "the source",
) -> list[list[bytes]]:
    """References of each of `n_lines` source sentences: [sentence][file], lines as they are.

    `n_lines`, the number of lines that `model` has, is that of the first file where it is None.
    `InputError` if a file has another number of lines.
    """
    if not paths:
        raise UsageError("expected a reference file, found none; name one or more")
    files: list[list[bytes]] = []
    for path in paths:
        source = display(path)
        lines = list(read_lines(path, notices))
        files.append(checked_references(lines, n_lines, notices, source=source, model=model))
        if n_lines is None:
            n_lines, model = len(lines), source
    return [list(sentence) for sentence in zip(*files, strict=True)]


def checked_references(
    lines: Iterable[bytes],
    n_lines: int | None,
    notices: Notices,
    *,
    source: str = "",
    model: str = "the source",
) -> list[bytes]:
    """The lines of a reference file, as many as `model` has, and what is odd counted."""
    references = list(lines)
    if n_lines is not None:
        check_length(references, n_lines, source=source, model=model)
    for n, reference in enumerate(references, 1):
        if not reference.strip():
            notices.add("blank reference", source=source, line=n)
        elif reference.strip() in _PLACEHOLDERS:
            notices.add("reference that only says there is no translation", source=source, line=n)
    return references


def check_length(
    lines: Sequence[bytes], n_lines: int, *, source: str, model: str = "the source"
) -> None:
    """InputError for a translation that has not `n_lines` lines, as `model` has."""
    surplus = len(lines) - n_lines
    if not surplus:
        return
    cure = f"line i must translate line i of {model}"
    if surplus > 0 and not any(line.strip() for line in lines[n_lines:]):
        some, them = ("lines", "them") if surplus > 1 else ("line", "it")
        cure = f"{surplus} blank {some} more at the end, remove {them}"
    raise InputError(
        f"expected {n_lines} lines as {model} has, found {len(lines)}; {cure}", source=source
    )


def note_escaping(
    hypotheses: Sequence[bytes],
    references: Iterable[bytes],
    notices: Notices,
    *,
    source: str = "",
    numbers: Sequence[int | None] | None = None,
) -> None:
    """Add a notice if of two samples only one has Moses' escapes, such as `&apos;`.

    `numbers`: those of the hypotheses' lines in their file `source`; 1, 2, … where it is None.
    """
    ours, theirs = _escapes(hypotheses), _escapes(references)
    kind = (
        "mixed escaping: {0} contain {2} and similar, {1} do not; "
        "unescape the {0} with Moses' deescape-special-chars.perl"
    )
    if ours and not theirs:
        first = next(iter(ours))
        notices.add(
            kind.format("hypotheses", "references", ours[first]),
            source=source,
            line=_number(first, numbers),
            count=len(ours),
        )
    if theirs and not ours:
        escape = next(iter(theirs.values()))
        notices.add(
            kind.format("references", "hypotheses", escape), source=source, count=len(theirs)
        )


def note_normalization(
    hypotheses: Sequence[bytes],
    references: Sequence[bytes],
    notices: Notices,
    *,
    source: str = "",
    numbers: Sequence[int | None] | None = None,
) -> None:
    """Add a notice if one sample decomposes characters (NFD) that the other composes (NFC).

    `numbers`: those of the hypotheses' lines in their file `source`; 1, 2, … where it is None.
    """
    kind = (
        "{0} that decompose characters (NFD), where the {1} compose them (NFC), so that equal "
        "words differ; convert the {0} with: uconv -x any-nfc"
    )
    ours, theirs = _not_in(hypotheses, "NFC"), _not_in(references, "NFC")
    if ours and not theirs and _not_in(references, "NFD"):
        notices.add(
            kind.format("hypotheses", "references"),
            source=source,
            line=_number(ours[0], numbers),
            count=len(ours),
        )
    if theirs and not ours and _not_in(hypotheses, "NFD"):
        notices.add(kind.format("references", "hypotheses"), source=source, count=len(theirs))


def note_identity(
    hypotheses: Sequence[bytes],
    references: Sequence[Sequence[bytes]],
    notices: Notices,
    *,
    source: str = "",
) -> None:
    """Add a notice if the hypotheses, one per sentence, are one of the reference files."""
    for r, lines in enumerate(zip(*references, strict=True), 1):
        if tuple(hypotheses) == lines:
            notices.add(f"hypotheses identical to reference {r}", source=source)


def _escapes(lines: Iterable[bytes]) -> dict[int, str]:
    """The first escape of each line that has one, by the place of the line, from 0."""
    found = enumerate(map(_ESCAPE.search, lines))
    return {place: escape[0].decode() for place, escape in found if escape}


def _not_in(lines: Iterable[bytes], form: Literal["NFC", "NFD"]) -> list[int]:
    """Places of the lines, from 0, that are not in a normal form of Unicode."""
    return [
        place
        for place, line in enumerate(lines)
        if not line.isascii() and not is_normalized(form, line.decode())
    ]


def _number(place: int, numbers: Sequence[int | None] | None) -> int | None:
    """Line number of a place in a sample."""
    return place + 1 if numbers is None else numbers[place]
