r"""Documents with texts in JSON lines, which are matched by name, as WMT distributes them.

A key says which document a sentence belongs to:

    {"document": "talk-1", "segment_id": 1, "source": "…", "reference": "the lamp is lit ."}
    {"doc_id": "talk-2", "src_text": "…\n\n…", "refs": {"A": {"ref": "it burns .\n\nhe left ."}}}
    {"doc_id": "talk-2", "system": "X", "hypothesis": "it burns .\n\nshe left ."}

The key is `document`, `doc_id`, `docid`, `doc` or `document_id`, or the one that is chosen; each
system may have lines of its own, with its name at `system`; texts are at the keys of `TEXT_KEYS`,
further references at `references` or `refs`, further systems at `tgt_text`, by name. Sentences with
a number at `segment_id` are ordered by it within a document. As WMT distributes them since 2025, a
line is a document if no id comes twice and texts have blank lines, or begin with `<p>`: its
paragraphs are then its sentences. A line end is read as a space.
Source: https://github.com/wmt-conference/wmt26-general-mt, and wmt25-general-mt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from rerank.corpus.documents import (
    PARAGRAPH,
    DocumentFile,
    Documents,
    EvaluationSet,
    Lines,
    Role,
    shown_id,
)
from rerank.errors import shown
from rerank.formats.document_ids import counts_on
from rerank.formats.json_candidates import is_truncated
from rerank.formats.plain_texts import DOCUMENT_KEYS, TEXT_KEYS
from rerank.formats.tokens import Place, check_size, encoded, first_key, read_json, similar, text_of
from rerank.notices import Notices

_MOST_TEXTS = 512 << 20  # characters of texts of JSON lines, of which the rest is not kept
_SEGMENT = ("segment_id", "seg_id", "segid", "segment", "seg", "sentence_id", "sent_id", "sent")
_REFERENCES = ("references", "refs")
_BY_NAME = ("tgt_text", "hypotheses", "systems")  # of references and systems
_LIKE_A_TEXT = re.compile("text|ref|hyp|transl|target|tgt|sentence")
_KNOWN = re.compile("original_target|.*lang.*|context")  # and not read, as in WMT24++
_READ_KEYS = "; ".join(
    f"a {role} is read at the key {' or '.join(keys)}" for role, keys in TEXT_KEYS.items()
)
_PARAGRAPH = re.compile(r"[ \t\r]*\n[ \t\r]*\n\s*|\s*</p>\s*<p>\s*")
_MARK = re.compile("</?p>|<br ?/?>")
_JOIN = "join the paragraphs of each document in all files"


class DocumentJson:
    """JSON lines with a document key."""

    name = "jsonl"
    description = (
        "A JSON object per sentence, or per document of paragraphs (WMT24++ to WMT26), with the "
        "key document; --docs-field for another key."
    )
    example = b'{"document": "d1", "reference": "the lamp is lit ."}\n'
    has_texts = True
    takes_field = True

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line is a JSON object with one of the keys."""
        first = next(filter(bytes.strip, head)).lstrip()
        with suppress(ValueError, RecursionError):
            return first.startswith(b"{") and first_key(read_json(first), DOCUMENT_KEYS) is not None
        return False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: DocumentFile
    ) -> EvaluationSet:
        """The documents and texts; InputError for what is no object, or lacks the key."""
        place, rows, size = Place(source, notices), list[_Row](), 0
        for line in place.numbered(choices.limited(lines, source)):
            rows.append(_Row.read(line, choices.field, place))
            size += sum(map(len, rows[-1].texts.values()))
            check_size(size, _MOST_TEXTS, source)
        rows = _of_systems(rows, place)
        all_texts = [text for row in rows for text in row.texts.values()]
        are_documents = len({row.document for row in rows}) == len(rows) and any(
            _PARAGRAPH.search(text.strip()) or text.startswith("<p>") for text in all_texts
        )
        if not are_documents:
            rows = _numbered(rows)
        if any(row.segment for row in rows):
            rows = _by_segment(rows, place)
        elif are_documents:
            rows = [part for row in rows for part in row.paragraphs(place)]
        documents = Documents.from_lines(
            [row.document for row in rows],
            source=source,
            interleaved=choices.interleaved,
            cure=_JOIN if are_documents else "",
        )
        ordered = documents.in_order(rows)
        if any(row.segment for row in rows):
            documents = replace(documents, segments=tuple(row.segment or "" for row in ordered))
        elif len(documents) == documents.n_sentences and counts_on(documents.ids, restart=True):
            place.note(
                "documents-of-one-sentence",
                ids=" whose id ends in a number that counts on",
                cure="leave the numbers out",
                line=1,
                count=len(documents),
            )
        names = dict.fromkeys(text for row in rows for text in row.texts)
        columns, truncated = _columns(ordered, names, place)
        return EvaluationSet(source, documents, columns, _READ_KEYS, truncated)


