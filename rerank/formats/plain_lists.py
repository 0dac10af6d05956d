"""Lists of plain text: K lines a sentence, hypotheses with TABs between, or counted lines.

`flat:K`: K lines of each sentence, and their numbers in another file, a line of numbers with blanks
or TABs between them for each hypothesis: features F0, F1, …. A hypothesis whose two lines are blank
fills up a shorter list, and is left out. `portage:K` is the same, as the tools of Portage have it
(https://github.com/nrc-cnrc/PortageTextProcessing): `nbest`, whose shorter lists end with blank
lines, and `ffvals`.

`tabs`: all hypotheses of a sentence on a line with TABs between them, without scores, as the lists
of DoRe (https://github.com/kanekomasahiro/Re-ranking). Nothing in these files says that they are
lists: their format must be named.

`mbr-nmt`: `NC=n`, then the n candidates of a sentence, without scores, as
https://github.com/Roxot/mbr-nmt has them.

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
from rerank.formats.document_files import structure
from rerank.formats.moses_grammar import SEPARATOR, is_numeric
from rerank.formats.row_builder import ReadOnlyFormat, RowBuilder
from rerank.formats.tokens import HEAD, numbers_cure

_COMPARED = 200  # lists whose texts are compared, and the fewest that tell
_FEWEST_LISTS = 6
_COUNT = re.compile(rb"NC=([0-9]{1,7})")
_DECIMAL = re.compile(  # no number of things
    rb"[\[(]?(?:[+-]?[0-9]*[.,][0-9]+(?:[eE][+-]?[0-9]+)?|-[0-9]+)%?[\])]?"
)
_CONVERT = "`rerank convert --kbest-format {} --to moses --kbest FILE > NEW`"
_IDS_AND_TEXTS = "it looks like a table of ids, texts and scores, which becomes a list by {}"
_SCORED = (
    "it looks like plain text with numbers beside each hypothesis: if it has K hypotheses of each "
    f"sentence, a line each, use {_CONVERT.format('flat:K')}"
)
_TABLE = (
    "it looks like a table with columns of numbers: write each hypothesis as 'id ||| text ||| "
    "numbers'"
)
_TABS = (
    "it looks like plain text with TABs: if a line has the hypotheses of a sentence, use "
    + _CONVERT.format("tabs")
)
_PLAIN = (
    "it looks like plain text: if it has K hypotheses of each sentence, a line each, use, with "
    "portage:K in place of flat:K and ffvals as SCORES for a list of Portage, "
    + _CONVERT.format("flat:K --kbest-scores SCORES")
)
_DIGIT_AT_END = re.compile(rb"^[0-9]|[0-9]$")  # before or after a decimal comma
_ALIGNMENT = re.compile(rb"\s*[0-9]+-[0-9]+(?:\s+[0-9]+-[0-9]+)*\s*")
_HEAD = 200  # lines that tell which columns are numbers
_FEWEST = 3  # lines whose words are compared
_OTHER_BARS = re.compile(rb"[0-9]+ (\|{1,2}|#|;|(?:\xe2\x94\x82|\xef\xbd\x9c)+) ")
_COLUMN_MARKS = (
    (b"\t", "TAB-separated", "cut -f {}"),
    (SEPARATOR, "|||-separated", "awk -F' *[|][|][|] *' '{{print ${}}}'"),
)
_ENDS = (  # place of a word on the line, and the commands that remove it or part it by a TAB
    (0, "start", "cut -d ' ' -f 2-", r"sed -E 's/^[[(]?([^] )]+)[])]? +/\1\t/'"),
    (-1, "end", "sed -E 's/ +[^ ]+$//'", r"sed -E 's/ +[[(]?([^] )]+)[])]?$/\t\1/'"),
)

Oddity: TypeAlias = tuple[str, Mapping[str, Any]]
"""The name of a warning, and the values of its fields."""


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
        found = line.split(self.separator) if self.separator and line.strip() else [line]
        n = len(found) // self.size
        return [one for i in range(n) for one in found[i::n]] if self.apart else found

    def hypotheses(self, line: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
        """Text and numbers of each hypothesis of a line; InputError for other columns."""
        cells = self.cells(line)
        for start in range(0, len(cells), self.size) if line.strip() else ():
            own = cells[start : start + self.size]
            if not _fits(own, self):
                raise InputError(
                    f"expected {self.size} columns of each hypothesis, its text and numbers, as on "
                    f"the first lines, found {shown(line)}"
                )
            others = own[: self.text] + own[self.text + 1 :]
            numeric = [cell for cell in others if not _ALIGNMENT.fullmatch(cell)]
            yield own[self.text], [number for cell in numeric for number in cell.split()]

    def table_of_ids(self, head: Iterable[bytes]) -> str:
        """The command that makes a list of lines whose first column has ids; empty for others."""
        if not self.text:
            return ""
        rows = [line.split(self.separator) for line in head if line.strip()]
        if not _are_ids([row[0] for row in rows]):
            return ""
        others = [f' " " ${n}' for n in range(2, self.size + 1) if n != self.text + 1]
        columns = f'$1 " ||| " ${self.text + 1} " |||"{"".join(others)}'
        mark = {b"\t": "\\t", b",": ","}.get(self.separator, " *[|][|][|] *")
        return f"`awk -F'{mark}' '{{print {columns}}}' FILE > NEW`"


def _fits(cells: Sequence[bytes], columns: _Columns) -> bool:
    """Whether the columns of a line are those of hypotheses, each with its numbers."""
    return len(cells) % columns.size == 0 and all(
        place % columns.size == columns.text or is_numeric(cell) or _ALIGNMENT.fullmatch(cell)
        for place, cell in enumerate(cells)
    )


def columns_of(head: Iterable[bytes], *, several: bool) -> _Columns:
    """The columns of a list that begins with these lines.

    several: whether a line may have several hypotheses, with TABs between.
    """
    lines = [line for line in head if line.strip()]
    marks = (b"\t", SEPARATOR) if several else (b"\t", SEPARATOR, b",")
    for apart, separator in product((False, True) if several else (False,), marks):
        widths = {line.count(separator) + 1 for line in lines}
        for size in range(2, max(widths, default=0) + 1):
            if not several and widths != {size}:
                continue
            for text in range(size):
                columns = _Columns(separator, size, text, apart)
                rows = list(map(columns.cells, lines))
                texts = [cell for row in rows for cell in row[text::size]]
                one_number = separator == b"," and any(map(_DIGIT_AT_END.search, texts))
                if (
                    all(_fits(row, columns) for row in rows)
                    and not one_number
                    and not all(map(is_numeric, texts))
                ):
                    return columns
    return _Columns(b"\t") if several else _Columns()


def looks_like(head: Sequence[bytes]) -> str:
    """What a file may be that begins with these lines, none of them JSON or of numbers alone."""
    rows = [line.split(SEPARATOR) for line in head if line.strip()]
    if all(len(row) == 2 and row[0].strip().isdigit() for row in rows):
        return "it looks like a list without features, which `sed 's/$/ |||/' FILE > NEW` writes"
    if found := _OTHER_BARS.match(head[0]):
        mark = found[1]
        if all(line.count(b" %s " % mark) > 1 for line in head if line.strip()):
            command = f"sed 's/ {mark.decode()} / ||| /g' FILE > NEW"
            return f"it looks like a list with other marks than |||, which `{command}` writes"
    single = columns_of(head, several=False)
    if single.size == 1 and columns_of(head[1:], several=False).size > 1:
        below = looks_like(head[1:])
        return f"its first line is a heading: without it, as `sed 1d FILE > NEW` writes, {below}"
    if single.size > 1:
        command = single.table_of_ids(head)
        return _IDS_AND_TEXTS.format(command) if command else _SCORED
    if len(rows[0]) > 1:
        return ""
    if any(b"\t" in line for line in head):
        several = columns_of(head, several=True)
        cells = [cell for line in head for cell in line.split(b"\t")]
        return _TABLE if several.size == 1 and any(map(is_numeric, cells)) else _TABS
    odd = [
        f"{row.sentence_of(values)}; {row.cure_of({**values, 'into': ' FILE > NEW'})}; "
        for kind, values in odd_words(head)
        for row in [diagnostics()[kind]]
    ]
    return "".join(odd) + _PLAIN


def _are_ids(cells: Sequence[bytes]) -> bool:
    """Whether a column counts the sentences: from 0 or 1, by one at most, some of them twice."""
    if not all(cell.strip().isdigit() for cell in cells):
        return False
    ids = list(map(int, cells))
    return ids[0] in (0, 1) and all(0 <= b - a <= 1 for a, b in pairwise(ids)) and len(ids) > 1


def odd_words(texts: Sequence[bytes], k: int | None = None) -> Iterator[Oddity]:
    """Notices of texts that all begin, or end, with an id or a number.

    An id is another word in each line or, with k lines a sentence, in each sentence, or counts the
    lines of each.
    """
    words = [found for text in texts if len(found := text.split()) > 1]
    if len(words) < max(_FEWEST, len(texts)):
        return
    for place, end, cut, part in _ENDS:
        own = [found[place] for found in words]
        if all(map(_DECIMAL.fullmatch, own)):
            yield "number-as-word", {"example": shown(own[0]), "end": end, "command": part}
        elif all(any(48 <= byte <= 57 for byte in word) for word in own):
            sentences = [set(own[a : a + k]) for a in range(0, len(own), k)] if k else []
            of_each = len(set(own)) == len(sentences) == sum(map(len, sentences))
            counted = k is not None and len(set(own[:k])) == k and own == own[:k] * (len(own) // k)
            if len(set(own)) == len(own) or ((of_each or counted) and len(sentences) >= _FEWEST):
                yield "id-as-word", {"example": shown(own[0]), "end": end, "command": cut}


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

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file; InputError for another number of scores."""
        scores = None if self.scores is None else iter(self.scores)
        names: tuple[str, ...] = ()
        number = 0
        columns, lines = _started(found, lines, several=False, k=self.k)
        for line in found.numbered(lines):
            number, values = found.line, list[float]()
            if scores is not None:
                tokens = next(scores, None)
                if tokens is None:
                    raise self._unequal(number - 1, f"more in {found.source}")
                try:
                    values = [found.number(token, "a score") for token in tokens.split()]
                except InputError as fault:
                    others = not NUMBER.fullmatch(tokens.split()[0])
                    head = [tokens, *islice(scores, HEAD)] if others else []
                    message = f"{fault}{numbers_cure(head, self.scores_name)}"
                    raise InputError(message, source=self.scores_name, line=number) from None
            try:
                text, numbers = next(columns.hypotheses(line), (b"", []))
                values += [found.number(token, "a score") for token in numbers]
            except InputError as fault:
                found.refuse(fault)
                continue
            if not text.strip() and not values:
                found.note("padding")
                continue
            if len(names) != len(values):
                names = _names(values)
            found.add((number - 1) // self.k, text, names, values)
            yield
        if scores is not None and next(scores, None) is not None:
            raise self._unequal(number, f"more in {self.scores_name}")
        if number % self.k:
            there = f"{number:,} lines, {number % self.k} of the last one"
            raise found.fault(
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

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file.

        A line without any words is a sentence with one empty hypothesis; beside other hypotheses
        a blank one is left out, and counted.
        """
        columns, lines = _started(found, lines, several=True)
        for line in found.numbered(lines):
            try:
                own = [one for one in columns.hypotheses(line) if one[0].strip() or one[1]]
            except InputError as fault:
                found.refuse(fault)
                continue
            skipped = (line.count(b"\t") + 1) // columns.size - max(len(own), 1)
            if skipped:
                found.note("blank-hypothesis", count=skipped)
            numeric = sum(is_numeric(text) for text, _ in own)
            if columns.size == 1 and 0 < numeric < len(own):
                found.note("number-as-hypothesis", count=numeric)
            for text, numbers in own or [(b"", [])]:
                values = [found.number(token, "a score") for token in numbers]
                found.add(found.line - 1, text, _names(values), values)
            yield


def _started(
    found: RowBuilder,
    lines: Iterable[bytes],
    *,
    several: bool,
    k: int | None = None,
    counted: bool = False,
) -> tuple[_Columns, Iterator[bytes]]:
    """The columns of a list by its first lines, and all lines; notes what its owner should know.

    several: see `columns_of`; k: lines of a sentence; counted: whether there are lines `NC=n`.
    """
    rest = iter(lines)
    head = list(islice(rest, max(_HEAD, min(_COMPARED * (k or 0), 50 * _HEAD))))
    texts = [line for line in head if not (counted and _COUNT.fullmatch(line.strip()))]
    rows = [line.split(SEPARATOR) for line in texts if line.strip()]
    if rows and all(len(row) > 2 and row[0].strip().isdigit() for row in rows):
        cure = "leave out --kbest-format"
        raise found.fault(f"expected texts, found lines with ids, as {shown(texts[0])}; {cure}", 1)
    if other := structure(texts, found.source, None):
        cure = other[1] if not several else "write the texts without quotation marks"
        if other[0].startswith("JSON with .") or "over several" in other[0]:
            cure = "leave out --kbest-format"
        raise found.fault(f"expected texts, found {other[0]}; {cure}", 1)
    columns = columns_of(texts, several=several)
    if not (several or counted) and (command := columns.table_of_ids(texts)):
        raise found.fault(f"expected texts, found ids before them; {command} writes a list", 1)
    found.line = 1
    of_lines = [[*columns.hypotheses(line)] for line in texts]
    own = [one for row in of_lines for one in row]
    if any(numbers for _, numbers in own):
        found.note("scores-beside-hypotheses")
    elif several and (command := _column_of_numbers(texts)):
        raise found.fault(
            "expected texts between TABs, or as many numbers as texts, found a column of numbers; "
            f"`{command} FILE > NEW` leaves it out"
        )
    candidates = [text for text, _ in own]
    for kind, values in () if several else odd_columns(candidates) or odd_words(candidates, k):
        found.note(kind, **values)
    in_places = [text for row in of_lines for text, _ in row or [(b"", [])]]
    if k is not None and k > 1 and _unlike(in_places, k):
        found.note("unlike-candidates", k=k)
    return columns, chain(head, rest)


def _unlike(texts: Sequence[bytes], k: int) -> bool:
    """Whether neighbours in a list of k texts share no more than those of two lists.

    The first lists are compared, if they are enough to tell.
    """
    lists = [texts[a : a + k] for a in range(0, min(len(texts), _COMPARED * k) - k + 1, k)]
    within = [_shared(*pair) for one in lists for pair in (one[:2], one[-2:])]
    across = [_shared(one[-1], other[0]) for one, other in pairwise(lists)]
    known = [[share for share in shares if share >= 0] for shares in (within, across)]
    if min(map(len, known)) < _FEWEST_LISTS - 1:
        return False
    return fmean(known[0]) <= 1.1 * fmean(known[1]) + 0.05


def _shared(one: bytes, other: bytes) -> float:
    """The share of strings of 4 bytes in the shorter text that are in both; −1 for tiny texts."""
    pieces, others = ({text[i : i + 4] for i in range(len(text) - 3)} for text in (one, other))
    return len(pieces & others) / min(len(pieces), len(others)) if pieces and others else -1.0


def odd_columns(texts: Sequence[bytes]) -> list[Oddity]:
    """The notice of texts that all have the same number of further columns."""
    for separator, name, command in _COLUMN_MARKS:
        rows = [text.split(separator) for text in texts]
        if len(rows) >= _FEWEST and {len(row) for row in rows} == {n := len(rows[0])} != {1}:
            sizes = [sum(len(row[i]) for row in rows) for i in range(n)]
            text = sizes.index(max(sizes))
            other = shown(rows[0][0 if text else 1].strip())
            values = {"columns": f"{n} {name}", "example": other}
            return [("columns-as-text", {**values, "command": command.format(text + 1)})]
    return []


def _column_of_numbers(lines: Iterable[bytes]) -> str:
    """The command that leaves out a column with a number on every line; empty for none."""
    rows = [list(map(is_numeric, line.split(b"\t"))) for line in lines if line.strip()]
    if len(rows) > 1 and not any(map(all, rows)):
        if all(row[-1] for row in rows):
            return r"sed 's/\t[^\t]*$//'"
        for place, column in enumerate(zip(*rows, strict=False), 1):
            if all(column):
                return f"cut -f {f'1-{place - 1},' if place > 1 else ''}{place + 1}-"
    return ""


def _names(values: Sequence[float]) -> tuple[str, ...]:
    """Names of features without labels."""
    return tuple(f"F{i}" for i in range(len(values)))


class MbrNmt(ReadOnlyFormat):
    """The format of mbr-nmt's candidates."""

    name = "mbr-nmt"
    description = "Candidates of mbr-nmt: NC=n before the n lines of a sentence; no features."
    suffixes = (".txt",)
    example = b"NC=2\nthe text\na text"

    def detect(self, head: Sequence[bytes]) -> bool:
        """Whether the first line that is not blank is a number of candidates."""
        return _COUNT.fullmatch(next(line for line in head if line.strip()).strip()) is not None

    def added(self, found: RowBuilder, lines: Iterable[bytes]) -> Iterator[None]:
        """Add the hypotheses of a file."""
        sentence, left = -1, 0
        columns, lines = _started(found, lines, several=False, counted=True)
        for line in found.numbered(lines):
            if left:
                text, numbers = next(columns.hypotheses(line), (b"", []))
                values = [found.number(token, "a score") for token in numbers]
                found.add(sentence, text, _names(values), values)
                left -= 1
                yield
                continue
            count = _COUNT.fullmatch(line.strip())
            if count is None:
                raise found.fault(f"expected NC=n before the next candidates, found {shown(line)}")
            sentence, left = sentence + 1, int(count[1])
        if left:
            raise found.fault(f"expected {left} more candidates of the last sentence, found none")

    def last_sentence(self, lines: Iterable[bytes]) -> int:
        """The number of the last `NC=n`, which may be `NC=0`."""
        last, left = -1, 0
        for line in lines:
            if left:
                left -= 1
            elif count := _COUNT.fullmatch(line.strip()):
                last, left = last + 1, int(count[1])
        return last
