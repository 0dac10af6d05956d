"""Scores of another tool for the outputs of systems, joined by system and segment.

`NAME=SYSTEM:FILE`: a number for each source line; `NAME=TABLE`: a table of all systems, TSV or CSV
with a heading, or JSON lines, with the columns `segment`, `system` and `value` (or NAME, or
`score`), and `document` where segments count within their document, otherwise through the source;
or what `comet-score` prints of them. A system may be called as its file is.
A segment is the id that the documents' file gives it, if all of the table are; otherwise its
number, from 0 if any of the table is 0, else from 1. `TABLE,reference=ID,direction=ID` keeps the
rows that have these in the columns `reference` and `direction`. What several systems have said has
the mean of their values. Every candidate needs a value of one of its systems at least; those of a
list that is merged with the systems have what the list's own feature NAME says.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.corpus.documents import Documents, shown_id
from rerank.corpus.kbest import KBest
from rerank.errors import InputError
from rerank.files.encoding import NUMBER
from rerank.files.lines import SURPLUS, is_pipe, read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.tokens import HEAD, Place, number, numbers_cure, plain_name, read_object
from rerank.notices import Notices

Floats = NDArray[np.float64]
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
_HEAD = 1 << 12  # bytes that tell a table
_SHOWN = 20  # references or directions in a message


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
        lines = (line[:_HEAD].strip() for line in islice(read_lines(self.path, Notices()), 1))
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
    found = _OPTION.fullmatch(value)
    if found is None or Path(value).exists():
        return value, {}
    return found[1], dict(key.split("=", 1) for key in found[2].split(",") if key)


class SystemScores:
    """Values of M systems in T sentences, from files that are read one after the other.

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
        own = self._values.T[sentences]
        for system in self._lists:
            if (column := f"{plain_name(system)}{self.name}") in names:
                own[:, self._rows[system]] = kbest.dense[:, names.index(column)]
        known = indicators & ~np.isnan(own)
        n_known = known.sum(axis=1)
        lacking = np.flatnonzero(indicators.any(axis=1) & (n_known == 0))
        if len(lacking):
            system = [*self._rows][indicators[lacking[0]].argmax()]
            raise self._missing(document, int(sentences[lacking[0]]), system)
        means: Floats = np.where(known, own, 0.0).sum(axis=1) / np.maximum(n_known, 1)
        return means

    def read(self, given: ScoreSource, notices: Notices) -> None:
        """Read a file of a system, or a table; InputError for a cell that has a value already."""
        self._files.append(display(given.path))
        if given.system is None:
            self._read_table(given, notices)
        else:
            self._read_lines(given.path, self._rows[given.system], notices)

    def _read_lines(self, path: FilePath, m: int, notices: Notices) -> None:
        """The numbers of a file with one for each source line, of system m."""
        expected, source = self.documents.n_file_lines, display(path)
        lines = list(islice(read_lines(path, notices), expected + SURPLUS))
        odd = [(n, line) for n, line in enumerate(lines, 1) if not NUMBER.fullmatch(line.strip())]
        if odd and (cure := numbers_cure([line for _, line in odd[:HEAD]], source)):
            raise InputError(
                f"expected a number for each source line, found {odd[0][1].decode()!r:.60}{cure}",
                source=source,
                line=odd[0][0],
            )
        while len(lines) > expected and not lines[-1].strip():
            lines.pop()
        if len(lines) != expected:
            raise InputError(
                f"expected {expected:,} lines, a number for each source line, found "
                f"{len(lines):,}; write one for each segment of the system",
                source=source,
                line=min(len(lines), expected) + 1,
            )
        values = [_number(line.strip(), self.name, source, n) for n, line in enumerate(lines, 1)]
        for t in range(self.documents.n_sentences):
            n = self.documents.line(t)
            if self._put(m, t, values[n], n + 1):
                raise self._second(m, t, n + 1, "give one file for each system")

    def _read_table(self, given: ScoreSource, notices: Notices) -> None:
        """The values of a table."""
        self._tables.append(len(self._files) - 1)
        source, kept = display(given.path), given.kept
        rows = [
            row
            if row.system in self._rows
            else replace(row, system=self._called.get(row.system, row.system))
            for row in _rows(self.name, given.path, notices)
        ]
        for column, value in kept.items():
            there = [*dict.fromkeys(getattr(row, column) for row in rows)]
            if value not in there:
                raise InputError(
                    f"expected rows of the {column} {value}, found {_listed(there)}; give one of "
                    "these",
                    source=source,
                )
        rows = [row for row in rows if all(getattr(row, key) == kept[key] for key in kept)]
        rows_of_systems = [row for row in rows if row.system in self._rows]
        places, documents = self._segments(rows_of_systems), {"", *self.documents.ids}
        again: list[tuple[_Row, int]] = []
        for row in rows:
            m, t = self._rows.get(row.system), places.get((row.document, row.segment))
            if m is None:
                kind, systems = "row-of-another-system", ", ".join(self._rows)
                notices.add(kind, source=source, line=row.line, systems=systems)
            elif t is not None:
                again += [(row, t)] if self._put(m, t, row.value, row.line) else []
            elif row.document in documents and not row.segment.isdecimal():
                raise InputError(
                    f"expected the number of a segment, found {row.segment!r}; number segments "
                    "from 0 or 1",
                    source=source,
                    line=row.line,
                )
            else:
                notices.add("row-of-another-segment", source=source, line=row.line)
        if again:
            self._refuse_second(given, again, rows_of_systems)

    def _segments(self, rows: Sequence[_Row]) -> dict[tuple[str, str], int]:
        """Sentences by document, or "" without one, and segment, as all of these rows name it."""
        documents = self.documents
        if documents.segments is not None:
            names = [name for name, own in documents.ranges() for _ in own]
            counts = Counter(documents.segments)
            found = {("", segment): t for t, segment in enumerate(documents.segments)}
            found = {key: t for key, t in found.items() if counts[key[1]] == 1}
            pairs = zip(names, documents.segments, strict=True)
            found |= {pair: t for t, pair in enumerate(pairs)}
            known = {"", *documents.ids}
            if all((row.document, row.segment) in found for row in rows if row.document in known):
                return found
        first = 0 if any(row.segment == "0" for row in rows) else 1
        found = {("", str(first + documents.line(t))): t for t in range(documents.n_sentences)}
        for name, own in documents.ranges():
            found |= {(name, str(n)): t for n, t in enumerate(own, first)}
        return found

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
        self,
        given: ScoreSource,
        again: Sequence[tuple[_Row, int]],
        rows: Sequence[_Row],
    ) -> NoReturn:
        """InputError for cells that rows of a table fill again, and the option that keeps one."""
        file, by_line = len(self._files) - 1, {row.line: row for row in rows}
        pairs = [(row, self._places[self._rows[row.system], t].tolist()) for row, t in again]
        own = [(row, by_line[line]) for row, (other, line) in pairs if other == file]
        keys = [k for k in _KEYS if any(getattr(a, k) != getattr(b, k) for a, b in own)]
        cure = "keep one of them"
        if keys:
            found = Counter(tuple(getattr(row, key) for key in keys) for row in rows)
            chosen = zip(keys, found.most_common(1)[0][0], strict=True)
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


