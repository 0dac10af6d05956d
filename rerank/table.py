"""Tables of results: text for people, LaTeX and Markdown for papers, TSV for other programs.

>>> columns = Column("system"), Column("BLEU", ".2f")
>>> table = Table(columns, [["first", 25.3151], ["decoded", None]])
>>> print(table.to_text())
system      BLEU
--------  ------
first      25.32
decoded

A result has `to_dict()` for JSON, `to_text()` with its tables and what is said below them, and,
where it has one, `table()` with all digits for other programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

from rerank.errors import visible

Form: TypeAlias = str | Callable[[Any], str]
"""How a value is shown: a specification of `format`, or a function; "" for text."""

_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
_WIDTH: ContextVar[int | None] = ContextVar("width", default=None)  # of a line of text


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, which may have several lines, and how the values below it are shown to people.

    Text is aligned left, other values right.
    """

    heading: str
    form: Form = ""

    @property
    def flat(self) -> str:
        """The heading in one line."""
        return self.heading.replace("/\n", "/").replace("\n", " ")

    def shown(self, value: Any) -> str:
        """A value as people read it."""
        return self.form(value) if callable(self.form) else format(value, self.form)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under columns; None is a missing value, as are those of a short row."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    missing: str = ""  # what people read in place of None

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """A table of one row or more, whose headings are the keys of the first."""
        return cls([Column(name) for name in rows[0]], [list(row.values()) for row in rows])

    @classmethod
    def by_columns(cls, columns: Sequence[tuple[Column, Sequence[Any]]]) -> Table:
        """A table of columns and the values below each."""
        rows = list(zip(*(values for _, values in columns), strict=True))
        return cls([column for column, _ in columns], rows)

    def cells(self) -> list[list[str]]:
        """The values of each row as people read them."""
        return [
            [
                self.missing if value is None else column.shown(value)
                for column, value in zip(self.columns, row, strict=False)
            ]
            for row in self.rows
        ]

    def to_text(self) -> str:
        """The table in columns of characters; without headings there is no line below them.

        Where lines are too wide (`fitting`), it continues below with the other columns.
        """
        headings, most = [column.heading for column in self.columns], _WIDTH.get()
        if not any(headings):
            return self._tabulated("plain", headings, self.cells())
        text = self._tabulated("simple", headings, self.cells())
        if most is None or max(map(len, text.splitlines())) <= most:
            return text
        return "\n\n".join(
            block._tabulated("simple", [c.heading for c in block.columns], block.cells())
            for block in self._blocks(text, most)
        )

    def _blocks(self, text: str, most: int) -> Iterator[Table]:
        """Tables of some of the columns each, of at most so many characters where there is room.

        Each begins with the columns of text that the table, of this text, begins with.
        """
        lines = text.splitlines()[max(x.heading.count("\n") for x in self.columns) + 1 :]
        sizes = [len(dashes) + 2 for dashes in lines[0].split()]
        n_keys = next((i for i, column in enumerate(self.columns) if column.form), len(sizes)) or 1
        keys = [*range(n_keys if sum(sizes[:n_keys]) <= most / 2 else 1)]
        blocks = [keys]
        for i in range(len(keys), len(sizes)):
            if sum(sizes[j] for j in (*blocks[-1], i)) - 2 > most and len(blocks[-1]) > len(keys):
                blocks.append(keys)
            blocks[-1] = [*blocks[-1], i]
        for block in blocks:
            rows = [[row[i] if i < len(row) else None for i in block] for row in self.rows]
            yield Table([self.columns[i] for i in block], rows, self.missing)

    def to_latex(self) -> str:
        """The table for LaTeX with the package booktabs; a minus is one, no hyphen."""
        cells = [[one_line(cell) for cell in row] for row in self.cells()]
        headings = [one_line(column.flat) for column in self.columns]
        table = self._tabulated("latex_booktabs", headings, cells)
        return re.sub(r"(?<![\w.-])-(?=\d)", "$-$", table)

    def to_markdown(self) -> str:
        """The table for Markdown of GitHub."""
        rows = [[column.flat for column in self.columns], *self.cells()]
        headings, *cells = [[one_line(text).replace("|", r"\|") for text in row] for row in rows]
        return self._tabulated("pipe", headings, cells)

    def to_html(self) -> str:
        """The table for HTML, escaped, with invisible characters made visible."""
        cells = [[visible(cell) for cell in row] for row in self.cells()]
        return self._tabulated("html", [visible(column.flat) for column in self.columns], cells)

    def to_tsv(self) -> str:
        """A line of headings and one for each row, with TABs; numbers with all digits."""
        rows = [[column.heading for column in self.columns], *self.rows]
        return "\n".join(map(tsv_line, rows))

    def _tabulated(self, form: str, headings: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
        """The table in a form of tabulate, without columns on the right that are empty."""
        from tabulate import tabulate

        size = max(map(len, self.rows), default=len(headings))
        align = ["right" if column.form else "left" for column in self.columns[:size]]
        table: str = tabulate(
            cells,
            headings[:size] if any(headings) else (),
            tablefmt=form,
            colalign=align if cells else None,
            disable_numparse=True,
        )
        return table


@contextmanager
def fitting(width: int | None) -> Iterator[None]:
    """Have tables in a block fit lines of so many characters, as text; None: of any number."""
    token = _WIDTH.set(width)
    try:
        yield
    finally:
        _WIDTH.reset(token)


def one_line(text: str) -> str:
    """A cell in which TABs and whatever ends a line are spaces."""
    return " ".join(text.replace("\t", " ").splitlines()) if not text.isprintable() else text


def tsv_line(values: Sequence[Any]) -> str:
    r"""A line of cells with TABs between them, without quotes; None is an empty cell.

    In a cell TABs and line ends are spaces, other control characters are escapes as `\x1b`.
    """
    cells = ("" if value is None else one_line(str(value)) for value in values)
    return "\t".join(_CONTROL.sub(lambda c: f"\\x{ord(c[0]):02x}", cell) for cell in cells)


def p_value(p: float) -> str:
    """A p-value for people, with four decimals or, where it is small, one digit."""
    return f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}"