@dataclass(frozen=True, slots=True)
class _Row:
    """An object of JSON lines: its line, document and segment, and texts by role and name.

    truncated: those of the systems' texts that end where the model had no tokens left.
    """

    line: int
    document: bytes
    segment: str | None
    texts: Mapping[tuple[Role, str], str]
    truncated: frozenset[tuple[Role, str]] = frozenset()

    @classmethod
    def read(cls, line: bytes, field: str | None, place: Place) -> _Row:
        """The object of a line, whose document is at a key that is chosen, or at a known one."""
        sentence = None
        with suppress(ValueError, RecursionError):
            sentence = read_json(line)
        if not isinstance(sentence, dict):
            raise place.fault(
                f"expected a JSON object with the key 'document', found {shown(line)}; write "
                "one per sentence"
            )
        texts = {(role, name): text for role, name, text in _texts(sentence, place)}
        cut = (key for key in texts if key[0] == "system" and is_truncated(sentence))
        ids = _id(sentence, field, place), _segment_id(sentence)
        row = cls(place.line, *ids, texts, frozenset(cut))
        if sentence.get("is_bad_source") is True:
            place.note("bad-source")
        unread = [
            key
            for key, value in sentence.items()
            if _LIKE_A_TEXT.search(key) and value not in texts.values()
            if isinstance(value, str) and value and not _KNOWN.fullmatch(key)
        ]
        if unread:
            place.note("unread-text-key", names=unread)
        return row

    def paragraphs(self, place: Place) -> list[_Row]:
        """A row for each paragraph; InputError if the texts have different numbers of them."""
        parts: dict[tuple[Role, str], list[str]] = {}
        for key, text in self.texts.items():
            if text.strip():
                parts[key] = _PARAGRAPH.split(text.strip())
                if text.startswith("<p>"):
                    parts[key] = [_MARK.sub(" ", part).strip() for part in parts[key]]
        sizes = {f"{role} {name}".strip(): len(part) for (role, name), part in parts.items()}
        if len(set(sizes.values())) > 1:
            found_sizes = ", ".join(f"{size} in the {name}" for name, size in sizes.items())
            raise place.fault(
                f"expected as many paragraphs in all texts of a document, found {found_sizes}; "
                f"correct them, or {_JOIN}",
                self.line,
            )
        n = max(sizes.values(), default=1)
        rows = [
            _Row(self.line, self.document, None, {key: part[i] for key, part in parts.items()})
            for i in range(n)
        ]
        return [*rows[:-1], replace(rows[-1], truncated=self.truncated)]


def _columns(
    rows: Sequence[_Row], names: Iterable[tuple[Role, str]], place: Place
) -> tuple[dict[Role, dict[str, Lines]], frozenset[bytes]]:
    """Texts by role and name, a line for each row, and those lines that were cut off."""
    columns: dict[Role, dict[str, Lines]] = {}
    truncated = set[bytes]()
    for role, name in names:
        column: list[bytes | None] = []
        for row in rows:
            place.line, value = row.line, row.texts.get((role, name))
            text = None if value is None else text_of(value, role, place)
            column.append(text)
            if text and (role, name) in row.truncated:
                truncated.add(text)
        columns.setdefault(role, {})[name] = column
    return columns, frozenset(truncated)


def _of_systems(rows: list[_Row], place: Place) -> list[_Row]:
    """A row for each segment, or document, of a file with a row of each of its systems.

    InputError where rows of several systems have no ids that match them.
    """
    joined: dict[tuple[bytes, str | None], _Row] = {}
    for row in rows:
        first = joined.setdefault((row.document, row.segment), row)
        added = {key: text for key, text in row.texts.items() if first.texts.get(key) != text}
        if row is first:
            continue
        if not added or any(key in first.texts or not key[1] for key in added):
            named = ([name for r, name in row.texts if r == "system" and name] for row in rows)
            names = {systems[0] for systems in named if len(systems) == 1}
            if len(names) > 1 and row.segment is None:
                raise place.fault(
                    f"expected ids of segments in a file of {len(names)} systems, found none; give "
                    "each system a file of its own",
                    row.line,
                )
            return rows
        joined[row.document, row.segment] = replace(
            first,
            texts={**first.texts, **added},
            truncated=first.truncated | row.truncated & added.keys(),
        )
    if len(joined) == len(rows):
        return rows
    places = {document: i for i, document in enumerate(dict.fromkeys(row.document for row in rows))}
    return sorted(joined.values(), key=lambda row: places[row.document])


