"""Document files without texts that are matched by name: ids, sizes, separators.

    talk-1      talk-1_1      talk-1 87       the lamp is lit .
    talk-1      talk-1_2      talk-2 112
    talk-2      talk-2_1                      she left .

`docids`: a document id per source line, alone on it or in a field that is chosen, since ids may
have spaces. Fields are parted by TABs if a line has any, otherwise by white space. Lines
`DOMAIN<TAB>DOCID` of mt-metrics-eval, and those of OPUS, two files and two lists of sentence
numbers, have their id in the second and first field. `numbered-docids`: the id of its document, `_`
and a number for each sentence, as Z-MERT takes them (`-docInfo`; Zaidan 2009,
https://cs.jhu.edu/~ozaidan/zmert/).

`sizes`: the number of sentences of each document, alone or behind its id.

`blank-lines` and `equals-lines`: text whose documents are parted by blank lines, as
`wmt-unwrap -d` and many language-model corpora have it, or by lines of `=`; a sentence on each
other line.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise

from rerank.corpus.documents import ID_BYTES, DocumentFile, Documents, EvaluationSet, shown_id
from rerank.errors import InputError, UsageError, shown
from rerank.formats.plain_texts import DOCUMENT_KEYS
from rerank.formats.tokens import Place
from rerank.notices import Notices

_PLACE = re.compile("[1-9][0-9]{0,5}")
_NUMBERED = re.compile(rb"(.+)[-_.:/#|,;(][0-9]{1,9}[)]?")
_OPUS = re.compile(rb"[^\t]+\.xml(?:\.gz)?\t[^\t]+\.xml(?:\.gz)?(?:\t[0-9s. :-]*){2}")
_SIZE = re.compile(rb"[0-9]{1,9}")
_SENTENCE = re.compile("(?i:s|seg|segment|sent|sentence|line)?[-_.# ]?[0-9]{1,9}")  # its number
_FEW = 4  # documents, whose ids may well be numbers
_HEAD_LINES = 2000  # from which the field of an id is recognised
_LARGEST = 10**9 - 1  # sentences of all documents


class DocumentIds(ABC):
    """A format that says which document a sentence belongs to, and has no texts to match."""

    has_texts = False
    takes_field = False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: DocumentFile
    ) -> EvaluationSet:
        """The documents of a file; `InputError` where it is not valid."""
        return EvaluationSet(source, self.documents(lines, Place(source, notices), choices))

    @abstractmethod
    def documents(self, lines: Iterable[bytes], place: Place, choices: DocumentFile) -> Documents:
        """The documents of a file; `InputError` where it is not valid."""


class Docids(DocumentIds):
    """Lines of document ids."""

    name = "docids"
    description = (
        "A document id per sentence, also as of OPUS or mt-metrics-eval; --docs-field N if it is "
        "another field of the line."
    )
    example = b"talk-1\ntalk-1\ntalk-2\n"
    takes_field = True

    def detect(self, head: Sequence[bytes]) -> bool:
        """True: any lines can be document ids, so that this format comes last."""
        return True

    def documents(self, lines: Iterable[bytes], place: Place, choices: DocumentFile) -> Documents:
        """The documents of the ids; InputError for a blank line and for an id that resumes."""
        ids = choices.limited(_short(lines, place), place.source)
        head = list(islice(ids, _HEAD_LINES)) if choices.field is None else []
        ids, field = chain(head, ids), choices.field or _field_of_ids(head)
        if field is not None:
            ids = _fields(ids, field, place)
        unchosen, apart = choices.field is None, choices.interleaved
        documents = Documents.from_lines(
            ids, source=place.source, interleaved=apart, may_be_sizes=unchosen
        )
        heading = re.split(r"[\s,;]+", documents.ids[0].lower())
        if documents.starts[:2] == (0, 1) and not {*DOCUMENT_KEYS}.isdisjoint(heading):
            raise place.fault(f"expected ids, found the heading {documents.ids[0]!r}; remove it", 1)
        option = ""
        if len(documents) == documents.n_sentences:
            rows = [name.split("\t") for name in documents.ids]
            columns = [*zip(*rows, strict=True)] if len({len(row) for row in rows}) == 1 else []
            if counts_on(documents.ids, "_") or counts_on(documents.ids, restart=True):
                option = "as Z-MERT has them, give --docs-format numbered-docids"
            elif choices.field is None and counts_on(documents.ids, r"\s+"):
                option = "with their numbers, give --docs-field 1"
            elif fields := [n for n, ids in enumerate(columns, 1) if 1 < _runs(ids) < len(rows)]:
                option = f"of which a field is the id, give --docs-field {fields[0]}"
            elif len(documents) > _FEW and all(map(_SENTENCE.fullmatch, documents.ids)):
                option = "give the ids of these, otherwise --no-docs each"
        if option:
            place.note(
                "documents-of-one-sentence",
                line=1,
                count=len(documents),
                ids="" if "a field" in option else " whose id ends in a number that counts on",
                cure=option,
            )
        return documents


class NumberedDocids(DocumentIds):
    """Lines `DOCID_NUMBER`; the number is not used, since lines are in the order of the text."""

    name = "numbered-docids"
    description = "DOCID_NUMBER per sentence, as of Z-MERT; needs --docs-format numbered-docids."
    example = b"talk-1_1\ntalk-1_2\ntalk-2_1\n"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Never: each such line may be an id of its own."""
        return False

    def documents(self, lines: Iterable[bytes], place: Place, choices: DocumentFile) -> Documents:
        """The documents; InputError for a line without a number, and for an id that resumes."""
        ids = choices.limited(_without_numbers(_short(lines, place), place), place.source)
        return Documents.from_lines(ids, source=place.source, interleaved=choices.interleaved)


