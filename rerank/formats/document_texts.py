"""Document files with texts that are matched by name: WMT XML and NIST SGML.

WMT XML (2021 and later) has documents with source, references and outputs of several systems:

    <dataset id="wmt"><collection id="general"><doc id="news-1" origlang="ru">
      <src lang="ru"><p><seg id="1">…</seg></p></src>
      <ref lang="en" translator="refA"><p><seg id="1">…</seg></p></ref>
      <hyp lang="en" system="ONLINE-A"><p><seg id="1">…</seg></p></hyp>
    </doc></collection></dataset>

Sentences are ordered by document and by the number of the segment. A document type declaration is
refused: it may define entities, and nothing is fetched. Source: schema/wmt-schema.rnc of
https://github.com/wmt-conference/wmt-format-tools.

NIST SGML has source, reference and system sets of mteval, read with patterns as all tools do:

    <refset setid="test" srclang="zh" trglang="en" refid="r1">
    <doc docid="news-1" sysid="ref"><seg id="1"> AT&T rose . </seg></doc>
    </refset>

It is no XML, even where it begins as XML does: `&` stands unescaped, names of tags and attributes
are in any case, and a segment may span lines. Documents of one docid with different sysid are
several references. `&amp; &lt; &gt; &quot; &apos;` are decoded, once. Source:
scripts/ems/support/reference-from-sgm.perl of https://github.com/moses-smt/mosesdecoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rerank.corpus.documents import (
    DocumentFile,
    EvaluationSet,
    EvaluationSetBuilder,
    Role,
    shown_id,
)
from rerank.errors import InputError, shown
from rerank.formats.tokens import Place, bounded, chunks, first_line
from rerank.notices import Notices

_OF_XML: Mapping[str, tuple[Role, str]] = {  # and the attribute with the name of a text
    "src": ("source", "translator"),
    "ref": ("reference", "translator"),
    "hyp": ("system", "system"),
}
_XML = re.compile(rb"\s*<(?:\?xml\b|dataset\b|collection\b|!DOCTYPE\b|!--)")
_DATASET = re.compile(rb"<(?:dataset|collection)\b|<!ENTITY\b|<!DOCTYPE\b")
_NUMBER = re.compile("[1-9][0-9]{0,8}")
_BLOCK_BYTES = 1 << 16  # the parser is slow on many short pieces
_DEEPEST = 50  # elements in each other; the schema has 6
_LONGEST = 16 << 20  # bytes of a segment
_OF_SGML: Mapping[bytes, Role] = {b"srcset": "source", b"refset": "reference", b"tstset": "system"}
_TAG = re.compile(rb"<(/?)(srcset|refset|tstset|doc|seg)\b([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"""(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
)
_ENTITY = re.compile(rb"&(amp|lt|gt|quot|apos);")
_CHARACTERS = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_SGML = re.compile(
    rb"(?:^|>)\s*<(?:(?:srcset|refset|tstset|mteval)\b|!DOCTYPE\s+mteval|doc\s[^>]*docid\s*=)",
    re.IGNORECASE,
)
_NO_TRANSLATION = b"NO BEST TRANSLATION"


