"""What readers of files need: places in a file, limits, numbers, names, and JSON of strangers.

msgspec reads JSON several times faster than the standard library, but it takes a repeated key in
silence, and refuses NaN, Infinity and half a surrogate pair without a place. It is therefore the
fast path and not the judge: where it fails, or reads fewer keys than there are `":`, the plain
reader decides, and words the fault.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any, TypeAlias

import msgspec

from rerank.errors import InputError, RerankError, shown
from rerank.files.encoding import LARGEST, NUMBER
from rerank.notices import Notices

_INFINITE = re.compile(rb"[+-]?inf(?:inity)?", re.IGNORECASE)
_UNPACKED = {".gz": "zcat", ".bz2": "bzcat", ".xz": "xzcat"}
_NOT_PLAIN = re.compile("[^0-9A-Za-z]")
HEAD = 50  # lines of another tool's output that show what it is
_HEAD_BYTES = 1 << 16
_MAX_BYTES = 128 << 20  # of a file whose texts are kept, unpacked
_DIGIT = re.compile(rb"[0-9]")
_SCORE_KEY = re.compile("comet|score|predict|log.?prob|^f1$", re.IGNORECASE)
_NUMBER_KEY = re.compile(rb'"([^"\\]+)"\s*:\s*\[?\s*-?[0-9]')
_LIST_KEY = re.compile(rb'"([^"\\]+)"\s*:\s*\[\s*-?[0-9]')
_LOG10_TOTAL = re.compile(  # of a line, by KenLM's query and by SRILM's ngram -ppl -debug 1
    rb"(^|\t)Total: \S+ OOV: | zeroprobs, logprob= \S+ ppl= "
)

CLIP = "; give --clip-inf -1e4 to read infinities as ±1e4"
DIGITS = 400  # of a whole number: more than any that is finite as a float has
_LARGE = 10**DIGITS
_KEY_END = re.compile(rb'"(?<![^\\]\\")\s*:')  # or now and then of a part of a string
_LINE_ENDS = re.compile("[ \t\r]*\n[ \t\r\n]*")

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
        """The error about a line, by default the current one.

        Its commands read this file where the message has FILE, and write NEW beside it.
        """
        new = "NEW" if self.argument == "FILE" else shlex.quote(f"{self.source}.new")
        message = message.replace(" FILE > NEW`", f" {self.argument} > {new}`")
        return InputError(message, source=self.source, line=line or self.line or None)

    def note(self, name: str, /, *, line: int | None = None, **more: Any) -> None:
        """Count a warning of a line, by default the current one; more: as of `Notices.add`."""
        self.notices.add(name, source=self.source, line=line or self.line or None, **more)

    def refuse(self, fault: InputError) -> None:
        """Refuse an entry, on the current line if the error has no place."""
        self.notices.refuse(fault if fault.line else self.fault(str(fault)))


def first_line(lines: Iterable[bytes]) -> bytes:
    """The first line that is not blank, without white space around it; empty if there is none."""
    return next(filter(None, map(bytes.strip, lines)), b"")


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


def check_size(size: int, most: int, source: str) -> None:
    """InputError if what is kept in memory of a file is too much."""
    if size > most:
        raise InputError(
            f"expected at most {most:,} bytes of texts, unpacked, found more; is this the right "
            "file?",
            source=source,
        )


def bounded(lines: Iterable[bytes], source: str) -> Iterator[bytes]:
    """The lines of a file whose texts are kept; InputError beyond `_MAX_BYTES`."""
    size = 0
    for line in lines:
        size += len(line) + 1
        check_size(size, _MAX_BYTES, source)
        yield line


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
    """The cure of a file that should hold a number on each line; empty for lines without digits.

    lines: the first that are not such numbers, or only the heading above them. Totals of KenLM and
    SRILM are log10, and JSON needs a command.
    """
    head = b"\n".join(lines)[:_HEAD_BYTES]
    file = Place(file, Notices()).argument
    if all(NUMBER.fullmatch(line.strip()) for line in lines):
        return ""
    in_lists = _LIST_KEY.findall(head) or _NUMBER_KEY.findall(head)
    keys = Counter(key.decode(errors="replace") for key in in_lists)
    if keys and head.lstrip()[:1] in (b"{", b"["):
        ranked = [key for key, _ in keys.most_common()]
        key = json.dumps(next(filter(_SCORE_KEY.search, ranked), ranked[0]), ensure_ascii=False)
        program = f".. | objects | .[{key}] | .. | numbers"
        return f"; `jq '{program}' {file} > numbers` writes its numbers"
    if _LOG10_TOTAL.search(head):
        return (
            "; write its totals alone, one on each line, as natural logarithms: those of KenLM and "
            "SRILM are log10, so multiply them by 2.302585"
        )
    digits = [_DIGIT.search(line) is not None for line in lines]
    if all(digits[1:]) and (digits[0] or len(lines) > 1):
        return "; write its numbers alone, one on each line, as -0.41"
    return ""


def list_number(clip: float | None, clipped: Callable[[], None]) -> Number:
    """A parser of numbers of a list, which `clip` makes read infinite and larger ones as ±`clip`.

    It calls `clipped` for each of these; without `clip` they are InputErrors.
    """
    if clip is None:
        return partial(number, cure=CLIP)

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


def similar(name: str, names: Iterable[str], there_are: str = "there are") -> str:
    """Hint about an unknown name: the most similar known one or, if none is similar, all."""
    names = list(names)
    near = difflib.get_close_matches(name[:100], names, n=1)
    known = f"{there_are}: {', '.join(names[:20])}" if names else "there are none"
    return f"did you mean {near[0]!r}?" if near else known


def _is_infinite(token: bytes) -> bool:
    """Whether a number is written as infinite, or larger than `LARGEST`."""
    if NUMBER.fullmatch(token):
        return abs(float(token)) > LARGEST
    return _INFINITE.fullmatch(token) is not None


# JSON


class _JsonFault(ValueError):
    """A fault that JSON itself does not have."""


def writable(content: bytes) -> Any:
    """The value of a JSON text that can be written again, as the plain reader reads it.

    ValueError for NaN and infinities, 1e999 among them, and for half surrogate pairs.
    """
    value = json.loads(content)
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    return value


def read_json(content: bytes, plain: Callable[[bytes], Any] = json.loads) -> Any:
    """The value of a JSON text as the plain reader reads it, or its exception. O(bytes)."""
    with suppress(msgspec.MsgspecError, RecursionError):
        value = msgspec.json.decode(content)
        if has_all(content, *counts(value)):
            return value
    return plain(content)


def has_all(content: bytes, strings: int, keys: int) -> bool:
    """Whether a JSON text, of which so many strings were read, has surely no further keys.

    keys: how many of the strings are keys. A key that is there twice was read once.
    """
    escaped = b"\\" in content and b'\\"' in content
    if not escaped and content.count(b'"') == 2 * strings:
        return True  # the common case, in a tenth of the time
    return len(_KEY_END.findall(content)) == keys


def counts(value: object) -> tuple[int, int]:
    """Numbers of strings in a value, and of the keys among them.

    Below 0 where it has a number of more than 400 digits.
    """
    if isinstance(value, dict | list):
        keys = len(value) if isinstance(value, dict) else 0
        members = value.values() if isinstance(value, dict) else value
        inner = [counts(member) for member in members]
        return keys + sum(n for n, _ in inner), keys + sum(n for _, n in inner)
    if type(value) is int and not -_LARGE < value < _LARGE:
        return -_LARGE, -_LARGE
    return int(isinstance(value, str)), 0


def read_object(content: bytes, place: Place | None = None) -> dict[str, Any]:
    """A JSON object; InputError for other content, and for a key that is there twice.

    place: of the first line of the content.
    """
    place = Place("", Notices(), 0) if place is None else place
    try:
        value = read_json(content, lambda content: _DECODER.decode(content.decode()))
    except json.JSONDecodeError as fault:
        raise place.fault(
            f"expected one JSON object, found {shown(content)}: {fault.msg} at column "
            f"{fault.colno}; {_json_cure(content, fault)}",
            place.line and place.line + fault.lineno - 1,
        ) from None
    except (_JsonFault, UnicodeDecodeError) as fault:
        raise place.fault(f"expected a JSON object, {fault}") from None
    except RecursionError:
        raise place.fault("expected a JSON object, found too deep a nesting") from None
    if not isinstance(value, dict):
        raise place.fault(f"expected a JSON object, found {shown(content)}")
    return value


def _json_cure(content: bytes, fault: json.JSONDecodeError) -> str:
    """What to do about a line that is no JSON."""
    if fault.msg == "Extra data":
        return "write one object on each line"
    if fault.pos >= len(fault.doc.rstrip()):
        return "is the file cut off, or an object on several lines? write each on one line"
    if re.match(rb"\s*\{\s*'", content):
        return "JSON has double quotes: write it with json.dumps"
    return "correct the line, or write it again with json.dumps"


def read_objects(lines: Iterable[bytes], place: Place) -> Iterator[dict[str, Any]]:
    """The object on each line that is not blank."""
    for line in place.filled(lines):
        try:
            value = read_object(line, place)
        except InputError as fault:
            place.refuse(fault)
        else:
            yield value


def encoded(text: str, key: str, place: Place) -> bytes:
    """UTF-8 of the text at a key; InputError for half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise place.fault(f"found half a surrogate pair in {key!r}; write whole ones") from None