def _short(lines: Iterable[bytes], place: Place) -> Iterator[bytes]:
    """The lines; InputError for one that is too long for an id."""
    for line in place.numbered(lines):
        if len(line) > ID_BYTES:
            raise place.fault(
                f"expected at most {ID_BYTES} bytes in a line, found more; is this a file of "
                "document ids? `rerank list document-formats` shows the other formats"
            )
        yield line


def _fields(lines: Iterable[bytes], field: str, place: Place) -> Iterator[bytes]:
    """The chosen field of each line."""
    if _PLACE.fullmatch(field) is None:
        raise UsageError(f"--docs-field {field}: expected the number of a field, from 1")
    for line in lines:
        fields = line.split(b"\t") if b"\t" in line else line.split()
        if int(field) > len(fields):
            raise place.fault(
                f"expected a field {field} as --docs-field says, found {len(fields)} "
                f"in {shown(line)}; choose another field"
            )
        yield fields[int(field) - 1]


def _without_numbers(lines: Iterable[bytes], place: Place) -> Iterator[bytes]:
    """The document of each line `DOCID_NUMBER`."""
    for line in lines:
        numbered = _NUMBERED.fullmatch(line.strip())
        if numbered is None:
            raise place.fault(
                f"expected DOCID_NUMBER, found {shown(line)}; leave out --docs-format if each line "
                "is a document id"
            )
        yield numbered[1]


def _field_of_ids(lines: Sequence[bytes]) -> str | None:
    """Field of the document id in lines of OPUS or of mt-metrics-eval; None for other lines."""
    if lines and all(map(_OPUS.fullmatch, lines)):
        return "1"
    rows = [line.split(b"\t") for line in lines]
    if any(len(row) != 2 or not all(map(bytes.strip, row)) for row in rows):
        return None
    ids, domains = [row[1] for row in rows], {row[1]: row[0] for row in rows}
    alike = all(domains[document] == domain for domain, document in rows)
    return "2" if alike and 1 < _runs(ids) < len(rows) else None


def _runs(values: Sequence[object]) -> int:
    """Number of runs of equal values; 0 if a value is in two of them."""
    runs = 1 + sum(value != following for value, following in pairwise(values))
    return runs if runs == len(set(values)) else 0


def counts_on(
    ids: Sequence[str], separator: str = "[-_.:/#|,;(]", *, restart: bool = False
) -> bool:
    """Whether all ids are a name, the separator and 1, 2, …, and some names have two at least.

    restart: whether two names at least must have two.
    """
    pattern = re.compile(rf"(.+?){separator}([0-9]{{1,8}})[)]?")
    parts = [match.groups() for name in ids if (match := pattern.fullmatch(name))]
    steps = [(name, int(b) - int(a)) for (name, a), (other, b) in pairwise(parts) if name == other]
    names = {name for name, _ in steps}
    return len(parts) == len(ids) and {b for _, b in steps} == {1} and len(names) > restart


