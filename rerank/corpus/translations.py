"""Texts of the sentences of a run: sources, references and system outputs, in files of any format.

A file is a plain text, a line per sentence; a text whose documents are parted by blank lines or by
`=`; or NIST SGML, WMT XML or JSON lines, whose segments are matched with the documents by name.
`FILE#NAME` chooses one of several texts; `sacrebleu:wmt23/ru-en` is a test set that sacrebleu has
in its cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from rerank.corpus.documents import Documents
from rerank.corpus.evaluation_set import EvaluationSet, Lines, Role, aligned, shown_name
from rerank.errors import InputError, UsageError
from rerank.files.lines import MAX_LINE_BYTES, SURPLUS, read_lines
from rerank.files.paths import FilePath, display, file_and_name
from rerank.notices import Notices

MEAN_BYTES = 1 << 16  # of a line, in the mean of a file; all lines are in memory
_SACREBLEU = "sacrebleu:"


@dataclass(frozen=True, slots=True)
class Translation:
    """A text of a file: its name in messages, and its lines; None for a missing segment."""

    name: str
    lines: Lines


def read_translation(
    path: FilePath,
    target: Documents | int | None,
    notices: Notices,
    *,
    model: str = "the source",
    role: Role = "system",
) -> list[bytes]:
    """Lines of a translation of documents, of so many sentences, or of any number if None.

    role: of the text to take from a file that has several. A segment that such a file lacks is an
    empty line, with a notice. InputError for another number of lines; of what is too much no more
    than a count is kept.
    """
    found = read_texts_of(path, target, notices, model=model, role=role)
    if len(found) > 1:
        names = ", ".join(text.name for text in found[:30])
        raise UsageError(f"{display(path)}: expected one {role}, found {len(found)}; give {names}")
    return _filled(found[0], notices)


def read_texts_of(
    path: FilePath,
    target: Documents | int | None,
    notices: Notices,
    *,
    model: str = "the source",
    role: Role,
) -> list[Translation]:
    """All texts of this role in a file, or the one that `FILE#NAME` chooses.

    target: see `read_translation`. O(size of the file).
    """
    file, name = file_and_name(path)
    if str(file).startswith(_SACREBLEU):
        plain = _cached(str(file), name, role)
        return [_plain(one, target, notices, model=model) for one in plain]
    found = _evaluation_set(file, notices)
    if found is None:
        if name is not None:
            next(read_lines(file, Notices()), None)  # the fault of a file that cannot be read
            raise UsageError(
                f"{display(path)}: #{name} chooses a text of WMT XML, NIST SGML or JSON lines, but "
                f"{display(file)} is a plain text; leave it out"
            )
        return [_plain(path, target, notices, model=model)]
    texts = found.text(role, name)
    several = len(texts) > 1 or name is not None
    return [
        Translation(
            f"{display(file)}#{shown_name(one).strip(chr(39))}" if several else display(file),
            _fitted(lines, found, target, model),
        )
        for one, lines in texts.items()
    ]


def read_systems(
    path: FilePath, documents: Documents | None, notices: Notices
) -> tuple[Documents, dict[str, Translation]]:
    """Documents, and the text of each system by name, of WMT XML or another file of systems.

    documents: with which the segments are matched [default: those of the file]. A segment that a
    system lacks is None. InputError for a file without systems.
    """
    file, name = file_and_name(path)
    found = _evaluation_set(file, notices)
    if found is None:
        next(read_lines(file, Notices()), None)  # the fault of a file that cannot be read
        raise InputError(
            "expected outputs of systems in WMT XML or NIST SGML, found a plain text; give "
            "NAME=FILE for each system",
            source=display(file),
        )
    target = found.documents if documents is None else documents
    return target, {
        one: Translation(f"{display(file)}#{one}", aligned(lines, found, target))
        for one, lines in found.text("system", name).items()
    }


def files_of(paths: Iterable[FilePath], role: Role | Literal["documents"]) -> list[FilePath]:
    """The files that are read of paths, of which `FILE#NAME` and test sets are not files."""
    found: list[FilePath] = []
    for path in paths:
        file, name = file_and_name(path)
        if not str(file).startswith(_SACREBLEU):
            found.append(file)
        elif role == "documents":
            from rerank.formats.documents.sacrebleu_sets import cached_docids

            found.append(cached_docids(str(file)))
        else:
            found += _cached(str(file), name, role)
    return found


def documents_in(path: FilePath, notices: Notices) -> Documents | None:
    """The documents that the file of a text states, as WMT XML does; None for a plain text."""
    file, _ = file_and_name(path)
    if str(file).startswith(_SACREBLEU):
        return None
    found = _evaluation_set(file, notices)
    return None if found is None else found.documents


def check_length(
    lines: Sequence[object],
    n_lines: int,
    *,
    source: str,
    model: str = "the source",
    cure: str = "",
) -> None:
    """InputError unless a translation has `n_lines` lines, as `model` has.

    cure: what to do about another number [default: line i must translate line i].
    """
    surplus = len(lines) - n_lines
    if not surplus:
        return
    cure = cure or f"line i must translate line i of {model}"
    if surplus > 0 and not any(isinstance(x, bytes) and x.strip() for x in lines[n_lines:]):
        some, them = ("lines", "them") if surplus > 1 else ("line", "it")
        cure = f"{surplus} blank {some} more at the end, remove {them}"
    more = " or more" if surplus >= SURPLUS else ""
    raise InputError(
        f"expected {n_lines} lines as {model} has, found {len(lines)}{more}; {cure}", source=source
    )


def _plain(
    path: FilePath, target: Documents | int | None, notices: Notices, *, model: str
) -> Translation:
    """A plain text; one whose documents are parted as those of the target has its separators cut.

    It may have a separator for each document, and some more lines are counted.
    """
    documents = target if isinstance(target, Documents) else None
    n_lines = target.n_read if isinstance(target, Documents) else target
    most = None if n_lines is None else MAX_LINE_BYTES + n_lines * MEAN_BYTES
    reading = read_lines(path, notices, max_bytes=most)
    allowed = n_lines if documents is None else documents.n_read + len(documents)
    lines = list(islice(reading, allowed))
    more = 0 if n_lines is None else n_lines + SURPLUS - len(lines)
    lines += [line.strip()[:1] for line in islice(reading, max(0, more))]
    if documents is None:
        if n_lines is not None:
            check_length(lines, n_lines, source=display(path), model=model)
        return Translation(display(path), lines)
    if len(lines) > documents.n_read and documents.lines is None:
        from rerank.formats.documents.separated_text import without_separators

        lines = without_separators(lines, documents) or lines
    check_length(lines, documents.n_read, source=display(path), model=model, cure=documents.cure)
    return Translation(display(path), documents.in_order(lines))


def _fitted(
    lines: Lines, found: EvaluationSet, target: Documents | int | None, model: str
) -> Lines:
    """The lines of a text for the sentences of a target."""
    if isinstance(target, Documents):
        return aligned(lines, found, target)
    if target is not None:
        check_length(lines, target, source=found.file, model=model)
    return lines


def _filled(text: Translation, notices: Notices) -> list[bytes]:
    """The lines, with empty ones for missing segments."""
    missing = sum(line is None for line in text.lines)
    if missing and missing == len(text.lines):
        raise InputError(
            "expected segments of these documents, found none; is it the file of another test set?",
            source=text.name,
        )
    if missing:
        kind = "segment without translation, read as an empty one"
        notices.add(kind, source=text.name, count=missing)
    return [line or b"" for line in text.lines]


def _evaluation_set(file: FilePath, notices: Notices) -> EvaluationSet | None:
    from rerank.formats.documents.table import read_texts

    return read_texts(file, notices)


def _cached(name: str, text: str | None, role: Role) -> list[str]:
    """Files of a test set of sacrebleu."""
    from rerank.formats.documents import sacrebleu_sets

    if role == "reference":
        return sacrebleu_sets.cached_references(name, text)
    if role == "source":
        return [sacrebleu_sets.cached_source(name)]
    raise UsageError(f"{name}: expected a translation, found a test set; give a file")
