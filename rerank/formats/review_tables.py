"""Tables for reviewers, a row for each sentence, as `.xlsx`, `.csv` or `.tsv`: written and read.

Columns have headings: `line` of the source, from 1; `document`; `segment` in it, from 0; perhaps
`source`; `text`, which was chosen; `text of NAME` of each engine; others for people; and `final`,
the text to keep, which reviewers edit. Read again, `final` is a reference, and `text` and those of
the engines are outputs of systems. Rows may stand in any order, but of a document all are there.

A text of a workbook is a cell of type text, whatever it begins with, so that none is a formula.
Characters that XML does not allow are written as spreadsheets write them, `_x001B_`. All cells of
.csv are in quotes; those of .tsv stand as they are, but for TABs and line ends, which are spaces.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, dropwhile
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeAlias

from rerank.corpus.documents import DocumentFile, Documents, EvaluationSet, Lines, Role, shown_id
from rerank.errors import InputError, RerankError, UsageError
from rerank.files.lines import is_pipe
from rerank.files.paths import FilePath, display
from rerank.files.signature import comment
from rerank.formats.tokens import Place, bounded
from rerank.notices import Notices

PLACE = ("line", "document", "segment")
SOURCE, TEXT, FINAL, OF_ENGINE = "source", "text", "final", "text of "
CHOSEN = "chosen"  # the system of the column `text`
SUFFIXES = (".xlsx", ".csv", ".tsv")
_NEEDED = (*PLACE, TEXT, FINAL)
_MOST_UNPACKED = 512 << 20  # bytes of the XML of a workbook
_MOST_ROWS, _MOST_COLUMNS, _MOST_CHARACTERS = 1 << 20, 1000, 32_767  # of a sheet, of a cell
_WIDE, _NARROW, _MEDIUM = 60, 9, 24  # characters of a column: of texts, numbers, others
_FONT = "Calibri"
_LINE, _HIGHEST = 14, 400  # points, of a line and of a row
_NUMBERS = {"line", "segment", "margin", "changed", "score", "agreement"}
_OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # as .xls, and as workbooks with a password begin
_FORMULA = object()  # the value of a cell that has one
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_ESCAPED = re.compile("[\0-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_LINE_END = re.compile(r"[ \t]*[\r\n]+[ \t]*")


class Marked(NamedTuple):
    """A text as runs of words with spaces between, and of each whether it is marked as changed."""

    runs: Sequence[tuple[str, bool]]

    @property
    def text(self) -> str:
        """The whole text."""
        return " ".join(text for text, _ in self.runs)


Cell: TypeAlias = str | int | float | Marked | None
Row: TypeAlias = tuple[int, Sequence[object]]
"""The number of a row, or of its line, and the values of its cells."""


class TableWriter(Protocol):
    """Writes a table, a row at a time."""

    def write(self, cells: Sequence[Cell]) -> None:
        """Write a row, a cell under each heading."""
        ...

    def finish(self) -> None:
        """Complete the file after the last row."""
        ...


def check_table(path: FilePath) -> None:
    """UsageError for a table whose suffix is of no kind, or that needs a package that lacks."""
    if _kind(path) == ".xlsx":
        try:
            import openpyxl  # noqa: F401
        except ImportError:
            raise UsageError(
                f"--table {display(path)}: a workbook needs the package openpyxl: pip install "
                "'rerank-mt[xlsx]', or name a file .csv or .tsv"
            ) from None


def table_writer(
    path: FilePath, file: BinaryIO, headings: Sequence[str], entries: Mapping[str, Any]
) -> TableWriter:
    """A writer of the kind that the suffix of a path names, with the headings written.

    entries: what the run states of itself (`run_entries`): a comment before the headings of .tsv, a
    sheet of .xlsx.
    """
    kind = _kind(path)
    if kind == ".xlsx":
        return _Workbook(display(path), file, headings, entries)
    if kind == ".tsv":
        file.write(comment(entries).encode())
    writer = _TextTable(file, _csv_line if kind == ".csv" else _tsv_line)
    writer.write(headings)
    return writer


def _kind(path: FilePath) -> str:
    """The suffix of a table; .csv and .tsv may be compressed, and a device is .tsv."""
    name = str(path)
    if name == "-" or name.startswith("/dev/"):
        return ".tsv"
    for suffix in SUFFIXES:
        packed = "" if suffix == ".xlsx" else r"(\.(gz|xz|bz2))?"
        if re.search(rf"\{suffix}{packed}$", name):
            return suffix
    raise UsageError(
        f"--table {display(path)}: expected a name that ends in {', '.join(SUFFIXES)}; name one"
    )


@dataclass(frozen=True, slots=True)
class _TextTable:
    """Writes .csv or .tsv; line: that of cells, with its end."""

    file: BinaryIO
    line: Callable[[Sequence[str]], str]

    def write(self, cells: Sequence[Cell]) -> None:
        texts = ("" if x is None else x.text if isinstance(x, Marked) else str(x) for x in cells)
        self.file.write(self.line([*texts]).encode())

    def finish(self) -> None:
        """Nothing follows the rows."""


def _tsv_line(cells: Sequence[str]) -> str:
    return "\t".join(re.sub("[\t\r\n]", " ", cell) for cell in cells) + "\n"


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(cells)
    return line.getvalue()


class _Workbook:
    """Writes .xlsx by openpyxl, which keeps the rows in a temporary file."""

    def __init__(
        self, name: str, file: BinaryIO, headings: Sequence[str], entries: Mapping[str, Any]
    ) -> None:
        import openpyxl
        from openpyxl.styles import Alignment, Font, NamedStyle

        self._name, self._file, self._entries = name, file, entries
        self._book = openpyxl.Workbook(write_only=True)
        font, top = Font(name=_FONT, size=11), Alignment(vertical="top")
        text = Alignment(vertical="top", wrap_text=True)
        # a cell of the format @ remains a text when it is edited
        for style in (
            NamedStyle("text", font, alignment=text, number_format="@"),
            NamedStyle("number", font, alignment=top, number_format="0.00"),
            NamedStyle("count", font, alignment=top, number_format="0"),
            NamedStyle("heading", Font(name=_FONT, size=11, bold=True), alignment=text),
        ):
            self._book.add_named_style(style)
        self._last_column, self._n_rows = len(headings), 0
        self._sheet = self._headed("sentences", headings)

    def _headed(self, title: str, headings: Sequence[str]) -> Any:
        """A new sheet that begins with a row of headings, which stay in view."""
        from openpyxl.utils import get_column_letter

        sheet = self._book.create_sheet(title)
        sheet.freeze_panes, sheet.print_title_rows = "A2", "1:1"
        sheet.sheet_properties.pageSetUpPr.fitToPage = True  # in its width
        sheet.page_setup.orientation, sheet.page_setup.fitToHeight = "landscape", 0
        for n, heading in enumerate(headings, 1):
            wide = heading in (SOURCE, TEXT, FINAL, "") or heading.startswith(OF_ENGINE)
            width = _NARROW if heading in _NUMBERS else _WIDE if wide else _MEDIUM
            sheet.column_dimensions[get_column_letter(n)].width = width
        cells = [self._cell(sheet, heading) for heading in headings]
        for cell in cells:
            cell.style = "heading"
        sheet.append(cells)
        return sheet

    def _cell(self, sheet: Any, value: Cell) -> Any:
        """A cell of type text, or number; RerankError for a text longer than a cell may be."""
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.cell.rich_text import CellRichText, TextBlock
        from openpyxl.cell.text import InlineFont

        text = value.text if isinstance(value, Marked) else value
        if not isinstance(text, str):
            cell = WriteOnlyCell(sheet, text)
            cell.style = "number" if isinstance(text, float) else "count"
            return cell
        if len(_escaped(text)) > _MOST_CHARACTERS:
            raise RerankError(
                f"{self._name}: expected at most {_MOST_CHARACTERS:,} characters in a cell, found "
                f"{len(text):,} in row {self._n_rows + 1}; write .csv or .tsv"
            )
        content: Any = _escaped(text)
        if isinstance(value, Marked) and any(marked for _, marked in value.runs):
            font = InlineFont(rFont=_FONT, sz=11, b=True, color="C00000")
            content = CellRichText()
            for n, (run, marked) in enumerate(value.runs):
                run = _escaped(run) + " " * (n < len(value.runs) - 1)
                content.append(TextBlock(font, run) if marked else run)
        cell = WriteOnlyCell(sheet, content or None)
        cell.data_type = "s" if text else "n"
        cell.style = "text"
        return cell

    def write(self, cells: Sequence[Cell]) -> None:
        if self._n_rows + 1 >= _MOST_ROWS:
            raise RerankError(
                f"{self._name}: a sheet holds {_MOST_ROWS:,} rows, which are fewer than the "
                "sentences; write .csv or .tsv"
            )
        self._n_rows += 1
        texts = (x.text if isinstance(x, Marked) else x for x in cells)
        n_lines = max(-(-_breadth(text) // _WIDE) for text in texts if isinstance(text, str))
        rows = self._sheet.row_dimensions  # of which LibreOffice finds no height of its own
        rows[self._n_rows + 1].height = min(_LINE * n_lines, _HIGHEST)
        self._sheet.append([self._cell(self._sheet, cell) for cell in cells])
        rows.clear()

    def finish(self) -> None:
        """Add the filters, and a sheet that says how the table was made."""
        from openpyxl.utils import get_column_letter

        last = get_column_letter(self._last_column)
        self._sheet.auto_filter.ref = f"A1:{last}{self._n_rows + 1}"
        sheet = self._headed("run", ["", ""])
        for line in comment(self._entries).splitlines():
            sheet.append([self._cell(sheet, line.removeprefix("# ")[:_MOST_CHARACTERS])])
        self._book.save(self._file)


def _breadth(text: str) -> int:
    """Columns of characters that a text takes, of which Chinese ones take two."""
    if text.isascii():
        return len(text)
    return len(text) + sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda c: f"_x{ord(c[0]):04X}_", text)


def _unescaped(value: object) -> object:
    if not isinstance(value, str):
        return value
    return _ESCAPE.sub(lambda c: chr(int(c[1], 16)), value)


# Reading


class ReviewTable:
    """A table for reviewers as .csv or .tsv; a format of document files."""

    name = "review-table"
    description = "Table of decode --table, .tsv or .csv; its column `final` is a reference."
    example = (
        b"line\tdocument\tsegment\tsource\ttext\tfinal\n"
        b"1\td1\t0\tone\tthe lamp is on .\tthe lamp is lit .\n"
    )
    has_texts = True
    takes_field = False

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line that is no comment has the headings of such a table."""
        first = next((line for line in head if not _is_comment(line)), b"")
        with suppress(csv.Error):
            return any({*_NEEDED} <= {*cells} for _, cells in _text_rows([first]))
        return False

    def read(
        self, lines: Iterable[bytes], notices: Notices, *, source: str, choices: DocumentFile
    ) -> EvaluationSet:
        """The documents and texts; InputError for a row without its place, or that lacks."""
        try:
            return _Reader(source, notices).evaluation_set(_text_rows(bounded(lines, source)))
        except csv.Error as fault:
            raise InputError(f"expected a table, found {fault}", source=source) from None