class WmtXml:
    """WMT XML."""

    name = "wmt-xml"
    description = "WMT XML since 2021: collections, several references and systems in one file."
    example = (
        b'<?xml version="1.0" encoding="utf-8"?>\n<dataset id="t"><doc id="d1">\n'
        b'<src lang="ru"><p><seg id="1">one</seg></p></src>\n'
        b'<ref lang="en" translator="A"><p><seg id="1">the lamp is lit .</seg></p></ref>\n'
        b"</doc></dataset>\n"
    )
    has_texts = True
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the file begins as XML, and has a data set or declarations."""
        is_nist = any(map(_SGML.search, head)) and not any(b"<!ENTITY" in line for line in head)
        is_xml = _XML.match(first_line(head)) is not None
        return is_xml and not is_nist and any(map(_DATASET.search, head))

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: DocumentFile
    ) -> EvaluationSet:
        """The documents and texts; InputError where the XML is not valid."""
        from xml.etree.ElementTree import ParseError

        from defusedxml.common import DefusedXmlException
        from defusedxml.ElementTree import DefusedXMLParser

        place = Place(source, notices)
        target = _XmlTarget(place)
        # the declaration of a file may name another encoding, but its lines were read as UTF-8
        parser: Any = DefusedXMLParser(target=target, encoding="utf-8", forbid_dtd=True)
        target.line_number = lambda: int(parser.parser.CurrentLineNumber)
        try:
            line_end = b""
            for block in chunks(bounded(lines, source), _BLOCK_BYTES):
                parser.feed(line_end + b"\n".join(block))
                line_end = b"\n"
            parser.close()
        except DefusedXmlException:
            raise place.fault(
                "expected XML without declarations, found a document type or an entity; entities "
                "are not allowed: remove the <!DOCTYPE …> and write the characters themselves",
                target.line_number(),
            ) from None
        except ParseError as fault:
            reason = re.sub(r": line \d+, column \d+", "", str(fault))
            raise place.fault(
                f"expected valid XML, found a fault: {reason}; check the file with xmllint",
                min(fault.position[0], target.line_number()),
            ) from None
        return target.builder.finish(notices)


class _XmlTarget:
    """Receives the elements from the parser; `line_number` is set to where the parser is."""

    def __init__(self, place: Place) -> None:
        self.line_number: Callable[[], int] = lambda: 1
        self.builder = EvaluationSetBuilder(place.source, sort_key=int)
        self._place = place
        self._depth, self._collection = 0, ""
        self._owners: dict[str, tuple[str, int]] = {}  # collection and line of each id
        self._document: str | None = None
        self._text: tuple[Role, str] | None = None
        self._segment: str | None = None
        self._parts: list[str] = []
        self._size = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """A tag opens."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._fault("elements of WMT XML", "too deep a nesting", "is it another format?")
        if self._depth == 1 and tag not in ("dataset", "collection", "doc"):
            raise self._fault(
                "<dataset> of WMT XML", f"<{tag[:40]}>", "NIST SGML has <refset> or <srcset>"
            )
        if tag == "collection":
            self._collection = attributes.get("id", "")
        elif tag == "doc":
            self._document = self._document_id(attributes)
        elif tag in _OF_XML and self._document is not None:
            role, key = _OF_XML[tag]
            self._text = role, "" if role == "source" else attributes.get(key, "")
        elif tag == "seg" and self._text is not None:
            self._segment = attributes.get("id", "")
            if not _NUMBER.fullmatch(self._segment):
                what = f"{self._segment[:40]!r}"
                raise self._fault("a number from 1 as id of a segment", what, "number them")
            self._parts, self._size = [], 0

    def data(self, text: str) -> None:
        """Characters."""
        if self._segment is not None:
            self._parts.append(text)
            self._size += len(text)
            if self._size > _LONGEST:
                limit = f"at most {_LONGEST:,} characters in a segment"
                raise self._fault(limit, "more", "is this the right file?")

    def end(self, tag: str) -> None:
        """A tag closes."""
        self._depth -= 1
        if tag == "seg" and self._segment is not None and self._text and self._document:
            text = _one_line("".join(self._parts).encode())
            segment = (self._document, self._segment)
            self.builder.add(*self._text, segment, text, line=self.line_number())
            self._segment = None
        elif tag in _OF_XML:
            self._text = None
        elif tag == "doc":
            self._document = None

    def _document_id(self, attributes: Mapping[str, Any]) -> str:
        """Id of a document; of one whose id another collection has, with its own collection."""
        name = str(attributes.get("id", ""))
        if not name:
            raise self._fault("an id of the document", "none", "write <doc id=…>")
        if name in self._owners:
            if self._owners[name][0] == self._collection:
                raise self._fault(
                    "each document once in a collection",
                    f"{shown_id(name)} again, which began on line {self._owners[name][1]}",
                    "give it another id",
                )
            name = f"{self._collection}/{name}"
        self._owners[name] = self._collection, self.line_number()
        return name

    def _fault(self, expected: str, what: str, cure: str) -> InputError:
        message = f"expected {expected}, found {what}; {cure}"
        return self._place.fault(message, self.line_number())


