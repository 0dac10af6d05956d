"""Formats of document files: what each states, how one is recognised, and reading in any of them.

A plain text is what is in none of them: `text_lines` reads it, and refuses JSON, tables and XML,
whose lines are not sentences.

A new format is a `DocumentFormat`, a line in `rerank.registry.DOCUMENT_FORMATS` and a test; or, in
another package, an entry point of the group `rerank.document_formats`. Test sets that sacrebleu has
in its cache, `sacrebleu:wmt23/ru-en`, stand for their files; nothing is downloaded.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import chain, islice, zip_longest
from typing import Any, Literal, Protocol

from rerank.corpus.documents import DocumentFile, Documents, EvaluationSet, Role
from rerank.errors import InputError, UsageError
from rerank.files.lines import is_pipe, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.json_objects import read_json
from rerank.formats.tokens import chunks
from rerank.notices import Notice, Notices
from rerank.registry import DOCUMENT_FORMATS

_HEAD_LINES = 2000  # from which a format is recognised
_HEAD_BYTES = 1 << 20
MAX_BYTES = 128 << 20  # of a file whose texts are kept, unpacked
PREFIX = "sacrebleu:"
DOCUMENT_KEYS = ("document", "doc_id", "docid", "doc", "document_id")
TEXT_KEYS: dict[Role | None, tuple[str, ...]] = {  # of texts in JSON and tables
    "source": ("source", "src", "src_text", "source_text"),
    "reference": ("reference", "ref", "target", "tgt", "ref_text", "tgt_text"),
    "system": ("hypothesis", "hyp", "mt", "translation", "output", "prediction", "mt_text"),
    None: ("text", "content", "sentence", "document"),
}
_HEADS = {"id", "domain", *(key for keys in TEXT_KEYS.values() for key in keys)}
_XML = re.compile(
    rb"\s*<(?:\?xml|!DOCTYPE|!--|(?:tmx|tuv?|xliff|trans-unit|seg|dataset|mteval|srcset|refset|"
    rb"tstset)\b)",
    re.IGNORECASE,
)
_UNPACK = {".gz": "zcat", ".xz": "xzcat", ".bz2": "bzcat"}
_NO_TEXT = re.compile(rb"\s*\S*[0-9]\S*\s*|[^A-Za-z\x80-\xff]*")  # an id, numbers, an alignment
_FIELD_MARKS = ((b"\t", "TABs", r"\t"), (b"|||", "|||", " *[|][|][|] *"))
_OPEN = re.compile(rb"\s*[\[{]+\s*")  # first line of JSON that is on several
_WORD = re.compile("[A-Za-z_][A-Za-z0-9_]*")
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
        if known.name == "docids" and (found := structure(head, file.path, None)):
            raise InputError(
                f"expected a document id on each line, found {found[0]}; of JSON lines name the "
                "key of the id with --docs-field KEY, of other files write the ids, a line each",
                source=source,
                line=1,
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
    found = "none" if docs is None else "both"
    raise UsageError(
        "expected one of --docs FILE (a document id per source line, JSON lines of lists, or "
        "another format of `rerank list document-formats`), --no-docs each (every line a document) "
        f"and --no-docs one (all lines one document), found {found}; give one"
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
    known = {(one.sentence, one.first) for one in notices}
    for one in warnings:
        if (one.sentence, one.first) not in known:
            notices.take(one)
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


# Plain texts


def text_lines(
    path: FilePath, notices: Notices, role: Role | None = None, *, max_bytes: int | None = None
) -> Iterator[bytes]:
    """Lines of a plain text, a sentence a line; InputError if its first lines are JSON, CSV or XML.

    role: of the text in a run; None for one that models are trained on. max_bytes: as of
    `read_lines`.
    """
    lines = read_lines(path, notices, max_bytes=max_bytes)
    head = _head_of(lines)
    filled, source, file = list(filter(bytes.strip, head)), display(path), shlex.quote(str(path))
    if found := structure(head, path, role):
        text = f"expected a sentence per line, found {found[0]}; {found[1]}"
        raise InputError(text, source=source, line=1)
    for marks in _FIELD_MARKS if role is not None and len(filled) > 1 else ():
        if values := _fields(filled, marks, file, role):
            notices.add("fields-as-text", source=source, line=1, **values)
    yield from head
    yield from lines


def _fields(
    lines: Sequence[bytes], marks: tuple[bytes, str, str], file: str, role: Role | None
) -> dict[str, Any]:
    """The values of the warning of texts of which most have several fields; empty for others.

    marks: separator of the fields, its name, and what it is for awk.
    """
    separator, name, mark = marks
    rows = [line.split(separator) for line in lines]
    parted = [row for row in rows if len(row) > 1]
    if 2 * len(parted) <= len(rows):
        return {}
    columns = list(zip_longest(*parted, fillvalue=b""))
    where = "each line" if len(parted) == len(rows) else "most lines"
    cut = [f"<(awk -F'{mark}' '{{print ${n}}}' {file})" for n in range(1, len(columns) + 1)]
    sizes = [sum(map(len, column)) for column in columns]
    pairs = zip(cut, columns, strict=True)
    texts = [text for text, column in pairs if not all(map(_NO_TEXT.fullmatch, column))]
    cure = f"give the text alone, as {cut[sizes.index(max(sizes))]}"
    if role == "reference" and len(texts) != 1:
        several = " ".join(f"--ref {text}" for text in (texts or cut)[:4])
        cure = f"if they are several references, give {several}"
    return {"n": len(columns), "mark": name, "where": where, "cure": cure}


def structure(head: Sequence[bytes], path: FilePath, role: Role | None) -> tuple[str, str] | None:
    """What a file is whose lines are not texts, and how its texts are read; None for a text."""
    filled, file = list(filter(bytes.strip, head)), shlex.quote(str(path))
    for looks_like in (_json, _xml, _table):
        if found := looks_like(filled, file, role):
            what, cure = found
            unpack = _UNPACK.get(os.path.splitext(str(path))[1])
            return what, cure.replace(f" {file} ", f" <({unpack} {file}) ", 1) if unpack else cure
    return None


def _json(lines: Sequence[bytes], file: str, role: Role | None) -> tuple[str, str] | None:
    """What lines of JSON are, and how the texts in them are read; None for other lines."""
    if not lines or lines[0].lstrip()[:1] not in (b"{", b"[", b'"'):
        return None
    if len(lines) > 1 and _OPEN.fullmatch(lines[0]) and lines[1].lstrip()[:1] in (b'"', b"{", b"["):
        each = ".[]" if lines[0].lstrip().startswith(b"[") else "."
        found = f"`jq -c '{each}' {file} > {file}.jsonl` writes an object a line"
        return "JSON over several lines", found
    values = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            values.append(read_json(line))
    each, first = "", values[0] if values else None
    if len(lines) == 1 and isinstance(first, list) and first:
        each, first = ".[]", first[0]
    alike = sum(isinstance(value, dict | list | str) for value in values)
    paths = {f".{p}" if p.startswith("[") else p: text for p, text in _texts_in(first)}
    if 10 * alike < 9 * len(lines) or not paths or (len(lines) == 1 and "" in paths and not each):
        return None
    keys = (*TEXT_KEYS[role], *TEXT_KEYS[None])
    known = [path for key in keys for path in paths if path.rpartition(".")[2].strip('"') == key]
    languages = [path for path in paths if path.startswith(".translation.")]
    known += languages if role == "source" else languages[::-1]
    chosen = known[0] if known else max(paths, key=lambda path: len(paths[path]))
    if role is None and not known:
        chosen = _longest(first)
    program = f"{each}{chosen}" or "."
    if any(b"\\n" in line for line in lines):
        gaps = ' | gsub("\\n+"; " ")' if role else ', ""'  # a document has several sentences
        program = f"{f'{each} | ' if each else ''}{chosen or '.'}{gaps}"
    path = shlex.quote(program)
    command = f"`jq -r {path} {file} > {file}.txt` writes one text a line"
    if each and isinstance(first, dict) and not first.keys().isdisjoint(DOCUMENT_KEYS):
        command = f"`jq -c '.[]' {file} > {file}.jsonl` writes an object a line"
    elif role is not None:
        command += (
            ", and JSON lines are read that have the key document, its id, beside source, "
            "reference, references or hypothesis"
        )
    return f"JSON with {', '.join([*paths][:10]).strip() or 'texts in quotes'}", command


def _longest(value: object) -> str:
    """Where jq finds most of the text in a value of JSON: words in a list are joined to lines."""
    found: dict[str, list[str]] = {}
    for path, text in _texts_in(value, most=_HEAD_LINES):
        found.setdefault(re.sub(r"\[[0-9]+\]", "[]", path), []).append(text)
    path, texts = max(found.items(), key=lambda item: sum(map(len, item[1])))
    path = f".{path}" if path.startswith("[") else path
    words = path.endswith("[]") and len(texts) > 1 and not any(" " in text for text in texts)
    return f'{path[:-2]} | join(" ")' if words else path


def _texts_in(value: object, depth: int = 8, most: int = 3) -> Iterator[tuple[str, str]]:
    """The texts in a value of JSON, down to a depth, and where they are as jq names it.

    most: members of a list that are looked at.
    """
    if isinstance(value, str):
        yield "", value
    pairs: Iterable[tuple[str, object]] = ()
    if isinstance(value, dict):
        pairs = ((f".{k}" if _WORD.fullmatch(k) else f'."{k}"', one) for k, one in value.items())
    elif isinstance(value, list):
        pairs = ((f"[{n}]", one) for n, one in enumerate(value[:most]))
    for key, one in pairs if depth else ():
        yield from ((f"{key}{path}", text) for path, text in _texts_in(one, depth - 1, most))


def _xml(lines: Sequence[bytes], file: str, role: Role | None) -> tuple[str, str] | None:
    """What lines of XML are, and how the texts in them are read; None for other lines."""
    if not lines or not _XML.match(lines[0]):
        return None
    text, path, what = b"\n".join(lines), "", "XML"
    if found := re.findall(rb"<tuv\b[^>]*?\s(xml:)?lang=[\"']([\w-]+)", text):
        space, language = found[0 if role == "source" else min(1, len(found) - 1)]
        name = "{http://www.w3.org/XML/1998/namespace}lang" if space else "lang"
        path, what = f'.//tuv[@{name}="{language.decode()}"]/seg', "TMX, a translation memory"
    elif b"<xliff" in text or b"<trans-unit" in text:
        path, what = f".//{{*}}{'source' if role == 'source' else 'target'}", "XLIFF"
    if path:
        program = (
            'import sys; from xml.etree import ElementTree as E; [print(*"".join(x.itertext())'
            ".split()) for x in E.parse(sys.argv[1]).iterfind(sys.argv[2])]"
        )
        command = f"python3 -c '{program}' {file} '{path}'"
    elif b"<seg" in text:
        command = f"sed -n 's/.*<seg[^>]*>\\(.*\\)<.seg>.*/\\1/p' {file}"
    else:
        return what, "write its sentences, a line each"
    return what, f"`{command} > {file}.txt` writes its sentences, a line each"


def _table(lines: Sequence[bytes], file: str, role: Role | None) -> tuple[str, str] | None:
    """What a table is that has a head or texts in quotes, and how to read it; None for others."""
    for delimiter in (",", ";", "\t"):
        rows: list[list[str]] = []
        with suppress(csv.Error):
            text = (line.decode(errors="replace") for line in lines)
            rows = list(csv.reader(text, delimiter=delimiter, strict=True))
        if len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
            continue
        head = [name.strip().lower() for name in rows[0]]
        named = set(head) <= _HEADS
        field = re.compile(rf'(?:^|{delimiter})"(?:[^"]|"")*"(?={delimiter}\S|$)'.encode())
        sizes = [sum(map(len, column)) for column in zip(*rows, strict=True)]
        ids = {row[0] for row in rows if row[0].isdecimal() and delimiter != "\t"}
        counted = len(rows) == len(ids) > 2
        if not (named or counted or any(map(field.search, lines))):
            continue
        longest = sizes.index(max(sizes))
        column = next((n for n, key in enumerate(head) if key in TEXT_KEYS[role]), longest)
        program = (
            "import csv, sys; [print(*row[int(sys.argv[2])].split()) for row in csv.reader("
            f'open(sys.argv[1], newline="", encoding="utf-8"), delimiter="{delimiter}")]'
        ).replace("\t", "\\t")
        command = f"python3 -c '{program}' {file} {column}{' | tail -n +2' if named else ''}"
        what = f"CSV with {'ids' if len(ids) == len(rows) else 'texts in quotes'}"
        what = f"a table with the columns {', '.join(head)}" if named else what
        return what, f"`{command} > {file}.txt` writes a column of it"
    return None


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
    own = {field: path for field, path in paths.items() if path == pattern + field}
    files = {f: path for f, path in own.items() if os.path.isfile(path) and os.path.getsize(path)}
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


def check_size(size: int, most: int, source: str) -> None:
    """InputError if what is kept in memory of a file is too much."""
    if size > most:
        raise InputError(
            f"expected at most {most:,} bytes of texts, unpacked, found more; is this the right "
            "file?",
            source=source,
        )