def text_of(value: object, what: str, place: Place) -> bytes:
    """A text in UTF-8 on one line; InputError for a value that is no text."""
    if not isinstance(value, str):
        raise place.fault(f"expected a text for {what}, found {value!r:.60}")
    if "\n" in value:
        place.note("line-end-in-text")
        value = _LINE_ENDS.sub(" ", value.strip(" \t\r\n"))
    try:
        text = value.encode()
    except UnicodeEncodeError:
        raise place.fault(f"expected a text for {what}, found half a surrogate pair") from None
    if b"\0" in text:
        raise place.fault(f"expected a text for {what}, found a NUL character")
    return text


def first_key(keys: Container[str], names: Iterable[str]) -> str | None:
    """The first of the names that is a key of an object, or among its keys."""
    return next((name for name in names if name in keys), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON object without repeated keys."""
    value = dict(pairs)
    if len(value) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _JsonFault(f"found the key {twice!r:.60} twice in one object")
    return value


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise _JsonFault(f"found a number of {len(digits)} digits")
    return int(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole)


def first_object(head: Sequence[bytes]) -> dict[str, Any]:
    """The object on the first line that is not blank; empty if it is none."""
    first = first_line(head)
    with suppress(InputError):
        return read_object(first) if first.startswith(b"{") else {}
    return {}
