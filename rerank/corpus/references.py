"""Reference translations, and checks that hypotheses and references are comparable.

A reference file has as many lines as the source. Hypotheses and references that differ in escaping
or Unicode normalisation get a notice.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice, permutations
from pathlib import Path
from typing import Literal
from unicodedata import is_normalized

from rerank.corpus.documents import Documents
from rerank.errors import InputError, UsageError
from rerank.files.lines import MAX_LINE_BYTES, SURPLUS, count_lines, is_pipe, read_lines
from rerank.files.paths import display
from rerank.notices import Notices

_PLACEHOLDERS = (b"NO TRANSLATION AVAILABLE", b"NO BEST TRANSLATION")  # of WMT and Moses' tools
_MEAN_BYTES = 1 << 16  # of a line, in the mean of a file; all lines are in memory
_UNESCAPE = "deescape-special-chars.perl"
_ESCAPE = re.compile(rb"&(?:amp|lt|gt|apos|quot|#124|#91|#93);")


def read_with_documents(
    docs: str | Path | None, no_docs: str | None, references: Sequence[str | Path], notices: Notices
) -> tuple[Documents, list[list[bytes]]]:
    """Documents according to the options, and the references of their sentences.

    The number of sentences is that of the document ids or, without them, of the first reference.
    """
    found = read_references(references, None, notices) if docs is None else []
    most = None
    if references and not is_pipe(references[0]):
        most = partial(count_lines, references[0])
    documents = Documents.chosen(docs, no_docs, lambda: len(found), notices, most=most)
    if docs is not None:
        found = read_references(references, documents.n_lines, notices, model=display(docs))
    return documents, found


def read_references(
    paths: Sequence[str | Path],
    n_lines: int | None,
    notices: Notices,
    *,
    model: str = "the source",
) -> list[list[bytes]]:
    """References of each of `n_lines` source sentences: [sentence][file].

    model: the file with `n_lines` lines, for messages; if `n_lines` is None, the first reference.
    InputError if a file has another number of lines.
    """
    if not paths:
        raise UsageError("expected a reference file, found none; name one or more")
    files: list[list[bytes]] = []
    for path in paths:
        source = display(path)
        lines = read_translation(path, n_lines, notices, model=model)
        if n_lines is None:
            n_lines, model = len(lines), source
        for n, line in enumerate(map(bytes.strip, lines), 1):
            if not line:
                notices.add("blank reference", source=source, line=n)
            elif line in _PLACEHOLDERS:
                kind = "reference that only says there is no translation"
                notices.add(kind, source=source, line=n)
        files.append(lines)
    _note_mixed_references(paths, files, notices)
    return [list(sentence) for sentence in zip(*files, strict=True)]


def read_translation(
    path: str | Path, n_lines: int | None, notices: Notices, *, model: str = "the source"
) -> list[bytes]:
    """Lines of a translation of `n_lines` source sentences, or of any number where that is None.

    InputError for another number of lines; of what is too much no more than a count is kept.
    """
    most = None if n_lines is None else MAX_LINE_BYTES + n_lines * _MEAN_BYTES
    reading = read_lines(path, notices, max_bytes=most)
    lines = list(islice(reading, n_lines))
    lines += [line.strip()[:1] for line in islice(reading, SURPLUS)]
    if n_lines is not None:
        check_length(lines, n_lines, source=display(path), model=model)
    return lines


def check_length(
    lines: Sequence[bytes], n_lines: int, *, source: str, model: str = "the source"
) -> None:
    """InputError unless a translation has `n_lines` lines, as `model` has."""
    surplus = len(lines) - n_lines
    if not surplus:
        return
    cure = f"line i must translate line i of {model}"
    if surplus > 0 and not any(line.strip() for line in lines[n_lines:]):
        some, them = ("lines", "them") if surplus > 1 else ("line", "it")
        cure = f"{surplus} blank {some} more at the end, remove {them}"
    more = " or more" if surplus == SURPLUS else ""
    raise InputError(
        f"expected {n_lines} lines as {model} has, found {len(lines)}{more}; {cure}", source=source
    )


def note_differences(
    hypotheses: Sequence[bytes],
    references: Sequence[bytes],
    notices: Notices,
    *,
    source: str = "",
    numbers: Sequence[int | None] | None = None,
) -> None:
    """Add a notice where only one side has Moses' escapes (`&apos;`), or is in Unicode form NFD.

    Where both sides have escapes, also for those of which the other side has the character alone.
    numbers: line numbers of the hypotheses in their file `source` [default: 1, 2, …].
    """
    both = {"hypotheses": hypotheses, "references": references}
    for (side, lines), (other, others) in permutations(both.items()):
        escapes, decomposed = _unshared(_escapes(lines), others), _not_in(lines, "NFC")
        kinds = dict[str, list[int]]()
        if escapes:
            kind = (
                f"mixed escaping: {side} contain {next(iter(escapes.values()))} and similar, "
                f"{other} do not; unescape the {side} with Moses' {_UNESCAPE}"
            )
            kinds[kind] = list(escapes)
        if decomposed and not _not_in(others, "NFC") and _not_in(others, "NFD"):
            kind = (
                f"{side} in Unicode form NFD, {other} in NFC: equal words differ; "
                f"convert the {side} with: uconv -x any-nfc"
            )
            kinds[kind] = decomposed
        for kind, (first, *rest) in kinds.items():
            line = None
            if side == "hypotheses":
                line = first + 1 if numbers is None else numbers[first]
            notices.add(kind, source=source, line=line, count=1 + len(rest))


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
    paths: Sequence[str | Path], files: Sequence[Sequence[bytes]], notices: Notices
) -> None:
    """Add a notice for each reference file with Moses' escapes, if another one has none."""
    escapes = [_escapes(lines) for lines in files]
    if all(escapes):
        return
    for path, found in zip(paths, escapes, strict=True):
        if found:
            (first, (escape, *_)), *rest = found.items()
            notices.add(
                f"mixed escaping: this reference contains {escape} and similar, another one does "
                f"not; unescape it with Moses' {_UNESCAPE}",
                source=display(path),
                line=first + 1,
                count=1 + len(rest),
            )


def _escapes(lines: Iterable[bytes]) -> dict[int, list[str]]:
    """The escapes of each line that has one, by index of the line."""
    found = enumerate(map(_ESCAPE.findall, lines))
    return {place: [one.decode() for one in escapes] for place, escapes in found if escapes}


def _unshared(escapes: Mapping[int, list[str]], others: Sequence[bytes]) -> dict[int, str]:
    """The first escape of each line that other lines do not have, by index of the line.

    If the others have escapes of some characters, only those count whose character stands there
    unescaped.
    """
    shared = {escape for line in _escapes(others).values() for escape in line}
    own = {escape for line in escapes.values() for escape in line} - shared
    if shared:
        own = {escape for escape in own if any(map(_bare(escape).search, others))}
    firsts = ((n, next((one for one in line if one in own), "")) for n, line in escapes.items())
    return {n: first for n, first in firsts if first}


def _bare(escape: str) -> re.Pattern[bytes]:
    """A pattern of the character of an escape, as it stands in text without escapes."""
    character = re.escape(html.unescape(escape).encode())
    return re.compile(character + (rb"(?![a-z#0-9]+;)" if escape == "&amp;" else b""))


def _not_in(lines: Iterable[bytes], form: Literal["NFC", "NFD"]) -> list[int]:
    """Indices of the lines that are not in a normal form of Unicode."""
    return [
        place
        for place, line in enumerate(lines)
        if not line.isascii() and not is_normalized(form, line.decode())
    ]
