"""What readers of files need for tokens and messages: numbers, names, and places in a file."""

from __future__ import annotations

import difflib
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, TypeAlias

from rerank.errors import InputError, RerankError, shown
from rerank.files.encoding import LARGEST, NUMBER
from rerank.notices import Notices

_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_UNPACKED = {".gz": "zcat", ".bz2": "bzcat", ".xz": "xzcat"}
_NOT_PLAIN = re.compile("[^0-9A-Za-z]")
HEAD = 50  # lines of another tool's output that show what it is
_HEAD_BYTES = 1 << 16
_SCORE_KEY = re.compile("comet|score|predict|log.?prob|^f1$", re.IGNORECASE)
_LIST_KEY = re.compile(rb'"([^"\\]+)"\s*:\s*\[\s*-?[0-9][^]]*,')
_ONE_DECIMAL = re.compile(rb"-?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?")
_NUMBER_KEY = re.compile(rb'"([^"\\]+)"\s*:\s*\[?\s*-?[0-9]')
_TOTALS = {  # of a line: log10 of KenLM's query and of SRILM's ngram -ppl -debug 1
    re.compile(rb"(^|\t)Total: \S+ OOV: "): r"s/.*Total: \([^ ]*\) OOV: .*/\1/p",
    re.compile(rb" zeroprobs, logprob= \S+ ppl= "): r"s/.* logprob= \([^ ]*\) ppl= .*/\1/p",
}
_SEPARATORS = {
    b"|||": "awk -F' *[|][|][|] *' '{{print ${}}}'",
    b"\t": "cut -f {}",
    b",": "cut -d , -f {}",
    b" ": "cut -d ' ' -f {}",
}

Number: TypeAlias = Callable[[bytes, str], float]
"""Parser of a number; the second argument is its name in error messages."""