def is_workbook(path: FilePath) -> bool:
    """Whether a file is a workbook, by its content; InputError for another spreadsheet."""
    if is_pipe(path):
        return False
    names: list[str] = []
    other, begin = "", b""
    with suppress(OSError), open(path, "rb") as file:
        begin = file.read(len(_OLD_EXCEL))
        with suppress(zipfile.BadZipFile, NotImplementedError, ValueError):
            names = zipfile.ZipFile(file).namelist()
    if {"mimetype", "content.xml"} <= {*names}:
        other = "an OpenDocument file; save it as .xlsx"
    elif begin == _OLD_EXCEL:
        other = "a file of old Excel, or one with a password; save it as .xlsx, without a password"
    if other:
        raise InputError(f"expected .xlsx, .csv or .tsv, found {other}", source=display(path))
    return "xl/workbook.xml" in names


def read_workbook(path: FilePath, notices: Notices) -> EvaluationSet:
    """The documents and texts of the first sheet of a workbook; InputError as of `ReviewTable`.

    Nothing is computed or fetched. Memory: the texts, and those that a program has put apart.
    """
    source = display(path)
    try:
        import openpyxl
    except ImportError:
        raise UsageError(
            f"{source}: a workbook needs the package openpyxl: pip install 'rerank-mt[xlsx]'"
        ) from None
    try:
        with open(path, "rb") as file, warnings.catch_warnings(action="ignore"):
            size = sum(entry.file_size for entry in zipfile.ZipFile(file).infolist())
            if size > _MOST_UNPACKED:
                limit = f"at most {_MOST_UNPACKED:,} bytes of XML in a workbook"
                raise InputError(f"expected {limit}, found {size:,}", source=source)
            book = openpyxl.load_workbook(file, read_only=True, keep_links=False)
            rows = book.worksheets[0].iter_rows(max_col=_MOST_COLUMNS)
            return _Reader(source, notices).evaluation_set(_workbook_rows(rows))
    except (InputError, MemoryError):
        raise
    except Exception as fault:  # whatever openpyxl meets in a damaged or hostile file
        reason = f"{type(fault).__name__}: {fault}"
        raise InputError(
            f"expected a workbook of decode --table, found a damaged one ({reason:.80}); save it "
            "again as .xlsx",
            source=source,
        ) from None


