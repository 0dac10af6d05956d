"""Texts of the sentences of a run: sources, references, system outputs; and side information.

A file is a plain text, a line per sentence; a text whose documents are parted by blank lines or by
`=`; or NIST SGML, WMT XML or JSON lines, whose segments are matched with the documents by name.
`FILE#NAME` chooses one of several texts; `sacrebleu:wmt23/ru-en` is a test set that sacrebleu has
in its cache. Side information is a file with a line for each source line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice, pairwise
from pathlib import Path
from typing import Literal

from rerank.corpus.alignment import note_alignment
from rerank.corpus.documents import (
    Documents,
    Lines,
    Role,
    aligned,
    difference_of,
    shown_id,
    shown_name,
)
from rerank.corpus.preparation import note_preparation
from rerank.corpus.spelling import Spelling, note_spelling
from rerank.corpus.text_profile import profile_of
from rerank.errors import InputError, UsageError
from rerank.files.lines import MAX_LINE_BYTES, SURPLUS, count_lines, is_pipe, read_lines
from rerank.files.paths import FilePath, display, file_and_name, file_of
from rerank.formats.document_files import PREFIX, cached_files, chosen_documents, read_texts
from rerank.formats.document_ids import without_separators
from rerank.formats.plain_texts import text_lines
from rerank.notices import Notices
from rerank.registry import SIDE_INFORMATION

Files = Mapping[str, str | Path]
SOURCE = "source"  # the kind of side information that are the source lines
_OTHER_SET = "is it the file of another test set?"
MEAN_BYTES = 1 << 16  # of a line, in the mean of a file; all lines are in memory
_PLACEHOLDERS = (  # of WMT and Moses' tools; of pandas, Python and JSON
    *(b"NO TRANSLATION AVAILABLE", b"NO BEST TRANSLATION", b"nan", b"NaN", b"None", b"null"),
)
_WITHOUT_TEXT = {b"": "blank-reference", **dict.fromkeys(_PLACEHOLDERS, "placeholder-reference")}
_BLANK, _FEWEST_BLANK = 0.05, 10  # share and number of blank lines that are no translations
_SPARSEST = 1000  # sentences of documents for one with a reference, which are not believed


@dataclass(frozen=True, slots=True)
class Translation:
    """A text of a file: its name in messages, and its lines; None for a missing segment.

    truncated: lines that the file calls cut off
    """

    name: str
    lines: Lines
    truncated: frozenset[bytes] = frozenset()


def read_translation(
    path: FilePath,
    target: Documents | int | None,
    notices: Notices,
    *,
    model: str = "the document set",
    role: Role = "system",
    cure: str = "",
) -> list[bytes]:
    """Lines of a translation of documents, of so many sentences, or of any number if None.

    role: of the text to take from a file that has several; cure: what else may be done about
    another number of lines. A segment that such a file lacks is an empty line, with a notice.
    InputError for another number of lines; of what is too much no more than a count is kept.
    """
    text, *others = texts = read_texts_of(path, target, notices, model=model, role=role, cure=cure)
    if others:
        names = ", ".join(text.name for text in texts[:30])
        raise UsageError(f"{display(path)}: expected one {role}, found {len(texts)}; give {names}")
    if missing := sum(line is None for line in text.lines):
        if missing == len(text.lines):
            what = "segments of these documents, found none"
            raise InputError(f"expected {what}; {_OTHER_SET}", source=text.name)
        notices.add("segment-without-translation", source=text.name, count=missing)
    return [line or b"" for line in text.lines]


def read_texts_of(
    path: FilePath,
    target: Documents | int | None,
    notices: Notices,
    *,
    model: str = "the document set",
    role: Role,
    cure: str = "",
) -> list[Translation]:
    """All texts of this role in a file, or the one that `FILE#NAME` chooses.

    target, cure: see `read_translation`. O(size of the file).
    """
    file, name = file_and_name(path)
    content = read_texts(file, notices)
    if content is None:
        if name is not None and not str(file).startswith(PREFIX):
            next(read_lines(file, Notices()), None)  # the fault of a file that cannot be read
            raise UsageError(
                f"{display(path)}: #{name} chooses a text of WMT XML, NIST SGML or JSON lines, but "
                f"{display(file)} is a plain text; leave it out"
            )
        files = files_of([path], role)
        return [_plain(text, target, notices, role, model=model, cure=cure) for text in files]
    references = content.texts.get("reference", {})
    texts = references
    if role == "system" and name is None and not content.texts.get(role) and len(references) == 1:
        notices.add("reference-as-translation", source=content.file)
    else:
        texts = content.text(role, name)
    several = len(texts) > 1 or name is not None
    fitted: list[Translation] = []
    for text, lines in texts.items():
        if isinstance(target, Documents):
            lines = aligned(lines, content, target)
        elif target is not None:
            check_length(lines, target, source=content.file, model=model)
        shown = f"#{shown_name(text).strip(chr(39))}" if several else ""
        fitted.append(Translation(f"{display(file)}{shown}", lines, content.truncated))
    return fitted


def read_systems(
    path: FilePath, documents: Documents | None, notices: Notices
) -> tuple[Documents, dict[str, Translation]]:
    """Documents, and the text of each system by name, of WMT XML or another file of systems.

    documents: with which the segments are matched [default: those of the file]. A segment that a
    system lacks is None. InputError for a file without systems.
    """
    file, name = file_and_name(path)
    content = read_texts(file, notices)
    if content is None:
        next(read_lines(file, Notices()), None)  # the fault of a file that cannot be read
        raise InputError(
            "expected outputs of systems in WMT XML, NIST SGML or JSON lines, found a plain text; "
            "give NAME=FILE for each system",
            source=display(file),
        )
    target = content.documents if documents is None else documents
    cut = content.truncated
    return target, {
        system: Translation(f"{display(file)}#{system}", aligned(lines, content, target), cut)
        for system, lines in content.text("system", name).items()
    }


def files_of(paths: Iterable[FilePath | None], role: Role | Literal["documents"]) -> list[FilePath]:
    """The files that are read of paths, of which `FILE#NAME` and test sets are not files."""
    files: list[FilePath] = []
    for file, name in (file_and_name(path) for path in paths if path is not None):
        cached = str(file).startswith(PREFIX)
        files += cached_files(str(file), role, name) if cached else [file]
    return files


def documents_in(path: FilePath, notices: Notices) -> Documents | None:
    """The documents that the file of a text states, as WMT XML does; None for a plain text."""
    content = read_texts(file_of(path), notices)
    return None if content is None else content.documents


def has_sources(path: FilePath) -> bool:
    """Whether a file of several texts has the source, too; False for a plain text."""
    content = read_texts(file_of(path), Notices())
    return content is not None and bool(content.texts.get("source"))


def check_length(
    lines: Sequence[object],
    n_lines: int,
    *,
    source: str,
    model: str = "the document set",
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
    path: FilePath,
    target: Documents | int | None,
    notices: Notices,
    role: Role,
    *,
    model: str,
    cure: str,
) -> Translation:
    """A plain text; one whose documents are parted as those of the target has its separators cut.

    It may have a separator for each document, and some more lines are counted.
    """
    name = display(path)
    if target is None:
        return Translation(name, [*text_lines(path, notices, role)])
    documents = target if isinstance(target, Documents) else Documents.one(target)
    n_lines, n_separators = documents.n_file_lines, len(documents) if documents is target else 0
    reading = text_lines(path, notices, role, max_bytes=MAX_LINE_BYTES + n_lines * MEAN_BYTES)
    lines = list(islice(reading, n_lines + n_separators))
    more = n_lines + SURPLUS - len(lines)
    lines += [line.strip()[:1] for line in islice(reading, max(0, more))]
    if n_separators and len(lines) > n_lines and documents.lines is None:
        lines = without_separators(lines, documents) or lines
    usual = documents.cure or f"line i must translate line i of {model}"
    cure = f"{usual}; {cure}" if cure else usual
    check_length(lines, n_lines, source=name, model=model, cure=cure)
    return Translation(name, documents.in_order(lines))


def read_with_documents(
    docs: FilePath | None,
    no_docs: str | None,
    references: Sequence[FilePath],
    notices: Notices,
    *,
    drop: bool | None = None,
) -> tuple[Documents, list[list[bytes]]]:
    """Documents according to the options, and the references of their sentences.

    Without options the documents are those of the first reference if it has any, as in WMT XML. The
    number of sentences is that of the document file or, without one, of the first reference. drop:
    see `matched`.
    """
    stated = documents_of_reference(references, notices)
    if stated is not None and no_docs is not None:
        raise UsageError(
            f"--no-docs {no_docs}: {display(references[0])} says what the documents are; leave it "
            "out"
        )
    model = display(references[0]) if docs is None and references else display(docs or "")
    documents = stated
    if docs is not None:
        most = None if stated is None else partial(int, _SPARSEST * stated.n_sentences)
        if stated is None and references and not is_pipe(file_of(references[0])):
            most = partial(count_lines, references[0])
        documents = chosen_documents(docs, no_docs, int, notices, most=most)
    texts = read_reference_texts(references, documents, notices, model=model)
    if documents is None:
        documents = chosen_documents(None, no_docs, lambda: len(texts[0].lines), notices)
    return matched(texts, documents, notices, drop=drop)


def documents_of_reference(references: Sequence[FilePath], notices: Notices) -> Documents | None:
    """The documents that the first reference states; None if it states none."""
    if not references or is_pipe(file_of(references[0])):
        return None
    return documents_in(references[0], notices)


def check_source_order(
    source: FilePath | None, reference: FilePath, documents: Documents, notices: Notices
) -> None:
    """InputError if the source states other documents than the reference, which has these."""
    others = None if source is None else documents_in(source, notices)
    if others is not None and (difference := difference_of(others, documents)):
        raise InputError(
            f"expected the documents of {display(reference)} in their order, found {difference}; "
            "give --docs FILE with the documents in the order of the list",
            source=display(source or ""),
        )


def matched(
    texts: Sequence[Translation], documents: Documents, notices: Notices, *, drop: bool | None
) -> tuple[Documents, list[list[bytes]]]:
    """The documents, and the references of their sentences: [sentence][reference].

    drop: leave out the sentences that a text lacks, which is otherwise an InputError; None where
    the command has no option for it. InputError if no sentence is left.
    """
    if drop and texts:
        rows = zip(*(text.lines for text in texts), strict=True)
        kept = [None not in row for row in rows]
        if not any(kept):
            what = f"references of these {len(kept)} sentences, found none that is complete"
            names = ", ".join(text.name for text in texts)
            raise InputError(f"expected {what}; {_OTHER_SET}", source=names)
        if not all(kept):
            lacking = next(text.name for text in texts if None in text.lines)
            n = kept.count(False)
            notices.add("sentence-without-reference", source=lacking, count=n, asked=True)
            documents = documents.selected(kept)
            texts = [Translation(text.name, list(compress(text.lines, kept))) for text in texts]
    return documents, complete(texts, documents, notices, droppable=drop is not None)


def read_references(
    paths: Sequence[FilePath], target: Documents | int | None, notices: Notices
) -> list[list[bytes]]:
    """References of each sentence of documents, or of so many sentences: [sentence][reference].

    InputError if a file has another number of lines, or lacks a segment.
    """
    texts = read_reference_texts(paths, target, notices)
    return complete(texts, target if isinstance(target, Documents) else None, notices)


def read_reference_texts(
    paths: Sequence[FilePath],
    target: Documents | int | None,
    notices: Notices,
    *,
    model: str = "the document set",
) -> list[Translation]:
    """The references of all files, of which one may have several.

    model: the file with these sentences, for messages; if `target` is None, the first reference.
    """
    if not paths:
        raise UsageError("expected a reference file, found none; name one or more")
    texts: list[Translation] = []
    for path in paths:
        texts += read_texts_of(path, target, notices, model=model, role="reference")
        if target is None:
            target, model = len(texts[0].lines), display(path)
    return [
        _without_blank(text, target) if isinstance(target, Documents) else text for text in texts
    ]


def _without_blank(text: Translation, documents: Documents) -> Translation:
    """A reference that lacks the sentences of documents whose lines in it are all blank.

    A single blank line may be the translation of one: of documents of a sentence, a share of
    `_BLANK` of all lines has to be blank.
    """
    blank = [line is not None and not line.strip() for line in text.lines]
    if not any(blank) or all(blank):
        return text
    lines = list(text.lines)
    many = sum(blank) >= max(_FEWEST_BLANK, _BLANK * len(blank))
    for a, b in pairwise(documents.starts):
        if all(blank[a:b]) and (b - a > 1 or many):
            lines[a:b] = [None] * (b - a)
    return Translation(text.name, lines)


def complete(
    texts: Sequence[Translation],
    documents: Documents | None,
    notices: Notices,
    *,
    droppable: bool = False,
) -> list[list[bytes]]:
    """The references of each sentence; InputError if a text lacks a sentence.

    droppable: whether the command can leave such sentences out, as the message then says.
    """
    cure = ", or leave these sentences out with --drop-unreferenced" if droppable else ""
    columns: list[list[bytes]] = []
    for text in texts:
        lines = [line for line in text.lines if line is not None]
        if missing := len(text.lines) - len(lines):
            first = _place(documents, text.lines.index(None))
            raise InputError(
                f"expected a reference of each of {len(text.lines)} sentences, found none of "
                f"{missing}, the first {first}; choose another reference with FILE#NAME{cure}",
                source=text.name,
            )
        for n, line in enumerate(map(bytes.strip, lines), 1):
            if kind := _WITHOUT_TEXT.get(line):
                notices.add(kind, source=text.name, line=n)
        columns.append(lines)
    names = [text.name for text in texts]
    for name, column in zip(names[1:], columns[1:], strict=True):
        if column == columns[0]:
            notices.add("equal-references", source=name, first=names[0])
            continue
        called = {f"references in {name}": column, f"references in {names[0]}": columns[0]}
        note_alignment(called, notices, source=name)
        spelled = {side: Spelling.of(lines) for side, lines in called.items()}
        known = note_spelling(spelled, notices, source=name)
        profiles = {side: profile_of(lines) for side, lines in called.items()}
        note_preparation(profiles, notices, source=name, explained=known)
    return [list(sentence) for sentence in zip(*columns, strict=True)]


def _place(documents: Documents | None, t: int) -> str:
    """Where a sentence is, for a message."""
    if documents is None:
        return f"is {t + 1}"
    d = bisect_right(documents.starts, t) - 1
    n = t - documents.starts[d] + 1
    number = documents.segments[t] if documents.segments else str(n)
    return f"is segment {number} of document {shown_id(documents.ids[d])}"


# Side information


def check_files(needed: Mapping[str, str], provided: Iterable[str], prefix: str = "") -> None:
    """UsageError for files that a model needs, but nobody gave, or gave, but no model needs.

    needed: kinds, with the name of a model that needs each; provided: kinds for which there is a
    file; prefix: of the options, as in `--valid-source`.
    """
    provided = set(provided)
    for kind, model in needed.items():
        if kind not in provided:
            flag = f"--{prefix}{kind}"
            raise UsageError(f"{flag}: {model} needs {SIDE_INFORMATION[kind]}; give {flag} FILE")
    for kind in sorted(provided - needed.keys()):
        raise UsageError(
            f"--{prefix}{kind}: no model here needs {SIDE_INFORMATION[kind]}; leave it out"
        )


def sentence_number(words: Sequence[bytes], i: int, size: int, source: str, line: int) -> int:
    """The number of another sentence than i, from 0, of a document of this size; 0 for none.

    words: of a line of a file; source, line: for the InputError if it is not such a number.
    """
    number = words[0] if len(words) == 1 else b""
    if number.isdigit() and len(number) < 10 and int(number) <= size and int(number) != i + 1:
        return int(number)
    raise InputError(
        f"expected the number of another sentence of the document, from 1 to {size}, or 0 for "
        f"none, found {b' '.join(words).decode(errors='replace')!r:.80}; this is sentence {i + 1}",
        source=source,
        line=line,
    )


def given_lines(
    path: FilePath, name: str, kind: str, documents: Documents, notices: Notices
) -> Iterator[list[bytes]]:
    """Lines of each document of a file with a line for each source line, a document at a time.

    name: of the file, in messages. InputError for another number of lines, or for a line of
    labels that is not one word, or of numbers not that of a sentence. Memory: the largest document.
    """
    lines = text_lines(path, notices, "source") if kind == SOURCE else read_lines(path, notices)
    if kind == SOURCE and not _line_by_line(path, documents):
        lines = iter(read_translation(path, documents, notices, role="source"))
    elif documents.lines is not None:
        part = list(islice(lines, documents.n_file_lines + SURPLUS))
        _check_number(len(part), documents.n_file_lines, name, documents.cure)
        lines = iter(documents.in_order(part))
    for d in range(len(documents)):
        start, stop = documents.span(d)
        part = list(islice(lines, stop - start))
        if (done := start + len(part)) < stop:
            _check_number(done, documents.n_sentences, name, documents.cure)
        if kind != SOURCE:
            check_document(part, kind, name, [documents.line(t) + 1 for t in range(start, stop)])
        yield part
    n = documents.n_sentences
    _check_number(n + len(list(islice(lines, SURPLUS))), n, name, documents.cure)


def _check_number(number: int, expected: int, name: str, cure: str) -> None:
    """InputError unless a file has a line for each source line, of which no more are counted."""
    if number != expected:
        more = " or more" if number == expected + SURPLUS else ""
        raise InputError(
            f"expected {expected:,} lines, one for each source line, found {number:,}{more}; "
            f"{cure or 'line i must belong to source line i'}",
            source=name,
        )


def _line_by_line(path: FilePath, documents: Documents) -> bool:
    """Whether a source is a plain text, without separators between its documents."""
    if str(path).startswith(PREFIX) or documents_in(path, Notices()) is not None:
        return False
    separators = count_lines(path) - documents.n_file_lines
    return separators < 1 or separators not in (len(documents) - 1, len(documents))


def check_document(
    lines: Sequence[bytes], kind: str, name: str, numbers: Sequence[int] | None = None
) -> None:
    """InputError for side information of a document's sentences that is not of its kind.

    Labels are one word, numbers those of a sentence. name, numbers: of the file and of its lines,
    or of the document in memory and 1, 2, …, in messages.
    """
    from lm.side_information import LABELS, NUMBERS
    from lm.vocabulary import words_of

    numbers = numbers or range(1, len(lines) + 1)
    for i, line in enumerate(lines):
        words = words_of(line)
        if kind in LABELS and len(words) != 1:
            cure = "write a label without spaces for each source line"
            fault = f"expected one label, found {len(words)} words; {cure}"
            raise InputError(fault, source=name, line=numbers[i])
        if kind in NUMBERS:
            sentence_number(words, i, len(lines), name, numbers[i])
