"""Numbers that another tool has written: one a line, or in a table of systems and segments.

A file of lines has a number for each line of a list or a text, in its order; FILE#NAME are
annotations of people, in a result file of Pearmut (`rerank.formats.pearmut`).

Of systems, `NAME=SYSTEM:FILE` is such a file for each source line, `NAME=TABLE` a table of all: TSV
or CSV with a heading, or JSON lines, with the columns `segment`, `system` and `value` (or NAME, or
`score`), and `document` where segments count within their document, otherwise through the source;
or what `comet-score` prints of them. A system may be called as its file is.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, starmap
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, shown
from rerank.files.encoding import LARGEST, NUMBER
from rerank.files.lines import SURPLUS, is_pipe, read_lines
from rerank.files.paths import FilePath, display, file_and_name
from rerank.files.signature import LENGTH, short_digest, signature
from rerank.formats.pearmut import read_annotations
from rerank.formats.tokens import HEAD, Number, Place, number, numbers_cure, plain_name, read_object
from rerank.notices import Notices

Floats = NDArray[np.float64]
_LINE_BYTES = 1 << 12  # kept of a line that is no number, or tells a table
_COLUMNS = {  # of tables, and what people call them
    "system": ("system", "sys", "engine"),
    "segment": ("segment", "seg", "segment_id", "seg_id", "sentence"),
    "document": ("document", "doc", "document_id", "doc_id", "docid"),
    "reference": ("reference", "ref", "refset", "ref_id"),
    "direction": ("direction", "langpair", "lp", "language_pair"),
    "value": ("value", "score"),
}
_NEEDED = ("segment", "system", "value")
_KEYS = ("direction", "reference")  # of a table's option, which keep some of its rows
_OPTION = re.compile(rf"(.*?)((?:,(?:{'|'.join(_KEYS)})=[^,]*)*)", re.DOTALL)
_COMET = re.compile(r"(?P<system>.*)\tSegment (?P<segment>[0-9]+)\tscore: (?P<value>.*)")
_SHOWN = 20  # references or directions in a message


@dataclass(frozen=True, slots=True, eq=False)
class LineValues(os.PathLike[str]):
    """Numbers (n,) of the lines of a list, in place of a file of them; name: for messages."""

    name: str
    values: NDArray[np.float64]

    def __fspath__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    @property
    def digest(self) -> str:
        """SHA-256 of a file with these numbers, in hexadecimal digits."""
        lines = "".join(f"{value!r}\n" for value in self.values.tolist())
        return hashlib.sha256(lines.encode()).hexdigest()


class NumberLines:
    """The numbers of a file with one on each line, for the lines of a list or a text.

    They are kept as float64, 8 bytes a line. name, lines_of: what messages call the numbers and the
    list or text; blank: lines of that without a text, for messages; parser: returns, given a
    function that counts clipped numbers, a parser for numbers that may be infinite; missing:
    whether `NA` is read as NaN. Blank lines at the end are ignored. InputError if the number of
    lines differs from `expected`, for which `SURPLUS` lines more are read, and where a line that is
    used holds no number.
    """

    def __init__(
        self,
        path: FilePath,
        name: str,
        expected: int,
        notices: Notices,
        *,
        lines_of: str,
        blank: Sequence[int] = (),
        parser: Callable[[Callable[[], None]], Number] | None = None,
        missing: bool = False,
    ) -> None:
        self.path, self.name, self._lines_of = path, name, lines_of
        self._parser, self._missing = parser, missing
        self._place = Place(display(path), notices, 0)
        self._sentence = -1  # first sentence of the document that was read last
        self._others: dict[int, bytes] = {}  # lines without a finite number, by number from 1
        if isinstance(path, LineValues):
            self._values = path.values
            return
        read = enumerate(islice(read_lines(path, notices), expected + SURPLUS), 1)
        self._values = np.fromiter(starmap(self._plain, read), np.float64)
        head = [line for _, line in zip(range(HEAD), self._others.values(), strict=False)]
        if [*self._others] == [1] and len(self._values) > expected:
            head.append(b"0")  # below a heading all are numbers
        if cure := numbers_cure(head, self._place.source):
            first = f"a number for each line of {lines_of}, found {shown(head[0])}"
            raise self._place.fault(f"expected {first}{cure}", next(iter(self._others)))
        n_lines = len(self._values)
        more = " or more" if n_lines == expected + SURPLUS else ""
        while n_lines and not self._others.get(n_lines, b"0").strip():
            n_lines -= 1
        if n_lines != expected:
            cure = "write one number for each of its lines, in their order"
            if n_lines == expected - len(blank):
                listed = ", ".join(map(str, blank[:_SHOWN])) + ", …" * (len(blank) > _SHOWN)
                cure += f", also for those without a text: {listed}"
            raise self._place.fault(
                f"expected {expected:,} lines as {lines_of} has, found {n_lines:,}{more}; {cure}",
                min(n_lines, expected) + 1,
            )

    @property
    def short_digest(self) -> str | None:
        """The first digits of the SHA-256 of the file; None of a pipe."""
        path = self.path
        return path.digest[:LENGTH] if isinstance(path, LineValues) else short_digest(path)

    def _plain(self, n: int, line: bytes) -> float:
        """The number of line n; NaN, and the line kept, if it is not finite and in range."""
        token = line.strip(b" \t\r")
        value = float(token) if NUMBER.fullmatch(token) else np.nan
        if abs(value) <= LARGEST:
            return value
        if not (self._missing and token == b"NA"):
            self._others[n] = line[:_LINE_BYTES]
        return np.nan

    def _number(self, n: int) -> float:
        """The number of a line that has no finite one, clipped; InputError for other lines."""
        clipped = partial(self._place.note, "infinite-number", line=n, asked=True)
        parse = number if self._parser is None else self._parser(clipped)
        try:
            return parse(self._others[n].strip(b" \t\r"), self.name)
        except InputError as fault:
            na = ", or NA" * self._missing
            cure = f"; write one for each line of {self._lines_of}, in their order{na}"
            raise self._place.fault(f"{fault}{cure * (self._parser is None)}", n) from None

    def at(self, lines: NDArray[np.int64]) -> Floats:
        """The numbers (n,) of lines, by their numbers from 1."""
        values: Floats = self._values[lines - 1]
        if self._others:
            for i in np.flatnonzero(np.isnan(values)).tolist():
                if lines[i] in self._others:
                    values[i] = self._number(int(lines[i]))
        return values

    def of_candidates(self, kbest: KBest) -> Floats:
        """The numbers (n,) of a document's candidates; 0 of those that are not in the list.

        Warnings are given for the first reading of a document only.
        """
        if kbest.line_numbers is None:
            raise self._place.fault(
                "expected candidates of a file, found candidates made in memory"
            )
        if kbest.first <= self._sentence:
            self._place.notices = Notices()
        self._sentence = kbest.first
        values, listed = np.zeros(kbest.n), np.flatnonzero(kbest.line_numbers > 0)
        values[listed] = self.at(kbest.line_numbers[listed])
        return values


def read_line_scores(
    path: str, name: str, documents: Documents, notices: Notices, *, text: str
) -> tuple[Floats, str]:
    """Values (T,) of a metric in a file, and the signature, which names both.

    text: whose lines they are of, in messages. NaN for NA, and for a sentence that nobody has
    judged. InputError with file and line as of `NumberLines`, and for a file of NA alone.
    """
    file, model = file_and_name(path)
    if model is not None:
        values = read_annotations(file, model, documents, notices)
    else:
        n, file = documents.n_file_lines, path
        numbers = NumberLines(path, name, n, notices, lines_of=text, missing=True)
        values = numbers.at(np.arange(1, n + 1))
    known = int((~np.isnan(values)).sum())
    if not known:
        raise InputError(f"expected values of {name}, found none but NA", source=display(path))
    digest = short_digest(file)
    origin = {"metric": name, "file": f"{Path(file).name}{f'={digest}' if digest else ''}"}
    partly = {"sentences": known} if model is not None or known < len(values) else {}
    if model is None:
        values = np.array(documents.in_order(values.tolist()))
    return values, signature({**origin, **partly})


@dataclass(frozen=True, slots=True)
class ScoreSource:
    """A value of `--scores NAME=…` or `--metric NAME=…`.

    system: of `SYSTEM:FILE`; kept: of a table, what its rows must have in the columns `_KEYS`.
    """

    path: FilePath
    system: str | None = None
    kept: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: str, systems: Iterable[str]) -> ScoreSource:
        """The file, and its system if that is one of these.

        >>> ScoreSource.of("A:a.comet", ["A"]).system, ScoreSource.of("./A:a.comet", ["A"]).system
        ('A', None)
        >>> ScoreSource.of("t.tsv,reference=refA", ["A"]).path
        't.tsv'
        """
        known = [name for name in systems if value.startswith(f"{name}:") and value != f"{name}:"]
        if known:
            system = max(known, key=len)
            return cls(value.removeprefix(f"{system}:"), system)
        path, keys = _file_and_keys(value)
        return cls(path, None, keys)

    @property
    def names_system(self) -> bool:
        """Whether it looks like SYSTEM:FILE of another system."""
        return self.system is None and file_of_scores(str(self.path)) != self.path

    @property
    def is_table(self) -> bool:
        """Whether the first line is a heading that names systems, or says a value of one."""
        if self.system is not None or self.names_system or is_pipe(self.path):
            return False
        if _COMET.fullmatch(self._head):
            return True
        first = self._head.lower()
        if first.startswith("{"):
            return any(f'"{name}"' in first for name in _COLUMNS["system"])
        return any(name in _split(first) for name in _COLUMNS["system"])

    @property
    def _head(self) -> str:
        lines = (line[:_LINE_BYTES].strip() for line in islice(read_lines(self.path, Notices()), 1))
        return next(lines, b"").decode(errors="replace")

    def check_numbers(self, systems: Iterable[str]) -> None:
        """InputError for a file beside systems that is no table and begins with no number."""
        if not is_pipe(self.path) and self._head and NUMBER.fullmatch(self._head.encode()) is None:
            raise InputError(
                "expected a table with the columns segment, system and value, what comet-score "
                f"prints, or SYSTEM:FILE with a number for each source line for each of "
                f"{', '.join(systems)}, found {self._head!r:.60}",
                source=display(self.path),
                line=1,
            )


def file_of_scores(value: str) -> str:
    """The file of a value whose systems are not known yet."""
    if Path(value).exists():
        return value
    path, keys = _file_and_keys(value)
    system, mark, file = path.partition(":")
    named = mark and file and "/" not in system and not (keys or Path(path).exists())
    return file if named else path


def _file_and_keys(value: str) -> tuple[str, dict[str, str]]:
    """The file of `TABLE,direction=ID,reference=ID`, and the keys; none of a file of that name."""
    option = _OPTION.fullmatch(value)
    if option is None or Path(value).exists():
        return value, {}
    return option[1], dict(key.split("=", 1) for key in option[2].split(",") if key)


class SystemScores:
    """Values of M systems in T sentences, from files that are read one after the other.

    A segment of a table is the id that the documents' file gives it, if all of the table are;
    otherwise its number, from 0 if any of the table is 0, else from 1. Every candidate needs a
    value of one of its systems at least; what several systems have said has the mean of their
    values, and those of a list that is merged with the systems have what the list's own feature
    NAME says.

    systems: by the label of their indicator feature; files: their names by what else tables call
    them; lists: those of them that are k-best lists, each with what gives it a feature of its own;
    option: that of the values, for messages.
    """

    def __init__(
        self,
        name: str,
        systems: Mapping[str, str],
        files: Mapping[str, str],
        lists: Mapping[str, str],
        documents: Documents,
        option: str,
    ) -> None:
        self.name, self.documents, self._option = name, documents, option
        self._labels, self._lists, self._called = [*systems], lists, files
        self._rows = {system: m for m, system in enumerate(systems.values())}
        self._values = np.full((len(systems), documents.n_sentences), np.nan)  # NaN: none
        self._places = np.zeros((*self._values.shape, 2), np.int64)  # file, and line from 1
        self._files: list[str] = []
        self._tables: list[int] = []  # which of the files

    def values(self, document: str, kbest: KBest) -> Floats:
        """Values (n,) of a document's candidates; InputError for one that has none."""
        names = column_names(kbest.labels)
        indicators = kbest.dense[:, [names.index(label) for label in self._labels]] > 0
        sentences = kbest.first + np.repeat(np.arange(len(kbest)), kbest.counts)
        values = self._values.T[sentences]
        for system in self._lists:
            if (column := f"{plain_name(system)}{self.name}") in names:
                values[:, self._rows[system]] = kbest.dense[:, names.index(column)]
        known = indicators & ~np.isnan(values)
        n_known = known.sum(axis=1)
        lacking = np.flatnonzero(indicators.any(axis=1) & (n_known == 0))
        if len(lacking):
            system = [*self._rows][indicators[lacking[0]].argmax()]
            raise self._missing(document, int(sentences[lacking[0]]), system)
        means: Floats = np.where(known, values, 0.0).sum(axis=1) / np.maximum(n_known, 1)
        return means

    def read(self, source: ScoreSource, notices: Notices) -> None:
        """Read a file of a system, or a table; InputError for a cell that has a value already."""
        self._files.append(display(source.path))
        if source.system is None:
            self._read_table(source, notices)
            return
        m, expected = self._rows[source.system], self.documents.n_file_lines
        lines = NumberLines(source.path, self.name, expected, notices, lines_of="the source")
        values = lines.at(np.arange(1, expected + 1)).tolist()
        for t, value in enumerate(self.documents.in_order(values)):
            n = self.documents.line(t) + 1
            if self._put(m, t, value, n):
                raise self._second(m, t, n, "give one file for each system")

    def _read_table(self, given: ScoreSource, notices: Notices) -> None:
        """The values of a table."""
        self._tables.append(len(self._files) - 1)
        place, kept = Place(display(given.path), notices, 0), given.kept
        rows = [
            row
            if row.system in self._rows
            else replace(row, system=self._called.get(row.system, row.system))
            for row in _rows(self.name, given.path, place)
        ]
        for column, value in kept.items():
            there = [*dict.fromkeys(getattr(row, column) for row in rows)]
            if value not in there:
                message = f"expected rows of the {column} {value}, found {_listed(there)}"
                raise InputError(f"{message}; give one of these", source=place.source)
        rows = [row for row in rows if all(getattr(row, key) == kept[key] for key in kept)]
        rows_of_systems = [row for row in rows if row.system in self._rows]
        places, documents = self._segments(rows_of_systems), {"", *self.documents.ids}
        again: list[tuple[_Row, int]] = []
        for row in rows:
            m, t = self._rows.get(row.system), places.get((row.document, row.segment))
            if m is None:
                systems = ", ".join(self._rows)
                place.note("row-of-another-system", line=row.line, systems=systems)
            elif t is not None:
                again += [(row, t)] if self._put(m, t, row.value, row.line) else []
            elif row.document in documents and not row.segment.isdecimal():
                raise place.fault(
                    f"expected the number of a segment, found {row.segment!r}; number segments "
                    "from 0 or 1",
                    row.line,
                )
            else:
                place.note("row-of-another-segment", line=row.line)
        if again:
            self._refuse_second(given, again, rows_of_systems)

    def _segments(self, rows: Sequence[_Row]) -> dict[tuple[str, str], int]:
        """Sentences by document, or "" without one, and segment, as all of these rows name it."""
        documents = self.documents
        if documents.segments is not None:
            names = [name for name, span in documents.ranges() for _ in span]
            counts = Counter(documents.segments)
            by_id = {
                ("", segment): t
                for t, segment in enumerate(documents.segments)
                if counts[segment] == 1
            }
            pairs = zip(names, documents.segments, strict=True)
            by_id |= {pair: t for t, pair in enumerate(pairs)}
            known = {"", *documents.ids}
            if all((row.document, row.segment) in by_id for row in rows if row.document in known):
                return by_id
        first = 0 if any(row.segment == "0" for row in rows) else 1
        numbered = {("", str(first + documents.line(t))): t for t in range(documents.n_sentences)}
        for name, span in documents.ranges():
            numbered |= {(name, str(n)): t for n, t in enumerate(span, first)}
        return numbered

    def _put(self, m: int, t: int, value: float, line: int) -> bool:
        """Fill a cell from a line of the last file; whether it had a value, which it keeps."""
        if not np.isnan(self._values[m, t]):
            return True
        self._values[m, t], self._places[m, t] = value, (len(self._files) - 1, line)
        return False

    def _second(self, m: int, t: int, line: int, cure: str) -> InputError:
        """The fault of a second value of a cell, on a line of the last file."""
        file, other = self._places[m, t].tolist()
        where = "on line" if file == len(self._files) - 1 else f"in {self._files[file]}, line"
        return InputError(
            f"expected one value of {self.name} for each segment of a system, found another of "
            f"system {[*self._rows][m]} and this segment {where} {other}; {cure}",
            source=self._files[-1],
            line=line,
        )

    def _refuse_second(
        self, given: ScoreSource, again: Sequence[tuple[_Row, int]], rows: Sequence[_Row]
    ) -> NoReturn:
        """InputError for cells that rows of a table fill again, and the option that keeps one."""
        file, by_line = len(self._files) - 1, {row.line: row for row in rows}
        places = [(row, self._places[self._rows[row.system], t].tolist()) for row, t in again]
        pairs = [(row, by_line[line]) for row, (other, line) in places if other == file]
        keys = [k for k in _KEYS if any(getattr(a, k) != getattr(b, k) for a, b in pairs)]
        cure = "keep one of them"
        if keys:
            counts = Counter(tuple(getattr(row, key) for key in keys) for row in rows)
            chosen = zip(keys, counts.most_common(1)[0][0], strict=True)
            kept = [f"{key}={value}" for key, value in {**given.kept, **dict(chosen)}.items()]
            value = f"{self.name}={','.join([display(given.path), *kept])}"
            there = (f"the {key}s {_listed({getattr(row, key) for row in rows})}" for key in keys)
            cure = f"keep the rows of one {' and '.join(keys)}: --{self._option} "
            cure += f"{shlex.quote(value)}; there are {' and '.join(there)}"
        row, t = again[0]
        raise self._second(self._rows[row.system], t, row.line, cure)

    def _missing(self, document: str, t: int, system: str) -> InputError:
        """The fault of a cell without a value, at the nearest line of a table."""
        start, _ = self.documents.span(self.documents.ids.index(document))
        source, line = ", ".join(self._files[:3]), None
        of_tables = np.isin(self._places[..., 0], self._tables) & ~np.isnan(self._values)
        cure = f"give --{self._option} {self.name}={system}:FILE"
        if self._tables:
            cure = f"call the systems in it as --systems does, {', '.join(self._rows)}"
        if len(known := np.argwhere(of_tables)):
            of_others = known[:, 0] != self._rows[system]
            nearest = known[np.lexsort((np.abs(known[:, 1] - t), of_others))[0]]
            file, line = self._places[tuple(nearest)].tolist()
            source, cure = self._files[file], "add a row near this one"
        return InputError(
            f"expected a value of {self.name} for segment {t - start + 1} of document "
            f"{shown_id(document)} and system {system}, found none; "
            f"{self._lists.get(system, cure)}",
            source=source,
            line=line,
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table; document, reference and direction are "" where it has none."""

    line: int
    document: str
    segment: str
    system: str
    reference: str
    direction: str
    value: float


def _rows(name: str, path: FilePath, place: Place) -> Iterator[_Row]:
    """The rows of a table."""
    header = list[str]()
    called = {**_COLUMNS, "value": (name.lower(), *_COLUMNS["value"])}
    for line in place.numbered(read_lines(path, place.notices)):
        if not line.strip():
            continue
        cells: Mapping[str, object]
        if line.lstrip().startswith(b"{"):
            cells = {key.lower(): value for key, value in read_object(line, place).items()}
        elif comet := _COMET.fullmatch(text := line.decode(errors="replace").strip()):
            cells = comet.groupdict()
        elif not header and "\tscore: " in text:  # COMET's mean of a system
            continue
        elif not header:
            header = [title.lower() for title in _split(text)]
            continue
        else:
            cells = dict(zip(header, _split(text), strict=False))
        values = {
            column: str(next((cells[x] for x in names if cells.get(x) is not None), "")).strip()
            for column, names in called.items()
        }
        if lacking := next((column for column in _NEEDED if not values[column]), None):
            raise place.fault(
                f"expected the columns segment, system and value of {name}, found no {lacking} "
                f"of segment {values['segment'] or None} and system {values['system'] or None}; "
                "name the columns in the heading, and fill them"
            )
        try:
            value = number(values.pop("value").encode(), name)
        except InputError as fault:
            raise place.fault(str(fault)) from None
        segment = values.pop("segment")
        segment = str(int(segment)) if segment.isdecimal() else segment
        yield _Row(line=place.line, value=value, segment=segment, **values)


def _split(line: str) -> list[str]:
    """The fields of a line of TSV or, where it has no TAB, of CSV."""
    fields = line.split("\t") if "\t" in line else next(csv.reader([line]), [])
    return [cell.strip() for cell in fields]


def _listed(names: Iterable[str]) -> str:
    """Names in a message."""
    shown = sorted(name or "(none)" for name in names)
    return ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")
