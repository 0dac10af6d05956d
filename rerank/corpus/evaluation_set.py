"""Evaluation sets: documents together with their source, references and system outputs.

Files such as NIST SGML and WMT XML name every segment by its document and its id. Texts of two
files are matched by these names, never by the order of the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rerank.corpus.documents import Documents, shown_id
from rerank.errors import InputError
from rerank.notices import Notices

Role: TypeAlias = Literal["source", "reference", "system"]
Segment: TypeAlias = tuple[str, str]
"""Document id and segment id."""
Lines: TypeAlias = Sequence[bytes | None]
"""A text (S,) of the segments of a set; None where the file has none of a segment."""


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """What a file says of S segments: their documents and, by role and name, their texts.

    file: name of the file in messages; texts: by role, each name with its lines (S,).
    """

    file: str
    documents: Documents
    texts: Mapping[Role, Mapping[str, Lines]] = field(default_factory=dict)

    def text(self, role: Role, name: str | None = None) -> dict[str, Lines]:
        """The texts of a role by name: all, or the one that is named.

        InputError if there is none, or not that one. Complexity O(1).
        """
        found = dict(self.texts.get(role, {}))
        if name is None and found:
            return found
        if name is not None and name in found:
            return {name: found[name]}
        there = [f"{kind} {shown_name(one)}" for kind in self.texts for one in self.texts[kind]]
        wanted = f"a {role}" if name is None else f"the {role} {name!r}"
        cure = "name one of these as FILE#NAME" if found else "give the file that has it"
        raise InputError(
            f"expected {wanted}, found {', '.join(there[:30]) or 'no texts'}; {cure}",
            source=self.file,
        )


@dataclass(slots=True)
class _Text:
    lines: dict[Segment, bytes] = field(default_factory=dict)


class EvaluationSetBuilder:
    """Collects the segments of a file into an `EvaluationSet`.

    source: name of the file in messages; sort_key: order of the segments within a document
    [default: that of the file]. Memory: the texts, and about 200 bytes per segment and text.
    """

    def __init__(self, source: str, *, sort_key: Callable[[str], int] | None = None) -> None:
        self._source, self._sort_key = source, sort_key
        self._texts: dict[Role, dict[str, _Text]] = {}
        self._documents: dict[str, dict[str, None]] = {}  # ids of the segments, in order

    def add(
        self, role: Role, name: str, segment: Segment, text: bytes, *, line: int | None = None
    ) -> None:
        """One segment of a text; InputError if the text has it already."""
        lines = self._texts.setdefault(role, {}).setdefault(name, _Text()).lines
        document, number = segment
        if segment in lines:
            raise InputError(
                f"expected one segment {number!r} of document {shown_id(document)} in {role} "
                f"{shown_name(name)}, found two; number segments from 1 in each document, and "
                "give each further reference a name of its own",
                source=self._source,
                line=line,
            )
        lines[segment] = text
        self._documents.setdefault(document, {}).setdefault(number)

    def finish(self, notices: Notices) -> EvaluationSet:
        """The set; segments that a source lacks are left out, with a notice."""
        sources = self._texts.get("source", {})
        known: set[Segment] = set().union(*(text.lines for text in sources.values()))
        segments: list[Segment] = []
        starts = [0]
        ids = []
        for document, numbers in self._documents.items():
            order = sorted(numbers, key=self._sort_key) if self._sort_key else list(numbers)
            found = [(document, number) for number in order]
            kept = [one for one in found if one in known] if sources else found
            if len(kept) < len(found):
                notices.add(
                    "segment that the source does not have, left out",
                    source=self._source,
                    count=len(found) - len(kept),
                )
            if kept:
                segments += kept
                ids.append(document)
                starts.append(len(segments))
        if not segments:
            raise InputError(
                "expected segments of documents, found none; is this the right file?",
                source=self._source,
            )
        return EvaluationSet(
            self._source,
            Documents(tuple(ids), tuple(starts), segments=tuple(number for _, number in segments)),
            {
                role: {name: [text.lines.get(s) for s in segments] for name, text in texts.items()}
                for role, texts in self._texts.items()
            },
        )


def aligned(lines: Lines, found: EvaluationSet, target: Documents) -> list[bytes | None]:
    """Lines (S',) of a text of `found` for each sentence of `target`, matched by name.

    None for a sentence that `found` lacks. Where one of the two has no segment ids, sentence n of a
    document is matched with its n-th line, and InputError is raised if a document of both has
    different numbers of them. O(S + S').
    """
    both = found.documents.segments is not None and target.segments is not None
    if not both:
        _check_sizes(found, target)
    names, wanted = (_names(one, numbered=not both) for one in (found.documents, target))
    if names == wanted:
        return list(lines)
    by_name = dict(zip(names, lines, strict=True))
    return [by_name.get(name) for name in wanted]


def shown_name(name: str) -> str:
    """Name of a text for a message; a text without a name is `(unnamed)`."""
    return shown_id(name) if name else "(unnamed)"


def _check_sizes(found: EvaluationSet, target: Documents) -> None:
    """InputError if a document of both has another number of sentences in each."""
    sizes = {name: stop - start for name, start, stop in _spans(target)}
    for name, start, stop in _spans(found.documents):
        if name in sizes and sizes[name] != stop - start:
            raise InputError(
                f"expected {sizes[name]} segments of document {shown_id(name)} as the documents "
                f"have, found {stop - start}; give --docs a file with segment ids, or correct one",
                source=found.file,
            )


def _names(documents: Documents, *, numbered: bool) -> list[Segment]:
    """Document and segment id of every sentence; numbered: by its number in the document."""
    ids = None if numbered else documents.segments
    return [
        (name, str(t - start + 1) if ids is None else ids[t])
        for name, start, stop in _spans(documents)
        for t in range(start, stop)
    ]


def _spans(documents: Documents) -> list[tuple[str, int, int]]:
    return [(name, *documents.span(d)) for d, name in enumerate(documents.ids)]