class Sizes(DocumentIds):
    """Lines `SIZE` or `DOCID SIZE`."""

    name = "sizes"
    description = (
        "The number of sentences of each document, as DOCID SIZE; sizes without ids need "
        "--docs-format sizes."
    )
    example = b"talk-1 2\ntalk-2 1\n"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether each line is a name and a number, and no name comes twice."""
        fields = [line.split() for line in b"\n".join(head).rstrip().split(b"\n")]
        pairs = all(len(parts) == 2 and _SIZE.fullmatch(parts[1]) for parts in fields)
        return pairs and len({parts[0] for parts in fields}) == len(fields)

    def documents(self, lines: Iterable[bytes], place: Place, choices: DocumentFile) -> Documents:
        """The documents; InputError for another line, and for an id that comes twice."""
        sizes: dict[str, int] = {}
        total = 0
        for line in place.filled(choices.limited(lines, place.source)):
            parts = line.split()
            if len(parts) > 2 or not _SIZE.fullmatch(parts[-1]):
                raise place.fault(
                    f"expected SIZE or DOCID SIZE, found {shown(line)}; a size is the number of "
                    "sentences of a document"
                )
            name = parts[0].decode() if len(parts) == 2 else str(place.line)
            size = int(parts[-1])
            if name in sizes:
                raise place.fault(
                    f"expected each document once, found {shown_id(name)} again; give each "
                    "document an id of its own, or, if these are ids and sentence numbers, "
                    "--docs-format docids --docs-field 1"
                )
            total += size
            if total > _LARGEST:
                raise place.fault(
                    f"expected at most {_LARGEST:,} sentences, found {total:,}; are these numbers "
                    "ids? then give --docs-format docids"
                )
            if size == 0:
                place.note("empty-document")
            sizes[name] = size
        if not sizes:
            raise InputError("expected the size of each document, found none", source=place.source)
        return Documents.of_sizes(sizes)


class SeparatedText(DocumentIds):
    """Text whose documents are parted by lines that are no sentences."""

    separator: re.Pattern[bytes]

    def documents(self, lines: Iterable[bytes], place: Place, choices: DocumentFile) -> Documents:
        """The documents, with numbers from 1 as ids."""
        ids = choices.limited(self._ids(lines), place.source)
        return Documents.from_lines(ids, source=place.source)

    def _ids(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The number of its document, from 1, for each sentence."""
        number, ended = 0, True
        for line in lines:
            if not (separates := self.separator.fullmatch(line)):
                number += ended
                yield b"%d" % number
            ended = bool(separates)


class BlankLines(SeparatedText):
    """Text with a blank line between documents."""

    name = "blank-lines"
    description = "Text, a sentence per line, with a blank line between documents."
    example = b"the lamp is lit .\nit burns .\n\nshe left .\n"
    separator = re.compile(rb"\s*")

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether there is a blank line inside, and the others look like text, not like ids."""
        filled = [n for n, line in enumerate(head) if line.strip()]
        if filled[-1] - filled[0] + 1 == len(filled):
            return False
        pairs = [(head[a], head[b]) for a, b in pairwise(filled) if b == a + 1]
        repeated = sum(line == following for line, following in pairs)
        words = any(b" " in head[n].strip() or not head[n].isascii() for n in filled)
        return words and 2 * repeated <= len(pairs)


class EqualsLines(SeparatedText):
    """Text with a line of `=` between documents."""

    name = "equals-lines"
    description = "Text, a sentence per line, with a line of = signs between documents."
    example = b"the lamp is lit .\nit burns .\n=====\nshe left .\n"
    separator = re.compile(rb"\s*=+\s*")

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether there is a line of `=`."""
        return any(map(self.separator.fullmatch, head))


def without_separators(lines: Sequence[bytes], documents: Documents) -> list[bytes] | None:
    """The sentences of a text that is parted by blank lines or `=` just where documents end.

    None for another text. O(lines).
    """
    ends = set(documents.starts[1:])
    for separator in (BlankLines.separator, EqualsLines.separator):
        sentences, places = list[bytes](), set[int]()
        for line in lines:
            if separator.fullmatch(line):
                places.add(len(sentences))
            else:
                sentences.append(line)
        n = documents.n_sentences
        if len(sentences) == n and places - {0, n} == ends - {n}:
            return sentences
    return None