def _numbered(rows: list[_Row]) -> list[_Row]:
    """The rows, whose document ids of WMT25 may end in the number of their segment, apart."""
    ids = [PARAGRAPH.fullmatch(row.document.decode()) for row in rows]
    is_repeated = len({row.document for row in rows}) < len(rows)
    if None in ids or is_repeated or any(row.segment for row in rows):
        return rows
    return [
        replace(row, document=match[1].encode(), segment=match[2])
        for row, match in zip(rows, ids, strict=True)
        if match
    ]


def _by_segment(rows: list[_Row], place: Place) -> list[_Row]:
    """The rows in the order of the numbers of their segments; InputError for one that comes twice.

    Documents stay in the order of the file if each of them is in one run of lines.
    """
    first: dict[bytes, int] = {}
    seen: set[tuple[bytes, str]] = set()
    for n, row in enumerate(rows):
        if row.segment is None or (row.document, row.segment) in seen:
            what = "no id" if row.segment is None else f"{row.segment!r:.40} again"
            document = shown_id(row.document.decode())
            raise place.fault(
                f"expected an id of each segment of document {document}, found {what}; number "
                "the segments of each document",
                row.line,
            )
        seen.add((row.document, row.segment))
        first.setdefault(row.document, n)
    if not all((row.segment or "").isdecimal() for row in rows):
        return rows

    def number(row: _Row) -> int:
        return int(row.segment or 0)

    runs = 1 + sum(a.document != b.document for a, b in pairwise(rows))
    if runs == len(first):
        ordered = sorted(rows, key=lambda row: (first[row.document], number(row)))
    elif len({*map(number, rows)}) == len(rows):  # numbered through all documents, as WMT24++
        ordered = sorted(rows, key=number)
    else:
        return rows
    if ordered != rows:
        place.note("ordered-segments", line=rows[0].line)
    return ordered


def _id(sentence: dict[str, Any], field: str | None, place: Place) -> bytes:
    """The document id of an object."""
    keys = DOCUMENT_KEYS if field is None else (field,)
    key = first_key(sentence, keys)
    if key is None:
        raise place.fault(
            f"expected the key {keys[0]!r}, found none; {similar(keys[0], sentence)}; choose it "
            "with --docs-field"
        )
    value = sentence[key]
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise place.fault(
            f"expected a text or whole number as {key!r}, found {type(value).__name__}"
        )
    if isinstance(value, str) and ("\n" in value or "\0" in value):
        raise place.fault(f"expected one line as {key!r}, found a line end or NUL; remove it")
    return encoded(str(value), key, place)


def _segment_id(sentence: dict[str, Any]) -> str | None:
    """The segment id of an object within its document; None if it has none."""
    key = first_key(sentence, _SEGMENT)
    value = None if key is None else sentence[key]
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _texts(sentence: dict[str, Any], place: Place) -> Iterator[tuple[Role, str, str]]:
    """Role, name and text of those of an object."""
    system, of_lists = sentence.get("system"), False
    for role, keys in TEXT_KEYS.items():
        values = map(sentence.get, keys)
        value = next((member for member in values if isinstance(member, str | list)), None)
        # a list at `reference` may be several references, unless the source is one, too
        of_lists |= role == "source" and isinstance(value, list)
        text = value if role == "reference" and not of_lists else _joined(value)
        if isinstance(text, str):
            yield role, system if role == "system" and isinstance(system, str) else "", text
    for key in (*_REFERENCES, *_BY_NAME):
        named = sentence.get(key)
        if isinstance(named, list) and key in _REFERENCES:
            named = {str(n): text for n, text in enumerate(named, 1)}
        for name, text in named.items() if isinstance(named, dict) else ():
            if isinstance(text, dict):
                text = text.get("ref", text.get("text"))
            text = _joined(text)
            if isinstance(text, str):
                of_reference = key in _REFERENCES or name.lower().startswith("ref")
                yield "reference" if of_reference else "system", name, text
            elif key in _REFERENCES and text is not None:
                raise place.fault(f"expected texts in {key!r}, found {type(text).__name__}")


def _joined(value: object) -> object:
    """Texts of a list as paragraphs of one text; other values as they are."""
    if isinstance(value, list) and value and all(isinstance(text, str) for text in value):
        return "\n\n".join(_PARAGRAPH.sub("\n", text) for text in value)
    return value
