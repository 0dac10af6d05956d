"""Documents: ranges of consecutive sentences, which are lines of the files of a run. Their texts.

Files such as NIST SGML and WMT XML name every segment by its document and its id. Texts of two
files are matched by these names, never by the order of the lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice, pairwise
from typing import Literal, TypeAlias, TypeVar

from rerank.errors import InputError
from rerank.files.paths import FilePath
from rerank.notices import Notices

Item = TypeVar("Item")
ID_BYTES = 1 << 13  # of an id; all of them are in memory
_MANY = 1 << 16  # lines of ids that are read before the lines that need them are counted
_SIZE = re.compile("[0-9]{1,9}")
PARAGRAPH = re.compile("(.+_#_.+_#_.+)_#_([0-9]{1,9})")  # LANGUAGES_#_DOMAIN_#_DOCUMENT_#_NUMBER
_ID_AND_SIZE = re.compile(r"\S+\s+[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Documents:
    """D documents of T sentences; document d has sentences starts[d]:starts[d + 1], from 0.

    lines: (T,) line of the files, from 0, of each sentence, if lines of documents alternate or some
    are left out; file_length: number of lines of the files then. segments: (T,) ids of the
    sentences within their documents, if their file has any. cure: how their file may be read
    otherwise, for messages about files of another length.
    """

    ids: tuple[str, ...]  # (D,), all different; never used as file names
    starts: tuple[int, ...]  # (D+1,)
    lines: tuple[int, ...] | None = None
    file_length: int | None = None
    segments: tuple[str, ...] | None = None
    cure: str = field(default="", compare=False)

    @classmethod
    def from_lines(
        cls,
        lines: Iterable[bytes],
        *,
        source: str = "",
        interleaved: bool | None = None,
        may_be_sizes: bool = False,
        cure: str = "",
    ) -> Documents:
        """Documents of lines that are document ids, one per source line.

        Ids of WMT25 that end in the number of a paragraph name a segment of a document.
        interleaved: whether lines of a document may stand apart, and are put together; None where
        the command has no option for it. may_be_sizes: whether messages name the format `sizes`
        where ids look like it. cure: as of the class.
        """
        places: dict[str, list[int]] = {}  # lines of each document
        current = None
        for n, line in enumerate(lines):
            name = _id(line, source, n + 1)
            if name != current and name in places and not interleaved:
                option = "" if interleaved is None else ", or give --allow-interleaved"
                sizes = _sizes_cure(places) if may_be_sizes else ""
                raise InputError(
                    f"expected each document in one run of lines, but {shown_id(name)}, which "
                    f"began on line {places[name][0] + 1}, continues here; "
                    f"{sizes and f'{sizes}; otherwise '}give these lines another id, or sort "
                    f"source, references and lists by document{option}",
                    source=source,
                    line=n + 1,
                )
            places.setdefault(name, []).append(n)
            current = name
        if not places:
            raise InputError("expected one document id per source line, found none", source=source)
        order = tuple(chain.from_iterable(places.values()))
        if len(places) == len(order) and (parts := _paragraphs(places)):
            documents = cls.of_sizes({name: len(numbers) for name, numbers in parts.items()})
            return replace(documents, segments=tuple(chain.from_iterable(parts.values())))
        documents = cls.of_sizes({name: len(lines_of) for name, lines_of in places.items()})
        documents = replace(documents, cure=_sizes_cure(places) if may_be_sizes else cure)
        if order == tuple(range(len(order))):
            return documents
        return replace(documents, lines=order, file_length=len(order))

    @classmethod
    def of_sizes(cls, sizes: Mapping[str, int]) -> Documents:
        """Documents of these numbers of sentences, by id, in order."""
        return cls(tuple(sizes), (0, *accumulate(sizes.values())))

    @classmethod
    def each(cls, n: int) -> Documents:
        """Each of n lines as a document, whose id is the number of the line from 0."""
        return cls(tuple(map(str, range(n))), tuple(range(n + 1)))

    @classmethod
    def one(cls, n: int) -> Documents:
        """All n lines as one document."""
        return cls(("all",), (0, n))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_sentences(self) -> int:
        """Number of source sentences."""
        return self.starts[-1]

    @property
    def n_file_lines(self) -> int:
        """Number of lines that files of these documents have."""
        return self.n_sentences if self.file_length is None else self.file_length

    @property
    def interleaved(self) -> bool:
        """Whether lines of the files are not in the order of the sentences."""
        return self.lines is not None and any(a > b for a, b in pairwise(self.lines))

    @property
    def n_left_out(self) -> int:
        """Number of lines of the files that are no sentence here."""
        return self.n_file_lines - self.n_sentences

    def line(self, sentence: int) -> int:
        """Line of the files, from 0, of a sentence."""
        return sentence if self.lines is None else self.lines[sentence]

    def in_order(self, lines: Sequence[Item]) -> Sequence[Item]:
        """The items of the lines of a file (n_file_lines,), by sentence (T,)."""
        return lines if self.lines is None else [lines[place] for place in self.lines]

    def selected(self, kept: Sequence[bool]) -> Documents:
        """The documents of some of the sentences (T,); documents without any are left out."""
        places, ids = self.lines or range(self.n_sentences), self.segments
        sentences = [t for t in range(self.n_sentences) if kept[t]]
        sizes = {name: sum(bool(kept[t]) for t in numbers) for name, numbers in self.ranges()}
        return replace(
            Documents.of_sizes({name: size for name, size in sizes.items() if size}),
            lines=tuple(places[t] for t in sentences),
            file_length=self.n_file_lines,
            segments=None if ids is None else tuple(ids[t] for t in sentences),
        )

    def split(self, lines: Sequence[Item]) -> list[Sequence[Item]]:
        """The part of each document in a sequence of something for every source sentence."""
        return [lines[start:stop] for start, stop in pairwise(self.starts)]

    def in_pieces(self, most: int) -> Documents:
        """Pieces of the documents, of at most so many sentences each, with numbers as ids."""
        starts = [s for a, b in pairwise(self.starts) for s in range(a, max(b, a + 1), most)]
        ids = tuple(map(str, range(len(starts))))
        return replace(self, ids=ids, starts=(*starts, self.n_sentences))

    def span(self, d: int) -> tuple[int, int]:
        """First source sentence of document d, and the one after its last."""
        return self.starts[d], self.starts[d + 1]

    def ranges(self) -> list[tuple[str, range]]:
        """The id and the source sentences of each document."""
        ranges = (range(start, stop) for start, stop in pairwise(self.starts))
        return list(zip(self.ids, ranges, strict=True))


def difference_of(documents: Documents, expected: Documents) -> str:
    """The first document that differs in id, size or segments; empty if none does."""
    ids, wanted = documents.segments, expected.segments
    for d, (name, other) in enumerate(zip(documents.ids, expected.ids, strict=False)):
        if name != other:
            return f"document {shown_id(name)} where it has {shown_id(other)}"
        (a, b), (start, stop) = documents.span(d), expected.span(d)
        if b - a != stop - start:
            return f"{b - a} sentences of document {shown_id(name)}, not {stop - start}"
        if ids is not None and wanted is not None and ids[a:b] != wanted[start:stop]:
            return f"other segments of document {shown_id(name)}"
    if len(documents) != len(expected):
        return f"{len(documents)} documents, not {len(expected)}"
    return ""


def _id(line: bytes, source: str, number: int) -> str:
    """The document id on a line of UTF-8, without white space around it."""
    name = line.decode().strip(" \t\r")
    if not name:
        raise InputError(
            "expected a document id, found a blank line; give each source line one, or, where "
            "blank lines stand between documents, give --docs-format blank-lines",
            source=source,
            line=number,
        )
    return name


def _paragraphs(ids: Iterable[str]) -> dict[str, list[str]]:
    """Numbers of the paragraphs of each document, as WMT25 names them; empty for other ids."""
    documents: dict[str, list[str]] = {}
    for name in ids:
        parts = PARAGRAPH.fullmatch(name)
        if parts is None or (parts[1] in documents and parts[1] != next(reversed(documents))):
            return {}
        numbers = documents.setdefault(parts[1], [])
        if numbers and int(numbers[-1]) >= int(parts[2]):
            return {}
        numbers.append(parts[2])
    return documents


def _sizes_cure(ids: Collection[str]) -> str:
    """What to do if these ids are sizes of documents; empty if they do not look like it."""
    if all(map(_SIZE.fullmatch, ids)):
        return "if these numbers are sizes of documents, give --docs-format sizes"
    if all(map(_ID_AND_SIZE.fullmatch, ids)):
        return (
            "if these are ids and sizes of documents, give each document an id of its own, and "
            "--docs-format sizes"
        )
    return ""


def shown_id(name: str) -> str:
    """A document id for a message: quoted, printable, at most 40 characters of it."""
    return repr(name) if len(name) <= 40 else f"{name[:40]!r}…"


Role: TypeAlias = Literal["source", "reference", "system"]
Segment: TypeAlias = tuple[str, str]
"""Document id and segment id."""
Lines: TypeAlias = Sequence[bytes | None]
"""A text (T,) of the segments of a set; None where the file has none of a segment."""


@dataclass(frozen=True, slots=True)
class DocumentFile(os.PathLike[str]):
    """Path of a document file, with what the user says of it.

    format_name: by default that of its content; field: number from 1 of the field that is the
    document id, or in JSON its key; interleaved: as of `Documents.from_lines`; most: number of
    sentences that can be needed.
    """

    path: FilePath
    format_name: str | None = None
    field: str | None = None
    interleaved: bool | None = None
    most: Callable[[], int] | None = None

    def limited(self, lines: Iterable[bytes], source: str) -> Iterator[bytes]:
        """The lines of sentences, or their ids; InputError for more than `_MANY` and `most()`."""
        lines = iter(lines)
        if self.most is not None:
            yield from islice(lines, _MANY)
            for line in lines:
                limit = max(_MANY + 1, self.most())
                yield line
                yield from islice(lines, limit - _MANY - 1)
                if next(lines, None) is not None:
                    raise InputError(
                        f"expected at most {limit:,} document ids for these translations, found "
                        "more; give one per source line",
                        source=source,
                        line=limit + 1,
                    )
        yield from lines

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """The T segments of a file: their documents and, by role and name, their texts (T,).

    file: name of the file in messages; cure: where the texts of each role must stand, likewise;
    truncated: segments that the file calls cut off.
    """

    file: str
    documents: Documents
    texts: Mapping[Role, Mapping[str, Lines]] = field(default_factory=dict)
    cure: str = ""
    truncated: frozenset[bytes] = frozenset()

    def text(self, role: Role, name: str | None = None) -> dict[str, Lines]:
        """All texts of a role by name, or the text of a name; InputError if there is none."""
        texts = dict(self.texts.get(role, {}))
        if name is None and texts:
            return texts
        if name is not None and name in texts:
            return {name: texts[name]}
        there = [f"{kind} {shown_name(label)}" for kind in self.texts for label in self.texts[kind]]
        wanted = f"a {role}" if name is None else f"the {role} {name!r}"
        cure = "name one of these as FILE#NAME" if texts else "give the file that has it"
        cure += f"; {self.cure}" if self.cure and not texts else ""
        fault = f"expected {wanted}, found {', '.join(there[:30]) or 'no texts'}; {cure}"
        raise InputError(fault, source=self.file)


class EvaluationSetBuilder:
    """Collects the segments of a file into an `EvaluationSet`.

    source: name of the file in messages; sort_key: order of the segments within a document
    [default: that of the file]. Memory: the texts, and about 200 bytes per segment and text.
    """

    def __init__(self, source: str, *, sort_key: Callable[[str], int] | None = None) -> None:
        self._source, self._sort_key = source, sort_key
        self._texts: dict[Role, dict[str, dict[Segment, bytes]]] = {}
        self._documents: dict[str, dict[str, None]] = {}  # ids of the segments, in order

    def add(
        self, role: Role, name: str, segment: Segment, text: bytes, *, line: int | None = None
    ) -> None:
        """One segment of a text; InputError if the text has it already."""
        lines = self._texts.setdefault(role, {}).setdefault(name, {})
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
        known: set[Segment] = set().union(*sources.values())
        segments, sizes = list[Segment](), dict[str, int]()
        for document, numbers in self._documents.items():
            order = sorted(numbers, key=self._sort_key) if self._sort_key else list(numbers)
            named = [(document, number) for number in order]
            kept = [segment for segment in named if segment in known] if sources else named
            if left_out := len(named) - len(kept):
                notices.add("segment-without-source", source=self._source, count=left_out)
            segments += kept
            sizes |= {document: len(kept)} if kept else {}
        if not segments:
            fault = "expected segments of documents, found none; is this the right file?"
            raise InputError(fault, source=self._source)
        ids = tuple(number for _, number in segments)
        documents = replace(Documents.of_sizes(sizes), segments=ids)
        texts = {
            role: {name: [text.get(s) for s in segments] for name, text in by_name.items()}
            for role, by_name in self._texts.items()
        }
        return EvaluationSet(self._source, documents, texts)


def aligned(lines: Lines, texts: EvaluationSet, target: Documents) -> list[bytes | None]:
    """Lines (n,) of a text of a set, one for each sentence of `target`, matched by name.

    None for a sentence that the set lacks. Where one of the two has no segment ids, sentence n of a
    document is matched with its n-th line, and InputError is raised if a document of both has
    different numbers of them. O(sentences of both).
    """
    documents = texts.documents
    by_id = documents.segments is not None and target.segments is not None
    if by_id:
        others = _segments_of(target)
        for name, ids in _segments_of(documents).items():
            expected = others.get(name, ())
            if len(ids) == len(expected) and set(ids) != set(expected):
                odd = next(segment for segment in ids if segment not in expected)
                raise InputError(
                    f"expected the segments of document {shown_id(name)} that the documents have, "
                    f"from {expected[0]!r:.40} on, found {odd!r:.40}; number the segments of "
                    "both alike, or leave out the ids of one",
                    source=texts.file,
                )
    else:
        sizes = {name: len(numbers) for name, numbers in target.ranges()}
        for name, numbers in documents.ranges():
            if sizes.get(name, len(numbers)) != len(numbers):
                raise InputError(
                    f"expected {sizes[name]} segments of document {shown_id(name)} as the "
                    f"documents have, found {len(numbers)}; "
                    f"{target.cure or 'give --docs a file with segment ids, or correct one'}",
                    source=texts.file,
                )
    names, wanted = _names(documents, numbered=not by_id), _names(target, numbered=not by_id)
    if names == wanted:
        return list(lines)
    by_name = dict(zip(names, lines, strict=True))
    return [by_name.get(name) for name in wanted]


def shown_name(name: str) -> str:
    """Name of a text for a message; a text without a name is `(unnamed)`."""
    return shown_id(name) if name else "(unnamed)"


def _segments_of(documents: Documents) -> dict[str, Sequence[str]]:
    """Ids of the segments of each document."""
    return dict(zip(documents.ids, documents.split(documents.segments or ()), strict=True))


def _names(documents: Documents, *, numbered: bool) -> list[Segment]:
    """Document and segment id of every sentence; numbered: by its number in the document."""
    ids = None if numbered else documents.segments
    return [
        (name, str(t - numbers.start + 1) if ids is None else ids[t])
        for name, numbers in documents.ranges()
        for t in numbers
    ]
