"""Plain texts, a sentence a line: what in a file is no text, and what in running text no word.

A file of JSON, XML or a table is refused where a text is expected. Running text, which language
models read, comes with marks of sentences and of unknown words, with mark-up, columns and headings:
they are counted while the lines are read, and each kind is reported once.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, TypeAlias

from rerank.corpus.documents import Role
from rerank.corpus.text_profile import MANY, MOST_LINES, SUBWORDS, TextProfile
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import Place, chunks, first_line, read_json
from rerank.notices import Notices, listed

HEAD_LINES = 2000  # from which a format is recognised
_HEAD_BYTES = 1 << 20
TEXT_KEYS: dict[Role, tuple[str, ...]] = {  # of texts in JSON and tables
    "source": ("source", "src", "src_text", "source_text"),
    "reference": ("reference", "ref", "target", "tgt", "ref_text", "tgt_text"),
    "system": ("hypothesis", "hyp", "mt", "translation", "output", "prediction", "mt_text"),
}
DOCUMENT_KEYS = ("document", "doc_id", "docid", "doc", "document_id")
_HEADS = {"id", "domain", "text", "content", "sentence", "document"}.union(*TEXT_KEYS.values())
_XML = re.compile(
    rb"\s*<(?:\?xml|!DOCTYPE|!--|(?:tmx|tuv?|xliff|trans-unit|seg|dataset|mteval|srcset|refset|"
    rb"tstset)\b)",
    re.IGNORECASE,
)
_TIMES = re.compile(rb"(?:\d+:)?\d\d:\d\d[.,]\d{3} +--> +(?:\d+:)?\d\d:\d\d[.,]\d{3}")
_OPEN = re.compile(rb"\s*[\[{]+\s*")  # first line of JSON that is on several
_WORD = re.compile("[A-Za-z_][A-Za-z0-9_]*")

Use: TypeAlias = Literal["training", "n-grams", "evaluation"]
"""What is done with a running text."""

PARAGRAPH = b"<p>"  # parts documents where --documents says so
UNKNOWN_FORM = b"<UNK>"  # `<unk>` to all readers of ARPA files
_FEWEST = 4  # documents of which most have one sentence
_ALONE = rb"(?<![^ ])(?:%s)(?![^ ])"  # as a word
_ENDS = re.compile(_ALONE % rb"</?s>")
_MARK = rb"<(?:eos|bos|sep|brk|pad|cls)>|\[(?:eos|bos|sep|pad|cls)\]|_eos|<\|\w+\|>"
_MARKS = re.compile(_ALONE % _MARK, re.I)
_INSIDE = re.compile(rb"[^ ] +(?:%s) +[^ ]" % _MARK, re.I)
_UNKNOWN = re.compile(_ALONE % rb"<unk>|\[unk\]", re.I)
_TAG = re.compile(rb"\s*<(?:/?([?!]?[A-Za-z][\w.:-]*)(?:[\s/][^<>]*)?|(\|\w+\|))>\s*")
_ELEMENT = re.compile(rb"\s*<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?>.*</\1>\s*")
_MARKDOWN = re.compile(rb"#{1,6} [^#].*|={3,}|-{3,}")
_PARTS = frozenset(("doc", "document", "article", "chapter", "talk", "story", "file", "text"))
_INNER = re.compile(rb"</(b|em|font|hl|i|p|q|s|seg|strong|sub|sup|u)>", re.I)  # around words


def head_of(lines: Iterator[bytes]) -> list[bytes]:
    """The first lines of a file, which are taken from the iterator."""
    return next(chunks(islice(lines, HEAD_LINES), _HEAD_BYTES), [])


def text_lines(
    path: FilePath, notices: Notices, role: Role | None = None, *, max_bytes: int | None = None
) -> Iterator[bytes]:
    """Lines of a plain text, a sentence a line; InputError if its first lines are JSON, CSV or XML.

    role: of the text in a run; None for one that models are trained on. max_bytes: as of
    `read_lines`.
    """
    lines = read_lines(path, notices, max_bytes=max_bytes)
    head, place = head_of(lines), Place(display(path), notices)
    if other := structure(head):
        cure = f"write its texts alone, one on each line{_json_cure(head, role)}"
        raise place.fault(f"expected a sentence per line, found {other}; {cure}")
    filled = list(filter(bytes.strip, head))
    for separator, name in ((b"\t", "TABs"), (b"|||", "|||")) if role and len(filled) > 1 else ():
        fields = [line.count(separator) + 1 for line in filled]
        parted = sum(n > 1 for n in fields)
        if 2 * parted > len(fields):
            where = "each line" if parted == len(fields) else "most lines"
            cure = "give the text alone"
            if role == "reference":
                cure += " or, if they are several references, each with a --ref of its own"
            place.note("fields-as-text", n=max(fields), mark=name, where=where, cure=cure)
    yield from head
    yield from lines


def structure(head: Sequence[bytes]) -> str:
    """What a file is whose lines are not texts: JSON, XML, subtitles, a table; else empty."""
    filled = list(filter(bytes.strip, head))
    if any(map(_TIMES.match, filled[:5])):
        return "subtitles with their times, as of SubRip or WebVTT"
    return _json(filled) or _xml(filled) or _table(filled)


def _json(lines: Sequence[bytes]) -> str:
    """What lines of JSON are; empty for other lines."""
    if not lines or lines[0].lstrip()[:1] not in (b"{", b"[", b'"'):
        return ""
    if len(lines) > 1 and _OPEN.fullmatch(lines[0]) and lines[1].lstrip()[:1] in (b'"', b"{", b"["):
        return "JSON over several lines"
    values = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            values.append(read_json(line))
    array = len(lines) == 1 and bool(values) and isinstance(values[0], list)
    alike = sum(isinstance(value, dict | list | str) for value in values)
    paths = _paths(values[0][:1] if array else values[:1])
    if 10 * alike < 9 * len(lines) or not paths or (len(lines) == 1 and "" in paths and not array):
        return ""
    return f"JSON with {', '.join([*paths][:10]).strip() or 'texts in quotes'}"


def _json_cure(head: Sequence[bytes], role: Role | None) -> str:
    """How the texts of JSON lines are written or, of a translation, read; empty for other files."""
    values: list[object] = []
    with suppress(ValueError, RecursionError):
        values = [read_json(first_line(head))]
    if role is not None and values:
        return (
            ", or give JSON lines with the key document, its id, beside source, reference, "
            "references or hypothesis"
        )
    (path, *others) = _paths(values) or ["", ""]
    if others:
        return ""
    gap = ', ""' * any(b"\\n" in line for line in head)  # a document has several sentences
    return f", as `jq -r '{path or '.'}{gap}' FILE > NEW` does"


def _paths(values: Sequence[object]) -> dict[str, None]:
    """Where texts are in the first value of JSON, down to a depth of 8, as jq names it."""

    def places(value: object, depth: int) -> Iterator[str]:
        pairs: Iterable[tuple[str, object]] = ()
        if isinstance(value, str):
            yield ""
        elif isinstance(value, dict):
            pairs = ((f".{k}" if _WORD.fullmatch(k) else f'."{k}"', v) for k, v in value.items())
        elif isinstance(value, list):
            pairs = ((f"[{n}]", member) for n, member in enumerate(value[:3]))
        for key, member in pairs if depth else ():
            yield from (key + path for path in places(member, depth - 1))

    paths = places(values[0], 8) if values else ()
    return dict.fromkeys(f".{path}" if path.startswith("[") else path for path in paths)


def _xml(lines: Sequence[bytes]) -> str:
    """What lines of XML are; empty for other lines."""
    if not lines or not _XML.match(lines[0]):
        return ""
    text = b"\n".join(lines)
    if b"<tuv" in text:
        return "TMX, a translation memory"
    return "XLIFF" if b"<xliff" in text or b"<trans-unit" in text else "XML"


def _table(lines: Sequence[bytes]) -> str:
    """What a table is that has a head, ids or texts in quotes; empty for others."""
    for delimiter in (",", ";", "\t"):
        rows: list[list[str]] = []
        with suppress(csv.Error):
            text = (line.decode(errors="replace") for line in lines)
            rows = list(csv.reader(text, delimiter=delimiter, strict=True))
        if len(rows) < 2 or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
            continue
        head = [name.strip().lower() for name in rows[0]]
        if set(head) <= _HEADS:
            return f"a table with the columns {', '.join(head)}"
        ids = {row[0] for row in rows if row[0].isdecimal() and delimiter != "\t"}
        if len(rows) == len(ids) > 2:
            return "CSV with ids"
        field = re.compile(rf'(?:^|{delimiter})"(?:[^"]|"")*"(?={delimiter}\S|$)'.encode())
        if any(map(field.search, lines)):
            return "CSV with texts in quotes"
    return ""


# Running text


@dataclass(slots=True)
class _Lines:
    """Lines of one kind: the first, how many, and the words, tags or numbers of TABs in them."""

    first: int = 0
    count: int = 0
    names: dict[str, None] = field(default_factory=dict)

    def add(self, line: int, *names: str) -> None:
        """Count a line."""
        self.first, self.count = self.first or line, self.count + 1
        self.names |= dict.fromkeys(names)


class RunningText:
    """A text as it is read: `lines` yields its lines and then reports what is no sentence.

    documents: a name of `lm.corpus.DOCUMENTS`. unknown: the word of --unknown, if any. profile: of
    how it is prepared. InputError for JSON, tables and XML.
    """

    def __init__(
        self, path: FilePath, use: Use, documents: str = "blank", unknown: bytes | None = None
    ) -> None:
        self.source, self._path, self._use = display(path), path, use
        self.documents, self.profile = documents, TextProfile()
        self._unknown = unknown
        self._filled, self._inside, self._parts = 0, False, False
        self._seen: dict[str, _Lines] = defaultdict(_Lines)

    def lines(self, notices: Notices) -> Iterator[bytes]:
        """The lines of the file. InputError for marks of the ends of sentences, which no word is.

        For n-grams also for characters that part words in ARPA files.
        """
        before, place = b"", Place(self.source, notices)
        for place.line, line in enumerate(text_lines(self._path, notices), 1):
            self._filled += not line.isspace() and line != b""
            unusual = False
            if line[:1] in b"#=-" and self.documents != "equals" and _MARKDOWN.fullmatch(line):
                # of text in tokens also `# 3 million`; a heading is the first line of a paragraph
                if line[:1] != b"#" or not before.strip():
                    self._seen["markdown"].add(place.line)
            elif b"<" in line or b"\t" in line or b"[" in line or b"_" in line or b"\r" in line:
                unusual = self._look(line, place)
            if not unusual and self.profile.lines < MOST_LINES:
                self.profile.add([line])
            before = line
            yield line
        for kind, seen, values in self._reported():
            place.note(kind, line=seen.first, count=seen.count, **values)

    def check_documents(self, n_documents: int, of_one_sentence: int, notices: Notices) -> None:
        """A notice if most documents have one sentence, as if a blank line parted sentences."""
        if self.documents == "blank" and _FEWEST <= n_documents < 2 * of_one_sentence:
            notices.add("paragraphs-as-documents", source=self.source, count=of_one_sentence)

    def check_pieces(self, notices: Notices) -> None:
        """A notice if most lines are in subword units, which a tokenizer would cut once more."""
        for name, cure in ((mark.name, mark.cure) for mark in SUBWORDS):
            if self.profile.share("mark", name) >= MANY:
                count = self.profile.counts["mark", name]
                notices.add("pieces-in-text", source=self.source, count=count, what=name, cure=cure)

    def _look(self, line: bytes, place: Place) -> bool:
        """Whether something is unusual in a line; it is counted."""
        if line.isspace():
            return True
        if (b"\t" in line or b"\r" in line) and self._use == "n-grams":
            raise place.fault(
                "expected words between spaces, found a TAB or a carriage return, which ARPA "
                "files cannot have in words; write spaces"
            )
        if b"\t" in line:
            self._seen["tab"].add(place.line, str(line.count(b"\t")))
        tag = _TAG.fullmatch(line)
        if tag and not _UNKNOWN.fullmatch(line.strip()):
            if self.documents != "paragraphs" or line.strip() != PARAGRAPH:
                name = (tag[1] or tag[2]).decode()
                self._parts |= name[0] == "|" or name.lower() in _PARTS
                self._seen["mark-up"].add(place.line, f"<{name}>")
        elif ends := _ENDS.search(line):
            raise place.fault(
                f"expected words, found {ends[0].decode()}, a mark of the ends of sentences, "
                "which language models set themselves; remove it"
            )
        elif inner := _INNER.findall(line):
            self._seen["mark-up"].add(place.line, *(f"<{name.decode()}>" for name in inner))
        elif element := _ELEMENT.fullmatch(line):
            self._seen["mark-up"].add(place.line, f"<{element[1].decode()}>")
        else:
            if marks := _MARKS.findall(line):
                self._seen["mark"].add(place.line, *map(bytes.decode, marks))
                self._inside |= _INSIDE.search(line) is not None
            if unknown := [word for word in _UNKNOWN.findall(line) if word != self._unknown]:
                self._seen["unknown"].add(place.line, *map(bytes.decode, unknown))
            return bool(marks or b"\t" in line)
        return True

    def _reported(self) -> Iterator[tuple[str, _Lines, dict[str, Any]]]:
        """The name of each warning, where its lines are, and the values of its fields."""
        if (markup := self._seen["mark-up"]).count:
            cure = f"remove it{', with a blank line between documents' * self._parts}"
            yield "markup-in-text", markup, {"marks": listed(markup.names), "cure": cure}
        if (mark := self._seen["mark"]).count:
            cure = "write line ends" if self._inside else "remove it"
            yield "mark-in-text", mark, {"marks": listed(mark.names), "cure": cure}
        if (headings := self._seen["markdown"]).count:
            yield "markdown-in-text", headings, {}
        unknown = self._seen["unknown"]
        marks = listed(unknown.names)
        if self._use == "n-grams" and {"<unk>", UNKNOWN_FORM.decode()} & unknown.names.keys():
            yield "unknown-word-counted", unknown, {"marks": marks}
        others = [name for name in unknown.names if name != "<unk>"]
        if self._use == "training" and others:
            yield "unknown-word-in-text", unknown, {"marks": marks, "word": others[0]}
        tab = self._seen["tab"]
        if tab.count and not (tab.count == self._filled > 1 == len(tab.names)):  # no columns
            yield "tab-in-line", tab, {}