def _workbook_rows(rows: Iterable[Sequence[Any]]) -> Iterator[Row]:
    """Number and values of each row."""
    for number, row in enumerate(rows, 1):
        values = [_FORMULA if cell.data_type == "f" else _unescaped(cell.value) for cell in row]
        yield number, values


def _is_comment(line: bytes) -> bool:
    return line.startswith((b"#", b'"#'))


def _text_rows(lines: Iterable[bytes]) -> Iterator[Row]:
    """Number and cells of each line after comments: of .tsv if the first has a TAB, or of .csv."""
    rest = dropwhile(lambda numbered: _is_comment(numbered[1]), enumerate(lines, 1))
    skipped, first = next(rest, (1, b""))
    texts = chain([first.decode()], (line.decode() for _, line in rest))
    if b"\t" in first:
        yield from enumerate((text.split("\t") for text in texts), skipped)
    else:
        delimiter = ";" if b";" in first and b"," not in first else ","
        reader = csv.reader((f"{text}\n" for text in texts), delimiter=delimiter)
        yield from ((skipped + reader.line_num - 1, row) for row in reader)


class _Reader(Place):
    """Reads rows under headings, of which the current one is the place of a fault.

    A `final` that was emptied is no text; how many rows were edited is a notice.
    """

    def evaluation_set(self, rows: Iterator[Row]) -> EvaluationSet:
        """Documents in the order of their lines, and the texts of their sentences.

        InputError for a row without its place, or that is there twice; for a cell of a text that
        is none; for a document that lacks a segment. Columns for people are not read.
        """
        self.line, header = next(rows, (1, []))
        columns, names = self._columns(header)
        lines: dict[tuple[str, int], int] = {}
        texts: dict[tuple[str, int], list[bytes | None]] = {}
        edited = 0
        for self.line, values in rows:
            cells = [values[n] if n < len(values) else None for n in columns.values()]
            if all(cell in (None, "") for cell in cells):
                continue
            row = dict(zip(columns, cells, strict=True))
            document = self._text(row, "document").decode()
            place = document, self._number(row, "segment")
            if not document:
                raise self._fault("text as document, found ''", "leave these columns as they are")
            if place in lines:
                what = f"segment {place[1]} of document {shown_id(place[0])} once, found it again"
                raise self._fault(what, "remove one of the rows")
            lines[place] = self._number(row, "line") - 1
            of_row = {heading: self._text(row, heading) for heading in names}
            edited += of_row[FINAL] != of_row[TEXT]
            emptied = bool(of_row[TEXT]) and not of_row[FINAL]
            texts[place] = [None if h == FINAL and emptied else t for h, t in of_row.items()]
        self.line = 0
        documents, places = self._documents(lines)
        of_columns = zip(*(texts[place] for place in places), strict=True)
        by_role: dict[Role, dict[str, Lines]] = {}
        for (role, name), column in zip(names.values(), of_columns, strict=True):
            by_role.setdefault(role, {})[name] = column
        self.notices.add(
            "reviewed-text", source=self.source, asked=True, edited=edited, rows=len(lines)
        )
        return EvaluationSet(self.source, documents, by_role)

    def _columns(
        self, header: Sequence[object]
    ) -> tuple[dict[str, int], dict[str, tuple[Role, str]]]:
        """Place of each heading of a row, and role and name of the text of those that have one."""
        columns = {str(heading): n for n, heading in enumerate(header)}
        if lacking := [heading for heading in _NEEDED if heading not in columns]:
            what = f"the headings of decode --table, found no {', '.join(lacking)}"
            raise self._fault(what, "leave the first row as it is")
        names = _texts_of(columns)
        seen = set[object]()
        for heading in map(str, header):
            called = names.get(heading, heading)  # `text of chosen` as `text`
            if called in seen and (heading in names or heading in PLACE):
                what = f"each column that is read once, found that of {heading!r:.40} again"
                raise self._fault(what, "remove a copy, or rename its heading")
            seen.add(called)
        return columns, names

    def _documents(
        self, lines: Mapping[tuple[str, int], int]
    ) -> tuple[Documents, list[tuple[str, int]]]:
        """The documents, and the place of each of their sentences."""
        segments: dict[str, list[int]] = {}
        for document, segment in sorted(lines, key=lines.__getitem__):
            segments.setdefault(document, []).append(segment)
        for document, numbers in segments.items():
            if numbers != [*range(len(numbers))]:
                odd = next(n for n, segment in enumerate(numbers) if n != segment)
                raise self._fault(
                    f"the segments of document {shown_id(document)} from 0 on in the order of "
                    f"their lines, found no segment {odd} in its place",
                    "a table that is read again has all rows of a document",
                )
        if len({*lines.values()}) < len(lines):
            what = "another line of the source in each row, found one twice"
            raise self._fault(what, "leave these columns as they are")
        if not segments:
            raise self._fault("a row for each sentence, found none", "is this the right file?")
        places = [(document, n) for document, numbers in segments.items() for n in numbers]
        documents = Documents.of_sizes({name: len(numbers) for name, numbers in segments.items()})
        order = tuple(lines[place] for place in places)
        if order != tuple(range(len(order))):
            cure = "of a table of some documents give --docs with all, and --drop-unreferenced"
            length = max(order) + 1
            documents = replace(documents, lines=order, file_length=length, cure=cure)
        return documents, places

    def _number(self, row: Mapping[str, object], heading: str) -> int:
        value = row[heading]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        text, least = str(value), int(heading == "line")
        if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least):
            seen = "a formula" if value is _FORMULA else f"{text!r:.40}"
            what = f"a whole number from {least} as {heading}, found {seen}"
            raise self._fault(what, "leave these columns as they are")
        return int(text)

    def _text(self, row: Mapping[str, object], heading: str) -> bytes:
        """The text of a cell on one line; one that is empty is an empty text."""
        value = "" if row[heading] is None else row[heading]
        if not isinstance(value, str):
            kind = "a formula" if value is _FORMULA else f"{value} as a number or date"
            what = f"text as {heading}, found {kind:.60}"
            raise self._fault(what, "give the cell the format Text and enter it again")
        return _LINE_END.sub(" ", value).encode(errors="replace")

    def _fault(self, expected: str, cure: str) -> InputError:
        return self.fault(f"expected {expected}; {cure}")


def _texts_of(headings: Collection[str]) -> dict[str, tuple[Role, str]]:
    """Role and name of the text of each heading that has one."""
    known: dict[str, tuple[Role, str]] = {
        **{SOURCE: ("source", ""), FINAL: ("reference", ""), TEXT: ("system", CHOSEN)},
        **{h: ("system", h.removeprefix(OF_ENGINE)) for h in headings if h.startswith(OF_ENGINE)},
    }
    return {heading: known[heading] for heading in headings if heading in known}