class Sgml:
    """NIST SGML."""

    name = "sgml"
    description = "NIST SGML: srcset, refset (several references) and tstset of mteval."
    example = (
        b'<refset setid="t" srclang="zh" trglang="en" refid="r1">\n'
        b'<doc docid="d1">\n<seg id="1"> the lamp is lit . </seg>\n</doc>\n</refset>\n'
    )
    has_texts = True
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether a set, or a document with docid, begins at the beginning of a line."""
        return any(map(_SGML.search, head))

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: DocumentFile
    ) -> EvaluationSet:
        """The sets of a file; InputError for a tag that is not closed, or for a repeated id."""
        content = b"\n".join(bounded(lines, source))
        place, builder = Place(source, notices), EvaluationSetBuilder(source)
        role: Role = "reference"
        of_set: Mapping[str, str] = {}
        document: _OpenTag | None = None
        segment: _OpenTag | None = None
        number = counted = 0
        for tag in _TAG.finditer(content):
            place.line += content.count(b"\n", counted, tag.start())
            counted, kind, closes = tag.start(), tag[2].lower(), bool(tag[1])
            if segment is not None and document is not None:
                if kind != b"seg" or not closes:
                    raise _unclosed("</seg>", tag, place, segment.line)
                if not (docid := document.attributes.get("docid", "")):
                    message = "expected a docid of the document, found none; write <doc docid=…>"
                    raise place.fault(message, document.line)
                text = _one_line(content[segment.end : tag.start()])
                text = _ENTITY.sub(lambda entity: _CHARACTERS[entity[1]], text)
                if text == _NO_TRANSLATION and role == "system":
                    place.note("no-translation", line=segment.line)
                    text = b""
                name = _text_name(role, document.attributes, of_set)
                segment_id = docid, segment.attributes.get("id", str(number))
                builder.add(role, name, segment_id, text, line=segment.line)
                segment = None
            elif kind == b"seg":
                if closes or document is None:
                    expected = "<seg>" if closes else '<doc docid="…">'
                    raise _unclosed(expected, tag, place, place.line)
                segment = _OpenTag(_attributes(tag[3]), place.line, tag.end())
                number += 1
            elif kind == b"doc":
                document = None if closes else _OpenTag(_attributes(tag[3]), place.line, tag.end())
                number = 0
            else:
                role, of_set = _OF_SGML[kind], {} if closes else _attributes(tag[3])
        if segment is not None:
            message = "expected </seg> behind <seg>, found the end of the file; is it complete?"
            raise place.fault(message, segment.line)
        return builder.finish(notices)


@dataclass(frozen=True, slots=True)
class _OpenTag:
    """A tag that is open: its attributes, its line, and where it ends in the file."""

    attributes: Mapping[str, str]
    line: int
    end: int


def _text_name(role: Role, document: Mapping[str, str], of_set: Mapping[str, str]) -> str:
    """Name of the text that a document belongs to, by the attributes; a source needs none."""
    if role == "source":
        return ""
    keys = ("sysid", "refid") if role == "system" else ("refid", "sysid")
    names = [attributes.get(key) for attributes in (document, of_set) for key in keys]
    if role == "reference":
        # in a set of one reference, sysid says who made the document
        names.insert(0, of_set.get("refid"))
    return next((name for name in names if name), "")


def _unclosed(expected: str, tag: re.Match[bytes], place: Place, line: int) -> InputError:
    return place.fault(
        f"expected {expected} before line {place.line}, found {shown(tag[0])}; close each "
        "segment and document before the next one",
        line,
    )


def _attributes(text: bytes) -> dict[str, str]:
    """Values of the attributes of a tag by name in lower case; their white space is kept."""
    pairs = _ATTRIBUTE.findall(text)
    return {name.decode().lower(): (a or b or c).decode() for name, a, b, c in pairs}


def _one_line(text: bytes) -> bytes:
    """The text of a segment on one line: white space around line ends is layout; the rest stays."""
    parts = (part.strip(b" \t") for part in text.replace(b"\r", b"\n").split(b"\n"))
    return b" ".join(part for part in parts if part)
