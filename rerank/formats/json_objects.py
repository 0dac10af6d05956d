"""JSON of strangers: one object a line, strictly read, and the values that lists need of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rerank.errors import InputError
from rerank.formats.tokens import shown
from rerank.notices import Notices

_DIGITS = 400  # more than any number that is finite as a float
_LINE_ENDS = re.compile("[ \t\r]*\n[ \t\r\n]*")
BLANK = "blank line, skipped"
LINE_END = "line end inside a text, read as a space"


class _Fault(ValueError):
    """A fault that JSON itself does not have."""


def read_object(content: bytes, *, source: str = "", line: int | None = None) -> dict[str, Any]:
    """A JSON object; InputError for other content, and for a key that is there twice."""
    try:
        found = _DECODER.decode(content.decode())
    except json.JSONDecodeError as fault:
        raise InputError(
            f"expected one JSON object, found {shown(content)}: {fault.msg} at column "
            f"{fault.colno}{_cure(content, fault)}",
            source=source,
            line=None if line is None else line + fault.lineno - 1,
        ) from None
    except (_Fault, UnicodeDecodeError) as fault:
        raise InputError(f"expected a JSON object, {fault}", source=source, line=line) from None
    except RecursionError:
        raise InputError(
            "expected a JSON object, found too deep a nesting", source=source, line=line
        ) from None
    if not isinstance(found, dict):
        raise InputError(
            f"expected a JSON object, found {shown(content)}", source=source, line=line
        )
    return found


def _cure(content: bytes, fault: json.JSONDecodeError) -> str:
    """What to do about a line that is no JSON."""
    if fault.msg == "Extra data":
        return "; `jq -c . FILE` writes an object a line"
    if fault.pos >= len(fault.doc.rstrip()):
        return "; the file is cut off, or has objects on several lines: try `jq -c . FILE`"
    if re.match(rb"\s*\{\s*'", content):
        return "; JSON has double quotes: write it with json.dumps"
    return "; correct the line, or write it again with json.dumps or `jq -c`"


def read_objects(
    lines: Iterable[bytes], notices: Notices, *, source: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, its object) of each line that is not blank."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            notices.add(BLANK, source=source, line=number)
            continue
        try:
            found = read_object(line, source=source, line=number)
        except InputError as fault:
            notices.refuse(fault)
        else:
            yield number, found


def text_of(value: object, what: str, notices: Notices, *, source: str, line: int) -> bytes:
    """A text in UTF-8 on one line; InputError for a value that is no text."""
    if not isinstance(value, str):
        raise InputError(
            f"expected a text for {what}, found {value!r:.60}", source=source, line=line
        )
    if "\n" in value:
        notices.add(LINE_END, source=source, line=line)
        value = _LINE_ENDS.sub(" ", value.strip(" \t\r\n"))
    try:
        text = value.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"expected a text for {what}, found half a surrogate pair", source=source, line=line
        ) from None
    if b"\0" in text:
        raise InputError(
            f"expected a text for {what}, found a NUL character", source=source, line=line
        )
    return text


def first_key(found: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """The first of the names that is a key of an object."""
    return next((name for name in names if name in found), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON object without repeated keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _Fault(f"found the key {twice!r:.60} twice in one object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise _Fault(f"found a number of {len(digits)} digits")
    return int(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole)


def first_object(head: Sequence[bytes]) -> dict[str, Any]:
    """The object on the first line that is not blank; empty if it is none."""
    first = next(line for line in head if line.strip())
    if not first.lstrip().startswith(b"{"):
        return {}
    try:
        return read_object(first)
    except InputError:
        return {}