def _rows(name: str, path: FilePath, notices: Notices) -> Iterator[_Row]:
    """The rows of a table."""
    source, header = display(path), list[str]()
    names = {**_COLUMNS, "value": (name.lower(), *_COLUMNS["value"])}
    for n, line in enumerate(read_lines(path, notices), 1):
        if not line.strip():
            continue
        if line.lstrip().startswith(b"{"):
            values = read_object(line, Place(source, notices, n)).items()
            found = {key.lower(): value for key, value in values}
        elif comet := _COMET.fullmatch(text := line.decode(errors="replace").strip()):
            found = comet.groupdict()
        elif not header and "\tscore: " in text:  # COMET's mean of a system
            continue
        else:
            fields = _split(text)
            if not header:
                header = [one.lower() for one in fields]
                continue
            found = dict(zip(header, fields, strict=False))
        given = {
            column: next((found[one] for one in known if found.get(one) is not None), "")
            for column, known in names.items()
        }
        own = {column: str(value).strip() for column, value in given.items()}
        if lacking := next((column for column in _NEEDED if not own[column]), None):
            raise InputError(
                f"expected the columns segment, system and value of {name}, found no {lacking} "
                f"of segment {own['segment'] or None} and system {own['system'] or None}; name the "
                "columns in the heading, and fill them",
                source=source,
                line=n,
            )
        value = _number(own.pop("value").encode(), name, source, n)
        segment = own.pop("segment")
        segment = str(int(segment)) if segment.isdecimal() else segment
        yield _Row(line=n, value=value, segment=segment, **own)


def _number(token: bytes, name: str, source: str, line: int) -> float:
    try:
        return number(token, name)
    except InputError as fault:
        raise InputError(str(fault), source=source, line=line) from None


def _split(line: str) -> list[str]:
    """The fields of a line of TSV or, where it has no TAB, of CSV."""
    fields = line.split("\t") if "\t" in line else next(csv.reader([line]), [])
    return [field.strip() for field in fields]


def _listed(names: Iterable[str]) -> str:
    """Names in a message."""
    found = sorted(name or "(none)" for name in names)
    return ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
