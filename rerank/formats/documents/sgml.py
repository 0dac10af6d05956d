"""NIST SGML: source, reference and system sets of mteval, read with patterns as all tools do.

    <refset setid="test" srclang="zh" trglang="en" refid="r1">
    <doc docid="news-1" sysid="ref"><seg id="1"> AT&T rose . </seg></doc>
    </refset>

It is no XML: `&` stands unescaped, names of tags and attributes are in any case, attributes in any
order, and a segment may span lines. Several documents with one docid and different sysid are
several references. `&amp; &lt; &gt; &quot; &apos;` are decoded, once; other text stays as it is.

Source: scripts/ems/support/reference-from-sgm.perl of https://github.com/moses-smt/mosesdecoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rerank.corpus.documents import EvaluationSet, EvaluationSetBuilder, Role
from rerank.errors import InputError
from rerank.formats.documents.table import ReadingChoices, bounded, one_line
from rerank.formats.tokens import shown
from rerank.notices import Notices

_ROLES: Mapping[bytes, Role] = {b"srcset": "source", b"refset": "reference", b"tstset": "system"}
_TAG = re.compile(rb"<(/?)(srcset|refset|tstset|doc|seg)\b([^<>]*)>", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    rb"""(?<![A-Za-z_])([A-Za-z_]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
)
_ENTITY = re.compile(rb"&(amp|lt|gt|quot|apos);")
_CHARACTERS = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_SET = re.compile(rb"\s*<(?:srcset|refset|tstset)\b", re.IGNORECASE)
_MTEVAL = re.compile(rb"\s*<!DOCTYPE\s+mteval|\s*<mteval\b", re.IGNORECASE)
_DOC = re.compile(rb"\s*<doc\s[^>]*docid\s*=", re.IGNORECASE)
_NO_TRANSLATION = b"NO BEST TRANSLATION"


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
        return any(_SET.match(line) or _MTEVAL.match(line) or _DOC.match(line) for line in head)

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: ReadingChoices
    ) -> EvaluationSet:
        """The sets of a file; InputError for a tag that is not closed, or for a repeated id."""
        content = b"\n".join(bounded(lines, source))
        reading = _Reading(content, source, notices)
        for tag in _TAG.finditer(content):
            reading.take(tag)
        return reading.finish()


@dataclass(frozen=True, slots=True)
class _Open:
    """A tag that is open: its attributes, and its line."""

    attributes: Mapping[str, str]
    line: int


class _Reading:
    """The state of reading: the set, document and segment that are open."""

    def __init__(self, content: bytes, source: str, notices: Notices) -> None:
        self._content, self._source, self._notices = content, source, notices
        self._builder = EvaluationSetBuilder(source)
        self._role: Role = "reference"
        self._set: Mapping[str, str] = {}
        self._document: _Open | None = None
        self._segment: _Open | None = None
        self._number, self._start = 0, 0
        self._line, self._counted = 1, 0

    def take(self, tag: re.Match[bytes]) -> None:
        """The next tag."""
        self._line += self._content.count(b"\n", self._counted, tag.start())
        self._counted = tag.start()
        kind = tag[2].lower()
        if kind == b"seg":
            self._end_segment(tag) if tag[1] else self._begin_segment(tag)
            return
        if self._segment is not None:
            raise self._fault("</seg>", tag, self._segment.line)
        if kind == b"doc":
            self._document = None if tag[1] else _Open(_attributes(tag[3]), self._line)
            self._number = 0
        else:
            self._role = _ROLES[kind]
            self._set = {} if tag[1] else _attributes(tag[3])

    def finish(self) -> EvaluationSet:
        """What was read; InputError for a segment that is open."""
        if self._segment is not None:
            raise InputError(
                "expected </seg> behind <seg>, found the end of the file; is it complete?",
                source=self._source,
                line=self._segment.line,
            )
        return self._builder.finish(self._notices)

    def _begin_segment(self, tag: re.Match[bytes]) -> None:
        if self._segment is not None:
            raise self._fault("</seg>", tag, self._segment.line)
        if self._document is None:
            raise self._fault('<doc docid="…">', tag, self._line)
        self._segment = _Open(_attributes(tag[3]), self._line)
        self._start = tag.end()
        self._number += 1

    def _end_segment(self, tag: re.Match[bytes]) -> None:
        document, segment = self._document, self._segment
        if document is None or segment is None:
            raise self._fault("<seg>", tag, self._line)
        if not (docid := document.attributes.get("docid", "")):
            raise InputError(
                "expected a docid of the document, found none; write <doc docid=…>",
                source=self._source,
                line=document.line,
            )
        text = one_line(self._content[self._start : tag.start()])
        text = _ENTITY.sub(lambda found: _CHARACTERS[found[1]], text)
        if text == _NO_TRANSLATION and self._role == "system":
            kind = f"{_NO_TRANSLATION.decode()}, read as an empty translation"
            self._notices.add(kind, source=self._source, line=segment.line)
            text = b""
        number = segment.attributes.get("id", str(self._number))
        self._builder.add(self._role, self._name(), (docid, number), text, line=segment.line)
        self._segment = None

    def _name(self) -> str:
        """Name of the text that the open document belongs to; a source needs none."""
        if self._role == "source" or self._document is None:
            return ""
        keys = ("sysid", "refid") if self._role == "system" else ("refid", "sysid")
        found = [place.get(key) for place in (self._document.attributes, self._set) for key in keys]
        if self._role == "reference" and self._set.get("refid"):
            # in a set of one reference, sysid says who made the document
            found.insert(0, self._set["refid"])
        return next((name for name in found if name), "")

    def _fault(self, expected: str, tag: re.Match[bytes], line: int) -> InputError:
        return InputError(
            f"expected {expected} before line {self._line}, found {shown(tag[0])}; close each "
            "segment and document before the next one",
            source=self._source,
            line=line,
        )


def _attributes(text: bytes) -> dict[str, str]:
    """Values of the attributes of a tag by name in lower case; their white space is kept."""
    found = _ATTRIBUTE.findall(text)
    return {name.decode().lower(): (a or b or c).decode() for name, a, b, c in found}
