"""Lists of plain text: K lines a sentence, hypotheses with TABs between, or counted lines.

`flat:K`: K lines of each sentence, and their numbers in another file, a line for each hypothesis:
features F0, F1, …. A hypothesis whose two lines are blank fills up a shorter list, and is left out.
`portage:K`: the same as the tools of Portage have it, `nbest` and `ffvals`
(https://github.com/nrc-cnrc/PortageTextProcessing).

`tabs`: all hypotheses of a sentence on a line with TABs between them, as DoRe's
(https://github.com/kanekomasahiro/Re-ranking). Nothing in these files says that they are lists:
their format must be named. `mbr-nmt`: `NC=n`, then the n candidates of a sentence
(https://github.com/Roxot/mbr-nmt).

A number beside each hypothesis is a score, which becomes a feature, too: OpenNMT, CTranslate2,
Sockeye and tensor2tensor write lines as

    the text TAB -0.41        -0.41 ||| the text        the text TAB -0.41 TAB a text TAB -0.66

An alignment beside it, as `0-0 1-1`, is left out. Other columns are read as part of the text, and
named; JSON, CSV, XML and lists with ids are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise, product
from statistics import fmean
from typing import Any, TypeAlias

from rerank.diagnostics import diagnostics
from rerank.errors import InputError, UsageError, shown
from rerank.files.encoding import NUMBER
from rerank.formats.moses_grammar import SEPARATOR, is_numeric
from rerank.formats.plain_texts import structure
from rerank.formats.row_builder import ReadOnlyFormat, RowBuilder
from rerank.formats.tokens import HEAD, first_line, numbers_cure

Oddity: TypeAlias = tuple[str, Mapping[str, Any]]
"""The name of a warning, and the values of its fields."""

_COMPARED = 200  # lists whose texts are compared, and the fewest that tell
_FEWEST_LISTS = 6
_HEAD = 200  # lines that tell which columns are numbers
_FEWEST = 3  # lines whose words are compared
_COUNT = re.compile(rb"NC=([0-9]{1,7})")
_DECIMAL = re.compile(  # no number of things
    rb"[\[(]?(?:[+-]?[0-9]*[.,][0-9]+(?:[eE][+-]?[0-9]+)?|-[0-9]+)%?[\])]?"
)
_MOST_COLUMNS = 32  # of a hypothesis: all sizes and places of the text are tried
_DIGIT_AT_END = re.compile(rb"^[0-9]|[0-9]$")  # before or after a decimal comma
_ALIGNMENT = re.compile(rb"\s*[0-9]+-[0-9]+(?:\s+[0-9]+-[0-9]+)*\s*")
_OTHER_BARS = re.compile(rb"[0-9]+ (\|{1,2}|#|;|(?:\xe2\x94\x82|\xef\xbd\x9c)+) ")
_CONVERT = "`rerank convert --kbest-format {} --to moses --kbest FILE > NEW`"
_IDS_AND_TEXTS = "a table of ids, texts and scores: write its rows as 'id ||| text ||| scores'"
_SCORED = (
    "plain text with numbers beside each hypothesis: if it has K hypotheses of each sentence, a "
    f"line each, use {_CONVERT.format('flat:K')}"
)
_TABLE = "a table with columns of numbers: write its rows as 'id ||| text ||| numbers'"
_TABS = (
    "plain text with TABs: if a line has the hypotheses of a sentence, use "
    f"{_CONVERT.format('tabs')}"
)
_PLAIN = (
    "plain text: if it has K hypotheses of each sentence, a line each, use, with portage:K in "
    "place of flat:K and ffvals as SCORES for a list of Portage, "
    f"{_CONVERT.format('flat:K --kbest-scores SCORES')}"
)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Columns of a line of plain text: each hypothesis has one with its text, others with numbers.

    separator: between columns, empty if a line is a text; size: columns of a hypothesis; text: the
    place of its text among them; apart: whether all texts of a line stand together. A column of
    alignments has no numbers.
    """

    separator: bytes = b""
    size: int = 1
    text: int = 0
    apart: bool = False

    def cells(self, line: bytes) -> list[bytes]:
        """The columns of a line, those of a hypothesis side by side."""
        cells = line.split(self.separator) if self.separator and line.strip() else [line]
        n = len(cells) // self.size
        return [cell for i in range(n) for cell in cells[i::n]] if self.apart else cells

    def fit(self, cells: Sequence[bytes]) -> bool:
        """Whether the columns of a line are those of hypotheses, each with its numbers."""
        return len(cells) % self.size == 0 and all(
            place % self.size == self.text or is_numeric(cell) or _ALIGNMENT.fullmatch(cell)
            for place, cell in enumerate(cells)
        )

    def hypotheses(self, line: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
        """Text and numbers of each hypothesis of a line; InputError for other columns."""
        cells = self.cells(line)
        for start in range(0, len(cells), self.size) if line.strip() else ():
            columns = cells[start : start + self.size]
            if not self.fit(columns):
                raise InputError(
                    f"expected {self.size} columns of each hypothesis, its text and numbers, as on "
                    f"the first lines, found {shown(line)}"
                )
            text = columns.pop(self.text)
            numeric = [cell for cell in columns if not _ALIGNMENT.fullmatch(cell)]
            yield text, [number for cell in numeric for number in cell.split()]

    def begin_with_ids(self, head: Iterable[bytes]) -> bool:
        """Whether the first column counts the sentences, from 0 or 1, by 1 at most."""
        if not self.text:
            return False
        first = [line.split(self.separator)[0].strip() for line in head if line.strip()]
        if len(first) < 2 or not all(map(bytes.isdigit, first)):
            return False
        ids = list(map(int, first))
        return ids[0] in (0, 1) and all(0 <= b - a <= 1 for a, b in pairwise(ids))


def columns_of(head: Iterable[bytes], *, several: bool) -> _Columns:
    """The columns of a list that begins with these lines.

    several: whether a line may have several hypotheses, with TABs between.
    """
    lines = [line for line in head if line.strip()]
    marks = (b"\t", SEPARATOR) if several else (b"\t", SEPARATOR, b",")
    for apart, separator in product((False, True) if several else (False,), marks):
        widths = {line.count(separator) + 1 for line in lines}
        for size in range(2, min(max(widths, default=0), _MOST_COLUMNS) + 1):
            if not several and widths != {size}:
                continue
            rows = list(map(_Columns(separator, size, apart=apart).cells, lines))
            for text in range(size):
                columns = _Columns(separator, size, text, apart)
                if not all(map(columns.fit, rows)):
                    continue
                texts = [cell for row in rows for cell in row[text::size]]
                decimals = separator == b"," and any(map(_DIGIT_AT_END.search, texts))
                if not decimals and not all(map(is_numeric, texts)):
                    return columns
    return _Columns(b"\t") if several else _Columns()


def looks_like(head: Sequence[bytes]) -> str:
    """What a file may be that begins with these lines, none of them JSON or of numbers alone."""
    rows = [line.split(SEPARATOR) for line in head if line.strip()]
    if all(len(row) == 2 and row[0].strip().isdigit() for row in rows):
        return "a list without features: write ' |||' at the end of each line"
    bars = _OTHER_BARS.match(head[0])
    if bars and all(line.count(b" %s " % bars[1]) > 1 for line in head if line.strip()):
        return f"a list with other marks than |||: write ||| in place of {bars[1].decode()}"
    columns = columns_of(head, several=False)
    if columns.size == 1 and columns_of(head[1:], several=False).size > 1:
        return f"a heading above {looks_like(head[1:])}, without the heading"
    if columns.size > 1:
        return _IDS_AND_TEXTS if columns.begin_with_ids(head) else _SCORED
    if len(rows[0]) > 1:
        return ""
    if any(b"\t" in line for line in head):
        cells = [cell for line in head for cell in line.split(b"\t")]
        in_columns = columns_of(head, several=True).size == 1 and any(map(is_numeric, cells))
        return _TABLE if in_columns else _TABS
    odd = next(odd_words(head), None)
    return _PLAIN if odd is None else f"{_PLAIN}; {diagnostics()[odd[0]].sentence_of(odd[1])}"


def odd_words(texts: Sequence[bytes], k: int | None = None) -> Iterator[Oddity]:
    """Notices of texts that all begin, or end, with an id or a number.

    An id is another word in each line or, with k lines a sentence, in each sentence, or counts the
    lines of each.
    """
    lines = [words for text in texts if len(words := text.split()) > 1]
    if len(lines) < max(_FEWEST, len(texts)):
        return
    for place, end in ((0, "start"), (-1, "end")):
        column = [words[place] for words in lines]
        if all(map(_DECIMAL.fullmatch, column)):
            yield "number-as-word", {"example": shown(column[0]), "end": end}
        elif all(any(48 <= byte <= 57 for byte in word) for word in column):
            sentences = [set(column[a : a + k]) for a in range(0, len(column), k)] if k else []
            of_each = len(set(column)) == len(sentences) == sum(map(len, sentences))
            counted = k is not None and len(set(column[:k])) == k
            counted = counted and column == column[:k] * (len(column) // (k or 1))
            differ = len(set(column)) == len(column)
            if differ or ((of_each or counted) and len(sentences) >= _FEWEST):
                yield "id-as-word", {"example": shown(column[0]), "end": end}


@dataclass(frozen=True, slots=True)
class Flat(ReadOnlyFormat):
    """The format of flat text; k: hypotheses of a sentence; scores: lines of the other file."""

    name = "flat"
    description = "Plain text, K lines a sentence: --kbest-format flat:K --kbest-scores FILE."
    suffixes = (".txt",)
    example = b"the text\na text"

    k: int = 1
    scores: Iterable[bytes] | None = None
    scores_name: str = ""

    def configured(self, k: int | None, scores: Iterable[bytes] | None, name: str) -> Flat:
        """The format with its number of hypotheses and, from the file `name`, their scores."""
        if k is None:
            raise UsageError(
                f"--kbest-format {self.name}: expected {self.name}:K, the number of lines of a "
                f"sentence, for example {self.name}:100"
            )
        return replace(self, k=k, scores=scores, scores_name=name)

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file; InputError for another number of scores."""
        scores = None if self.scores is None else iter(self.scores)
        number = 0
        columns, lines = _started(builder, lines, several=False, k=self.k)
        for line in builder.numbered(lines):
            number, values = builder.line, list[float]()
            if scores is not None:
                tokens = next(scores, None)
                if tokens is None:
                    raise self._unequal(number - 1, f"more in {builder.source}")
                try:
                    values = [builder.number(token, "a score") for token in tokens.split()]
                except InputError as fault:
                    others = not NUMBER.fullmatch(tokens.split()[0])
                    head = [tokens, *islice(scores, HEAD)] if others else []
                    message = f"{fault}{numbers_cure(head, self.scores_name)}"
                    raise InputError(message, source=self.scores_name, line=number) from None
            try:
                text, numbers = next(columns.hypotheses(line), (b"", []))
                values += [builder.number(token, "a score") for token in numbers]
            except InputError as fault:
                builder.refuse(fault)
                continue
            if not text.strip() and not values:
                builder.note("padding")
                continue
            builder.add_unlabelled((number - 1) // self.k, text, values)
            yield
        if scores is not None and next(scores, None) is not None:
            raise self._unequal(number, f"more in {self.scores_name}")
        if number % self.k:
            there = f"{number:,} lines, {number % self.k} of the last one"
            raise builder.fault(
                f"expected {self.k} lines for each sentence, found {there}; give the right K in "
                f"--kbest-format {self.name}:K",
                number,
            )

    def _unequal(self, number: int, where: str) -> InputError:
        """The error about files of different lengths."""
        what = f"a line of scores for each hypothesis, found {number:,} lines and {where}"
        return InputError(f"expected {what}", source=self.scores_name, line=number or None)


class Portage(Flat):
    """The format of Portage's lists."""

    __slots__ = ()

    name = "portage"
    description = "Portage's lists, K lines a sentence: portage:K with --kbest-scores FFVALS."
    suffixes = (".nbest",)

    def configured(self, k: int | None, scores: Iterable[bytes] | None, name: str) -> Flat:
        """The format with its number of hypotheses and their feature values."""
        if scores is None:
            raise UsageError(
                "--kbest-format portage: expected --kbest-scores FILE, the feature values of each "
                "hypothesis, a line each"
            )
        return super().configured(k, scores, name)


class Tabs(ReadOnlyFormat):
    """The format of lines whose hypotheses have TABs between them."""

    name = "tabs"
    description = "Plain text, the hypotheses of a sentence on a line with TABs between, as DoRe's."
    suffixes = (".tsv", ".txt")
    example = b"the text\ta text"

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file.

        A line without any words is a sentence with one empty hypothesis; beside other hypotheses
        a blank one is left out, and counted.
        """
        columns, lines = _started(builder, lines, several=True)
        for line in builder.numbered(lines):
            try:
                pairs = [*columns.hypotheses(line)]
            except InputError as fault:
                builder.refuse(fault)
                continue
            filled = [(text, numbers) for text, numbers in pairs if text.strip() or numbers]
            skipped = (line.count(b"\t") + 1) // columns.size - max(len(filled), 1)
            if skipped:
                builder.note("blank-hypothesis", count=skipped)
            numeric = sum(is_numeric(text) for text, _ in filled)
            if columns.size == 1 and 0 < numeric < len(filled):
                builder.note("number-as-hypothesis", count=numeric)
            for text, numbers in filled or [(b"", [])]:
                values = [builder.number(token, "a score") for token in numbers]
                builder.add_unlabelled(builder.line - 1, text, values)
            yield


def _started(
    builder: RowBuilder,
    lines: Iterable[bytes],
    *,
    several: bool,
    k: int | None = None,
    counted: bool = False,
) -> tuple[_Columns, Iterator[bytes]]:
    """The columns of a list by its first lines, and all lines; notes what its owner should know.

    several: see `columns_of`; k: lines of a sentence; counted: whether there are lines `NC=n`.
    """
    lines = iter(lines)
    head = list(islice(lines, max(_HEAD, min(_COMPARED * (k or 0), 50 * _HEAD))))
    texts = [line for line in head if not (counted and _COUNT.fullmatch(line.strip()))]
    rows = [line.split(SEPARATOR) for line in texts if line.strip()]
    if rows and all(len(row) > 2 and row[0].strip().isdigit() for row in rows):
        what = f"lines with ids, as {shown(texts[0])}; leave out --kbest-format"
        raise builder.fault(f"expected texts, found {what}", 1)
    if other := structure(texts):
        in_json = other.startswith("JSON with .") or "over several" in other
        cure = "leave out --kbest-format" if in_json else "write the texts alone, without quotes"
        raise builder.fault(f"expected texts, found {other}; {cure}", 1)
    columns = columns_of(texts, several=several)
    if not (several or counted) and columns.begin_with_ids(texts):
        cure = "write 'id ||| text ||| scores', and leave out --kbest-format"
        raise builder.fault(f"expected texts, found ids before them; {cure}", 1)
    builder.line = 1
    of_lines = [[*columns.hypotheses(line)] for line in texts]
    hypotheses = [pair for row in of_lines for pair in row]
    if any(numbers for _, numbers in hypotheses):
        builder.note("scores-beside-hypotheses")
    elif several and _has_column_of_numbers(texts):
        raise builder.fault(
            "expected texts between TABs, or as many numbers as texts, found a column of numbers; "
            "leave it out"
        )
    candidates = [text for text, _ in hypotheses]
    for kind, values in () if several else odd_columns(candidates) or odd_words(candidates, k):
        builder.note(kind, **values)
    in_places = [text for row in of_lines for text, _ in row or [(b"", [])]]
    if k is not None and k > 1 and _unlike(in_places, k):
        builder.note("unlike-candidates", k=k)
    return columns, chain(head, lines)


def _unlike(texts: Sequence[bytes], k: int) -> bool:
    """Whether neighbours in a list of k texts share no more than those of two lists.

    The first lists are compared, if they are enough to tell.
    """
    lists = [texts[a : a + k] for a in range(0, min(len(texts), _COMPARED * k) - k + 1, k)]
    within = [_shared(*pair) for texts in lists for pair in (texts[:2], texts[-2:])]
    across = [_shared(before[-1], after[0]) for before, after in pairwise(lists)]
    known = [[share for share in shares if share >= 0] for shares in (within, across)]
    if min(map(len, known)) < _FEWEST_LISTS - 1:
        return False
    return fmean(known[0]) <= 1.1 * fmean(known[1]) + 0.05


def _shared(first: bytes, second: bytes) -> float:
    """The share of strings of 4 bytes in the shorter text that are in both; −1 for tiny texts."""
    a, b = ({text[i : i + 4] for i in range(len(text) - 3)} for text in (first, second))
    return len(a & b) / min(len(a), len(b)) if a and b else -1.0


def odd_columns(texts: Sequence[bytes]) -> list[Oddity]:
    """The notice of texts that all have the same number of further columns."""
    for separator, name in ((b"\t", "TAB"), (SEPARATOR, "|||")):
        rows = [text.split(separator) for text in texts]
        if len(rows) >= _FEWEST and {len(row) for row in rows} == {n := len(rows[0])} != {1}:
            sizes = [sum(len(row[i]) for row in rows) for i in range(n)]
            other = shown(rows[0][0 if sizes.index(max(sizes)) else 1].strip())
            return [("columns-as-text", {"columns": f"{n} {name}-separated", "example": other})]
    return []


def _has_column_of_numbers(lines: Iterable[bytes]) -> bool:
    """Whether a column, counted from either end, has a number on every line, not all columns."""
    rows = [list(map(is_numeric, line.split(b"\t"))) for line in lines if line.strip()]
    if len(rows) < 2 or any(map(all, rows)):
        return False
    return all(row[-1] for row in rows) or any(map(all, zip(*rows, strict=False)))


class MbrNmt(ReadOnlyFormat):
    """The format of mbr-nmt's candidates."""

    name = "mbr-nmt"
    description = "Candidates of mbr-nmt: NC=n before the n lines of a sentence; no features."
    suffixes = (".txt",)
    example = b"NC=2\nthe text\na text"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line that is not blank is a number of candidates."""
        return _COUNT.fullmatch(first_line(head)) is not None

    def added(self, builder: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file."""
        sentence, left = -1, 0
        columns, lines = _started(builder, lines, several=False, counted=True)
        for line in builder.numbered(lines):
            if left:
                text, numbers = next(columns.hypotheses(line), (b"", []))
                values = [builder.number(token, "a score") for token in numbers]
                builder.add_unlabelled(sentence, text, values)
                left -= 1
                yield
                continue
            count = _COUNT.fullmatch(line.strip())
            if count is None:
                raise builder.fault(
                    f"expected NC=n before the next candidates, found {shown(line)}"
                )
            sentence, left = sentence + 1, int(count[1])
        if left:
            raise builder.fault(f"expected {left} more candidates of the last sentence, found none")

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last `NC=n`, which may be `NC=0`."""
        last, left = -1, 0
        for line in lines:
            if left:
                left -= 1
            elif count := _COUNT.fullmatch(line.strip()):
                last, left = last + 1, int(count[1])
        return last
