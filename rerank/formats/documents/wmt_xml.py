"""WMT XML (2021 and later): documents with source, references and outputs of several systems.

    <dataset id="wmt"><collection id="general"><doc id="news-1" origlang="ru">
      <src lang="ru"><p><seg id="1">…</seg></p></src>
      <ref lang="en" translator="refA"><p><seg id="1">…</seg></p></ref>
      <hyp lang="en" system="ONLINE-A"><p><seg id="1">…</seg></p></hyp>
    </doc></collection></dataset>

Sentences are ordered by document and by the number of the segment. A document type declaration is
refused: it may define entities, and nothing is fetched.

Source: schema/wmt-schema.rnc of https://github.com/wmt-conference/wmt-format-tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rerank.corpus.documents import EvaluationSet, EvaluationSetBuilder, Role, shown_id
from rerank.errors import InputError
from rerank.formats.documents.table import ReadingChoices, bounded, one_line
from rerank.notices import Notices

if TYPE_CHECKING:
    from xml.etree.ElementTree import XMLParser

_ROLES: Mapping[str, tuple[Role, str]] = {  # and the attribute with the name of a text
    "src": ("source", "translator"),
    "ref": ("reference", "translator"),
    "hyp": ("system", "system"),
}
_START = re.compile(rb"\s*<(?:\?xml\b|dataset\b|collection\b|!DOCTYPE\b|!--)")
_ELEMENT = re.compile(rb"<(?:dataset|collection)\b|<!ENTITY\b|<!DOCTYPE\b")
_NUMBER = re.compile("[1-9][0-9]{0,8}")
_BLOCK_BYTES = 1 << 16
_DEEPEST = 50  # elements in each other; the schema has 6
_LONGEST = 16 << 20  # bytes of a segment


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
        first = next(line for line in head if line.strip())
        return bool(_START.match(first)) and any(map(_ELEMENT.search, head))

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The documents and texts; InputError where the XML is not valid."""
        target = _Target(source, notices)
        parser = _parser(target)
        target.line_number = lambda: int(parser.parser.CurrentLineNumber)
        try:
            for block in _blocks(bounded(lines, source)):
                parser.feed(block)
            parser.close()
        except InputError:
            raise
        except Exception as fault:
            raise _located(fault, source, target.line_number()) from None
        return target.finish()


def _blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines in blocks of about 64 KiB: the parser is slow on many short pieces."""
    block, size = list[bytes](), 0
    for line in lines:
        block.append(line)
        size += len(line) + 1
        if size > _BLOCK_BYTES:
            yield b"\n".join([*block, b""])
            block, size = [], 0
    yield b"\n".join(block)


def _parser(target: _Target) -> XMLParser:
    """A parser that refuses declarations; imported here, because few commands read XML.

    The declaration of a file may name another encoding, but its lines were read as UTF-8.
    """
    from defusedxml.ElementTree import DefusedXMLParser

    return cast("XMLParser", DefusedXMLParser(target=target, encoding="utf-8", forbid_dtd=True))


def _located(fault: Exception, source: str, line: int) -> InputError:
    """An error of the parser as one of the input; other errors are raised."""
    from xml.etree.ElementTree import ParseError

    from defusedxml.common import DefusedXmlException

    if isinstance(fault, DefusedXmlException):
        return InputError(
            "expected XML without declarations, found a document type or an entity; entities are "
            "not allowed: remove the <!DOCTYPE …> and write the characters themselves",
            source=source,
            line=line,
        )
    if isinstance(fault, ParseError):
        reason = re.sub(r": line \d+, column \d+", "", str(fault))
        return InputError(
            f"expected valid XML, found a fault: {reason}; check the file with xmllint",
            source=source,
            line=min(fault.position[0], line),
        )
    raise fault


class _Target:
    """Receives the elements from the parser; `line_number` is set to where the parser is."""

    def __init__(self, source: str, notices: Notices) -> None:
        self.line_number: Callable[[], int] = lambda: 1
        self._source, self._notices = source, notices
        self._builder = EvaluationSetBuilder(source, sort_key=int)
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
        elif tag in _ROLES and self._document is not None:
            role, key = _ROLES[tag]
            self._text = role, "" if role == "source" else attributes.get(key, "")
        elif tag == "seg" and self._text is not None:
            self._segment = attributes.get("id", "")
            if not _NUMBER.fullmatch(self._segment):
                found = f"{self._segment[:40]!r}"
                raise self._fault("a number from 1 as id of a segment", found, "number them")
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
            text = one_line("".join(self._parts).encode())
            segment = (self._document, self._segment)
            self._builder.add(*self._text, segment, text, line=self.line_number())
            self._segment = None
        elif tag in _ROLES:
            self._text = None
        elif tag == "doc":
            self._document = None

    def close(self) -> None:
        """The end of the file."""

    def finish(self) -> EvaluationSet:
        """What was read."""
        return self._builder.finish(self._notices)

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

    def _fault(self, expected: str, found: str, cure: str) -> InputError:
        return InputError(
            f"expected {expected}, found {found}; {cure}",
            source=self._source,
            line=self.line_number(),
        )
