r"""Moses k-best lists, and those of tools that write nearly the same: see `moses_grammar`.

What is written is what the strictest reader, mert-moses.pl, accepts: names of letters and digits,
one blank between tokens, finite numbers without capital E or `+`.

Alignments and the like are columns beside text, features and total. Moses writes them after the
total, Marian before the features:

    0 ||| a b ||| LM0= -3 ||| -1.5 ||| 0-1=0-1 ||| 0-0 1-1      segmentation, alignment
    0 ||| a b ||| 0-0 1-1 ||| WordScores= -0.2 -0.1 ||| F0= -0.3 ||| -0.3

N-best lists of whole documents have a line a document, with its sentences as Docent writes them
(https://github.com/chardmeier/docent):

    0 ||| the first sentence \n the second \n  ||| LM0= -50.1 TM0= -4.2 ||| -20.3

`\n`, a backslash and an n, is a token after every sentence. Features and total are those of the
candidates, summed.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import KBestRows, SparseColumns, TextColumn, column_names
from rerank.corpus.kbest import KBest
from rerank.errors import InputError, UsageError, shown
from rerank.formats import moses_grammar as grammar
from rerank.formats import tokens
from rerank.notices import Notices

_CHUNK = 1 << 20  # bytes; for a shorter list it is not worth loading a compiler
_KERNEL = "rerank.formats.moses_kernel"

_MARK = b"WordScores="
_ALIGNMENT = re.compile(rb"\s*(?:[0-9]+-[0-9]+(?:\s+|$))*")
_SEGMENTATION = re.compile(rb"\s*(?:[0-9]+(?:-[0-9]+)?=[0-9]+(?:-[0-9]+)?(?:\s+|$))+")
AFTER_TOTAL = {"segmentation": _SEGMENTATION, "alignment": _ALIGNMENT}  # in this order
_END = b"\\n"
_NAME = re.compile(r"[A-Za-z][0-9A-Za-z]*")
_SPARSE_NAME = re.compile(r"[^\s=:|_][^\s=:|]*_[^\s=:|]*")


class _Reader(tokens.Place):
    """Reads chunks of lines by the layout of the first line, which has a number in the file."""

    def __init__(
        self, first: bytes, number: int, notices: Notices, source: str, clip: float | None
    ) -> None:
        super().__init__(source, notices, number)
        self._first = number
        self._number = tokens.list_number(clip, partial(self.note, "infinite-number", asked=True))
        self._layout = grammar.layout(first)
        # lines without labels, as long as all of their numbers are positive
        self._costs = 0 if self._layout.unlabelled else None
        self._lowest, self._highest = 0.0, 0.0  # step between neighbours of a sentence
        for kind in self._layout.dialect:
            self.note(kind)

    def rows(self, lines: Sequence[bytes]) -> KBestRows:
        """The rows of the next chunk; blank lines have none."""
        layout, first, n = self._layout, self.line, len(lines)
        rows = KBestRows(
            labels=layout.labels,
            lines=TextColumn.of(lines),
            text_spans=np.zeros((n, 2), np.int64),
            line_numbers=np.arange(first, first + n),
            sentences=np.zeros(n, np.int64),
            dense=np.zeros((n, len(layout.values))),
            totals=np.full(n, np.nan),
            sparse=SparseColumns.empty(n),
        )
        done = np.zeros(n, np.bool_)
        if len(rows.lines.blob) >= _CHUNK or _KERNEL in sys.modules:
            from rerank.formats import moses_kernel  # loads numba

            rows = replace(rows, sparse=moses_kernel.read_common(rows, layout, done))
            with_sparse = np.flatnonzero(done & (np.diff(rows.sparse.indptr) > 0))
            if len(with_sparse):
                number = first + int(with_sparse[0])
                self.note("sparse-features", line=number, count=len(with_sparse))
        rows = replace(rows, sparse=self._read_others(rows, lines, done)).where(done)
        if rows.lines.block_has(b"\t"):
            tabs = [row for row, text in enumerate(rows.texts.to_list()) if b"\t" in text]
            if tabs:
                number = int(rows.line_numbers[tabs[0]])
                self.note("tab-in-hypothesis", line=number, count=len(tabs))
        if self._costs is not None:
            positive = bool((rows.dense > 0).all())
            self._costs = self._costs + len(rows) if positive else None
            steps = np.diff(rows.dense, axis=0)[np.diff(rows.sentences) == 0]
            self._lowest = min(self._lowest, steps.min(initial=0.0))
            self._highest = max(self._highest, steps.max(initial=0.0))
        return rows

    def _read_others(
        self, rows: KBestRows, lines: Sequence[bytes], done: NDArray[np.bool_]
    ) -> SparseColumns:
        """Read the rows that are not done by the grammar; the sparse features of all rows."""
        first, by_row = self.line, dict[int, dict[str, float]]()
        for row in np.flatnonzero(~done).tolist():
            self.line = first + row
            if not lines[row].strip():
                self.note("blank-line")
                continue
            try:
                line = grammar.parse(lines[row], self._layout, self._number)
            except InputError as fault:
                self.refuse(fault)
                continue
            rows.sentences[row] = line.sentence
            rows.text_spans[row] = rows.lines.spans[row, 0] + np.array(line.text)
            rows.dense[row] = line.dense
            rows.totals[row] = np.nan if line.total is None else line.total
            if line.sparse:
                by_row[row] = line.sparse
            for kind in line.oddities:
                self.note(kind)
            done[row] = True
        self.line = first + len(lines)
        if not by_row:
            return rows.sparse
        others = SparseColumns.of([by_row.get(row, {}) for row in range(len(lines))])
        places = np.arange(len(lines))
        places[list(by_row)] += len(lines)
        return SparseColumns.concatenate([rows.sparse, others]).take(places)

    def finish(self) -> None:
        """Warn of a whole list that looks like one of costs, unless they fall in each list."""
        if self._costs and not (self._lowest < 0.0 == self._highest):
            self.note("unlabelled-costs", line=self._first, count=self._costs)


def append_features(
    line: bytes, features: Sequence[tuple[str, float]], total: float | None = None
) -> bytes:
    """The line with ` Name= v` appended to its features and, if given, its total replaced.

    A missing total column is added; all other bytes are unchanged. Numbers have nine significant
    digits. `RerankError` for infinity and NaN, `UsageError` for a name that Moses cannot read.
    """
    fields = line.split(grammar.SEPARATOR)
    column = grammar.feature_columns(fields)[0]
    body = fields[column].rstrip()
    blanks = fields[column][len(body) :]
    for name, value in features:
        body += b" %s= %s" % (_checked(name, _NAME), tokens.written(value, name, digits=9))
    if total is not None:
        new = tokens.written(total, "the total", digits=9)
        if column + 1 == len(fields):
            blanks = blanks or b" "
            fields.append(b" " + new)
        else:
            old = fields[column + 1]
            fields[column + 1] = old.replace(old.strip(), new, 1)
    fields[column] = body + blanks
    return grammar.SEPARATOR.join(fields)


@lru_cache
def _checked(name: str, pattern: re.Pattern[str]) -> bytes:
    """The name of a feature; `UsageError` if Moses cannot read it."""
    if pattern.fullmatch(name) is None:
        raise UsageError(f"expected a feature name of letters and digits, found {name!r}")
    return name.encode()


class Moses:
    """The format of Moses' n-best lists."""

    name = "moses"
    description = "N-best lists of Moses and Marian, a hypothesis per line."
    suffixes = (".nbest", ".kbest")
    example = b"0 ||| the text ||| LM0= -38.1 TM0= -4.2 -5.3 ||| -12.6"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line that is not blank has three columns or more."""
        return tokens.first_line(head).count(grammar.SEPARATOR) >= 2

    @staticmethod
    def read(
        lines: Iterable[bytes], notices: Notices, *, source: str, clip: float | None
    ) -> Iterator[KBestRows]:
        """The rows in chunks of about 1 MiB, or one longer line.

        The first line that is not blank sets columns and labels; `InputError` at a line that does
        not fit.
        """
        lines, place = iter(lines), tokens.Place(source, notices)
        for line in place.filled(lines):
            try:
                reader = _Reader(line, place.line, notices, source, clip)
            except InputError as fault:
                place.refuse(fault)
                continue
            yield from filter(len, map(reader.rows, tokens.chunks(chain([line], lines), _CHUNK)))
            reader.finish()

    def write(
        self,
        kbest: KBest,
        names: Sequence[str],
        values: NDArray[np.float64],
        totals: NDArray[np.float64] | None,
        *,
        first_id: int,
    ) -> Iterator[bytes]:
        """The lines of the file with features appended, or new lines for candidates in memory."""
        read = None if kbest.lines is None else map(kbest.lines.__getitem__, range(kbest.n))
        lines = zip(values.tolist(), read or moses_lines(kbest, first_id), strict=True)
        for row, (added, line) in enumerate(lines):
            features = list(zip(names, added, strict=True))
            total = None if totals is None else float(totals[row])
            yield append_features(line, features, total)


def moses_lines(kbest: KBest, first_id: int) -> Iterator[bytes]:
    """New lines for candidates, whatever their file has."""
    names = [_checked(label.name, _NAME) for label in kbest.labels]
    blanks = (label.width * b" %r" for label in kbest.labels)
    form = b"".join(b" %s=%s" % pair for pair in zip(names, blanks, strict=True)).decode() + " "
    return (_new_line(kbest, row, first_id, form) for row in range(kbest.n))


def _new_line(kbest: KBest, row: int, first_id: int, form: str) -> bytes:
    """A line as Moses writes it for a candidate, with numbers that read back to the same bits.

    form: of the dense features, between blanks, in which `tokens.written` stands as `%r`.
    InputError for text that would not read back: with `|||`, line ends or blanks at its ends.
    """
    text, values = kbest.texts[row], kbest.dense[row].tolist()
    if grammar.SEPARATOR in text or b"\n" in text or text != text.strip(b" \t"):
        raise InputError(
            f"expected a text without ||| and line ends, and no blanks around it, as in a Moses "
            f"list, found {shown(text)}; write it with Moses' escapes: rerank convert --escape "
            "moses",
            source=kbest.source,
            line=kbest.line_number(row),
        )
    sentence = first_id + kbest.first + int(np.searchsorted(kbest.offsets, row, side="right")) - 1
    parts = [b"%d ||| %s |||" % (sentence, text)]
    if not all(map(math.isfinite, values)):
        place = next(i for i, value in enumerate(values) if not math.isfinite(value))
        tokens.written(values[place], column_names(kbest.labels)[place])  # refuses it
    if values:
        parts.append((form % tuple(values)).replace(".0 ", " ").replace("e+", "e").strip().encode())
    for name, value in kbest.sparse.row(row).items():
        parts.append(b"%s= %s" % (_checked(name, _SPARSE_NAME), tokens.written(value, name)))
    if kbest.totals is not None:
        parts.append(b"||| " + tokens.written(float(kbest.totals[row]), "the total"))
    return b" ".join(parts)


# Columns beside text, features and total


def further_columns(line: bytes, notices: Notices, *, source: str = "") -> dict[str, str]:
    """The columns of a valid line beside text, features and total, by their keys in JSON lines."""
    fields = line.split(grammar.SEPARATOR)
    column = grammar.feature_columns(fields)[0]
    values = grammar.feature_values(fields[column])
    scores = [value.number for value in values if value.name == grammar.WORD_SCORES]
    columns = {"word_scores": b" ".join(scores).decode()} if scores else {}
    for place, field in enumerate(fields):
        text = field.strip()
        if place < 2 or place in (column, column + 1):
            continue
        if text.startswith(_MARK):
            columns["word_scores"] = text.removeprefix(_MARK).strip().decode()
        elif _ALIGNMENT.fullmatch(field):
            columns["alignment"] = text.decode()
        elif place < column and (before := grammar.before_features(field)):
            columns["alignment"] = before[0].strip().decode()
        elif _SEGMENTATION.fullmatch(field):
            columns["segmentation"] = text.decode()
        elif place > column:  # before the features it is part of the text
            notices.add("unknown-column", source=source)
    return columns


def with_columns(line: bytes, columns: Mapping[str, object]) -> bytes:
    """A line of a Moses list with the columns that Moses has after the total.

    They stand before the features of a line without a total, where they are read, too.
    """
    known = ((str(columns.get(key)).encode(), form) for key, form in AFTER_TOTAL.items())
    further = [text.strip() for text, form in known if form.fullmatch(text)]
    fields = [field.strip() for field in line.split(grammar.SEPARATOR)]
    if len(fields) == 3:
        return b" ||| ".join([*fields[:2], *further, fields[2]]) if further else line
    return b" ||| ".join([line, *further])


def as_moses_writes(line: bytes, notices: Notices, *, source: str = "") -> bytes:
    """A valid line in the form of Moses: `id ||| text ||| Name= v v ||| total ||| alignment`.

    A line that any version of Moses writes stays as it is, with old labels `lm: -3`, too; and so
    does one with `|||` in its text, whose columns are not sure. Numbers keep their digits, and are
    written as mert-moses.pl reads them.
    """
    fields = line.split(grammar.SEPARATOR)
    column = grammar.feature_columns(fields)[0]
    values = list(grammar.feature_values(fields[column]))
    labels = {value.label for value in values if value.label}
    with_scores = any(value.name == grammar.WORD_SCORES for value in values)
    if column == 2 and labels <= set(fields[2].split()) and not with_scores:
        return line  # no label without a blank between it and its value, as Marian writes them
    before = [field for field in fields[2:column] if not field.strip().startswith(_MARK)]
    parts = [part for field in before if (part := grammar.before_features(field))]
    if len(parts) < len(before):
        return line
    values[:0] = [value for _, text in parts for value in grammar.feature_values(text)]
    aligned = [text for text, _ in parts if _ALIGNMENT.fullmatch(text)]
    if len(aligned) < len(parts):
        notices.add("soft-alignment", source=source)
    if len(before) < column - 2 or with_scores:
        notices.add("word-scores-left-out", source=source)
    if column + 1 == len(fields) and aligned:  # no total that it could follow
        notices.add("unknown-column", source=source)
        aligned = []
    features = b""
    for value in values:
        if value.name != grammar.WORD_SCORES:
            if value.label:
                features += value.label[:-1] + b"= "
            features += value.number.lower().replace(b"e+", b"e").lstrip(b"+") + b" "
    columns = [fields[0], fields[1], features, *fields[column + 1 :], *aligned]
    return b" ||| ".join(field.strip() for field in columns)


# N-best lists of whole documents


def _best_documents(kbest: KBest, n: int) -> Iterator[tuple[float, list[int]]]:
    """The n choices of candidates of largest summed total, best first; ties by lower ranks.

    The sum, and a row of each sentence that has any. Totals of sentences are independent, so that
    the n best of a prefix of the document and of the next sentence give those of both:
    O(T n K log(n K)) time, O(T n) memory. n = 1 takes the first candidate where lists are sorted.
    `InputError` if a candidate has no total and n > 1.
    """
    present = [kbest.rows(t) for t in np.flatnonzero(kbest.counts).tolist()]
    if kbest.totals is None:
        if n > 1:
            raise InputError(
                "expected totals of all candidates, by which documents are ordered, found none; "
                "give --n-best 1, or a list with totals",
                source=kbest.source,
            )
        yield 0.0, [rows[0] for rows in present]
        return
    sums = np.zeros(1)
    back: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # prefix, row of each choice
    for rows in present:
        every = (sums[:, None] + kbest.totals[rows.start : rows.stop]).ravel()
        order = np.argsort(-every, kind="stable")[:n]
        prefix, place = np.divmod(order, len(rows))
        back.append((prefix, rows.start + place))
        sums = every[order]
    for i, total in enumerate(sums.tolist()):
        chosen = list[int]()
        for prefixes, of_choice in reversed(back):
            chosen.append(int(of_choice[i]))
            i = int(prefixes[i])
        yield total, chosen[::-1]


def document_lines(number: int, kbest: KBest, n: int) -> Iterator[bytes]:
    """The lines of the n best choices of a document."""
    for total, rows in _best_documents(kbest, n):
        chosen = iter(rows)
        texts = [kbest.text(next(chosen)) if k else b"" for k in kbest.counts.tolist()]
        for text in texts:
            if grammar.SEPARATOR in text or _END in text.split(b" "):
                raise InputError(
                    f"expected no '|||' and no '\\n' in a sentence of a document list, found "
                    f"{shown(text)}; give --escape moses",
                    source=kbest.source,
                )
        text = b"".join(b"%s %s " % (text, _END) if text else _END + b" " for text in texts)
        values, blocks = iter(kbest.dense[rows].sum(axis=0).tolist()), []
        for label in kbest.labels:
            blocks.append(label.name.encode() + b"=")
            for value in islice(values, label.width):
                blocks.append(tokens.written(value, label.name, digits=9))
        sparse: dict[str, float] = {}
        for row in rows if kbest.sparse.names else ():
            for name, value in kbest.sparse.row(row).items():
                sparse[name] = sparse.get(name, 0.0) + value
        line = b"%d ||| %s ||| %s" % (number, text, b" ".join(blocks))
        for name, value in sparse.items():
            line += b" %s= %s" % (name.encode(), tokens.written(value, name, digits=9))
        yield append_features(line, (), None if kbest.totals is None else total)