class Place:
    """The place of a reader in its file, which its errors and notices have.

    line: the current one, from 1; 0 where there is none.
    """

    def __init__(self, source: str, notices: Notices, line: int = 1) -> None:
        self.source, self.notices, self.line = source, notices, line

    @property
    def argument(self) -> str:
        """The file as a word of the shell, unpacked; FILE where it has no name."""
        if not self.source or self.source.startswith("<"):
            return "FILE"
        name = shlex.quote(self.source)
        tool = next((tool for end, tool in _UNPACKED.items() if self.source.endswith(end)), None)
        return name if tool is None else f"<({tool} {name})"

    @property
    def into_new(self) -> str:
        """The end of a command that reads this file and writes another one beside it."""
        new = "NEW" if self.argument == "FILE" else shlex.quote(f"{self.source}.new")
        return f" {self.argument} > {new}"

    def named(self, message: str) -> str:
        """A message whose commands read this file where it has FILE, and write NEW beside it."""
        return message.replace(" FILE > NEW`", f"{self.into_new}`")

    def numbered(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines, each of which is the current one until the next one is taken."""
        for self.line, line in enumerate(lines, 1):
            yield line

    def filled(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines that are not blank, likewise; the others are counted."""
        for line in self.numbered(lines):
            if line.strip():
                yield line
            else:
                self.note("blank-line")

    def fault(self, message: str, line: int | None = None) -> InputError:
        """The error about a line, by default the current one."""
        return InputError(self.named(message), source=self.source, line=line or self.line or None)

    def note(self, name: str, /, *, line: int | None = None, **more: Any) -> None:
        """Count a warning of a line, by default the current one; more: as of `Notices.add`."""
        line, into = line or self.line, self.into_new
        self.notices.add(name, source=self.source, line=line, into=into, **more)

    def refuse(self, fault: InputError) -> None:
        """Refuse an entry, on the current line if the error has no place."""
        self.notices.refuse(fault if fault.line else self.fault(str(fault)))


def chunks(lines: Iterable[bytes], n_bytes: int) -> Iterator[list[bytes]]:
    """Lists of lines, of `n_bytes` with the last line or, at the end, fewer."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        chunk.append(line)
        size += len(line) + 1
        if size > n_bytes:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def number(token: bytes, what: str, *, cure: str = "") -> float:
    """A number of at most `LARGEST` in size, in ASCII decimals.

    InputError for any other, also for `nan`, `1_0` and `١`, which Python takes; cure: of an
    infinite or larger number.
    """
    value = float(token) if NUMBER.fullmatch(token) else math.nan
    if abs(value) <= LARGEST:
        return value
    if not _is_infinite(token):
        raise InputError(f"expected a decimal number for {what}, found {shown(token)}")
    limit = "" if math.isinf(value) or math.isnan(value) else f" up to {LARGEST:g}"
    raise InputError(f"expected a finite number{limit} for {what}, found {shown(token)}{cure}")


def numbers_cure(lines: Sequence[bytes], file: str) -> str:
    """The command that writes the numbers in another tool's output alone, one a line, as a cure.

    lines: the first ones that are not numbers. Empty where no command is known.
    """
    head, also = b"\n".join(lines)[:_HEAD_BYTES], ""
    name = Place(file, Notices()).argument
    if not lines:
        return ""
    if notation := next((f for f, sound in _NOTATIONS.items() if sound(lines)), None):
        command = notation.format(name)
    elif head.lstrip()[:1] in (b"{", b"["):
        found = Counter(key.decode(errors="replace") for key in _NUMBER_KEY.findall(head))
        found.update(
            dict.fromkeys((k.decode(errors="replace") for k in _LIST_KEY.findall(head)), 2)
        )
        keys = [key for key, _ in found.most_common()]
        key = next(filter(_SCORE_KEY.search, keys), keys[0] if keys else None)
        own = json.dumps(key, ensure_ascii=False)
        command = f"jq '.. | objects | .[{own}] | .. | numbers' {name}" if key else ""
    elif any(b"\tscore: " in line for line in lines[:1]):
        command = f"sed -n 's/.*\\tSegment [0-9]*\\tscore: //p' {name}"
    elif total := next((part for sign, part in _TOTALS.items() if sign.search(head)), None):
        command = f"sed -n '{total}' {name} | awk '{{print $1 * 2.302585}}'"
        also = " as natural logarithms; those of KenLM and SRILM are log10"
    else:
        command = _column_command(lines, name)
    return f"; `{command} > numbers` writes its numbers{also}" if command else ""


def _all_numbers(lines: Sequence[bytes], table: dict[bytes, bytes]) -> bool:
    """Whether all lines, one at least, are numbers where some of these strings are replaced."""
    text = b"\n".join(lines)
    for old, new in table.items():
        text = text.replace(old, new)
    found = [line.split() for line in text.split(b"\n")]
    changed = not table or text != b"\n".join(lines)
    return changed and all(own and all(map(NUMBER.fullmatch, own)) for own in found)


_WITHOUT = dict.fromkeys((b"[", b"]", b"(", b")", b"%", b","), b"")
_NOTATIONS: dict[str, Callable[[Sequence[bytes]], bool]] = {
    "sed 's/\u2212/-/g' {}": lambda lines: _all_numbers(lines, {"\u2212".encode(): b"-"}),
    "tr -s ', ' '\\n' < {}": lambda lines: len(lines) == 1 and _all_numbers(lines, {b",": b" "}),
    "tr , . < {}": lambda lines: _all_numbers(lines, {b",": b"."}),
    "tr -d '[]()%,' < {}": lambda lines: _all_numbers(lines, _WITHOUT),
    "tr -s ' ' '\\n' < {}": lambda lines: _all_numbers(lines, {}) and b"\t" not in lines[0],
    "tail -n +2 {}": lambda lines: (
        len(lines) > 1 and b"\t" not in lines[1] and _all_numbers(lines[1:], {})
    ),
}  # how numbers in another notation, or below a heading, are written as they are read


def _column_command(lines: Sequence[bytes], file: str) -> str:
    """The command that writes the last column of numbers, below a heading if there is one."""
    for separator, command in _SEPARATORS.items():
        rows = [line.strip(b"\r").split(separator) for line in lines]
        width = min(map(len, rows), default=0)
        columns = [0] if separator == b" " else [*range(width - 1, -1, -1)]
        for column in columns if width > 1 else ():
            numeric = [NUMBER.fullmatch(row[column].strip()) is not None for row in rows]
            if all(numeric[1:]) and (numeric[0] or len(rows) > 2):
                cut = command.format(column + 1)
                return f"{cut} {file}" if numeric[0] else f"tail -n +2 {file} | {cut}"
    if all(len(_ONE_DECIMAL.findall(line)) == 1 for line in lines):
        return f"grep -oE -e '-?[0-9]+[.][0-9]+([eE][-+]?[0-9]+)?' {file}"
    return ""


def list_number(clip: float | None, clipped: Callable[[], None]) -> Number:
    """A parser of numbers of a list, which `clip` makes read infinite and larger ones as ±`clip`.

    It calls `clipped` for each of these; without `clip` they are InputErrors.
    """
    if clip is None:
        return partial(number, cure="; give --clip-inf -1e4 to read infinities as ±1e4")

    def read(token: bytes, what: str) -> float:
        if not _is_infinite(token):
            return number(token, what)
        clipped()
        return -abs(clip) if token.startswith(b"-") else abs(clip)

    return read


def written(value: float, what: str, *, digits: int | None = None) -> bytes:
    """A number with this many significant digits, or with enough to read back the same bits.

    Exponents have no `+`, which mert-moses.pl refuses. `RerankError` for infinity and NaN.
    """
    if not math.isfinite(value):
        raise RerankError(f"expected a finite number to write for {what}, found {value}")
    text = f"{value:.{digits}g}" if digits else repr(float(value)).removesuffix(".0")
    return text.replace("e+", "e").encode()


@lru_cache
def plain_name(name: str) -> str:
    """The name of a feature in letters and digits, a letter first, as Moses reads it.

    Empty for a name without any.
    """
    plain = _NOT_PLAIN.sub("", name)
    return plain if not plain or plain[0].isalpha() else f"F{plain}"


def similar(name: str, names: Iterable[str]) -> str:
    """Hint about an unknown name: the most similar known one or, if none is similar, all."""
    names = list(names)
    near = difflib.get_close_matches(name[:100], names, n=1)
    known = f"there are: {', '.join(names[:20])}" if names else "there are none"
    return f"did you mean {near[0]!r}?" if near else known


def _is_infinite(token: bytes) -> bool:
    """Whether a number is written as infinite, or larger than `LARGEST`."""
    if NUMBER.fullmatch(token):
        return abs(float(token)) > LARGEST
    return _INFINITE.fullmatch(token) is not None
