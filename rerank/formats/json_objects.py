"""JSON of strangers: one reader for all of it, objects strictly read, and texts out of them.

msgspec reads JSON several times faster than the standard library, but it takes a repeated key in
silence, and refuses NaN, Infinity and half a surrogate pair without a place. It is therefore the
fast path and not the judge: where it fails, or reads fewer keys than there are `":`, the plain
reader decides, and words the fault.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from rerank.errors import InputError, shown
from rerank.formats.tokens import Place
from rerank.notices import Notices

DIGITS = 400  # of a whole number: more than any that is finite as a float has
_LARGE = 10**DIGITS
_KEY = re.compile(rb'"(?<![^\\]\\")\s*:')  # the end of one, or now and then of a part of a string
_LINE_ENDS = re.compile("[ \t\r]*\n[ \t\r\n]*")


class _Fault(ValueError):
    """A fault that JSON itself does not have."""


def writable(content: bytes) -> Any:
    """The value of a JSON text that can be written again, as the plain reader reads it.

    ValueError for NaN and infinities, 1e999 among them, and for half surrogate pairs.
    """
    found = json.loads(content)
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    return found


def read_json(content: bytes, plain: Callable[[bytes], Any] = json.loads) -> Any:
    """The value of a JSON text as the plain reader reads it, or its exception. O(bytes)."""
    with suppress(msgspec.MsgspecError, RecursionError):
        found = msgspec.json.decode(content)
        if has_all(content, *counts(found)):
            return found
    return plain(content)


def has_all(content: bytes, strings: int, keys: int) -> bool:
    """Whether a JSON text, of which so many strings were read, has surely no further keys.

    keys: how many of the strings are keys. A key that is there twice was read once.
    """
    escaped = b"\\" in content and b'\\"' in content
    if not escaped and content.count(b'"') == 2 * strings:
        return True  # the common case, in a tenth of the time
    return len(_KEY.findall(content)) == keys


def counts(value: object) -> tuple[int, int]:
    """Numbers of strings in a value, and of the keys among them.

    Below 0 where it has a number of more than 400 digits.
    """
    if isinstance(value, dict | list):
        keys = len(value) if isinstance(value, dict) else 0
        found = [counts(one) for one in (value.values() if isinstance(value, dict) else value)]
        return keys + sum(one for one, _ in found), keys + sum(one for _, one in found)
    if type(value) is int and not -_LARGE < value < _LARGE:
        return -_LARGE, -_LARGE
    return int(isinstance(value, str)), 0


def read_object(content: bytes, place: Place | None = None) -> dict[str, Any]:
    """A JSON object; InputError for other content, and for a key that is there twice.

    place: of the first line of the content.
    """
    place = Place("", Notices(), 0) if place is None else place
    try:
        found = read_json(content, lambda content: _DECODER.decode(content.decode()))
    except json.JSONDecodeError as fault:
        raise place.fault(
            f"expected one JSON object, found {shown(content)}: {fault.msg} at column "
            f"{fault.colno}{_cure(content, fault, place.argument)}",
            place.line and place.line + fault.lineno - 1,
        ) from None
    except (_Fault, UnicodeDecodeError) as fault:
        raise place.fault(f"expected a JSON object, {fault}") from None
    except RecursionError:
        raise place.fault("expected a JSON object, found too deep a nesting") from None
    if not isinstance(found, dict):
        raise place.fault(f"expected a JSON object, found {shown(content)}")
    return found


def _cure(content: bytes, fault: json.JSONDecodeError, file: str) -> str:
    """What to do about a line that is no JSON."""
    if fault.msg == "Extra data":
        return f"; `jq -c . {file} > lists.jsonl` writes an object a line"
    if fault.pos >= len(fault.doc.rstrip()):
        cure = f"`jq -c . {file} > lists.jsonl`"
        return f"; the file is cut off, or has objects on several lines: try {cure}"
    if re.match(rb"\s*\{\s*'", content):
        return "; JSON has double quotes: write it with json.dumps"
    return "; correct the line, or write it again with json.dumps or `jq -c`"


def read_objects(lines: Iterable[bytes], place: Place) -> Iterator[dict[str, Any]]:
    """The object on each line that is not blank."""
    for line in place.filled(lines):
        try:
            found = read_object(line, place)
        except InputError as fault:
            place.refuse(fault)
        else:
            yield found


def encoded(text: str, key: str) -> bytes:
    """UTF-8 of the text at a key; InputError for half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InputError(f"found half a surrogate pair in {key!r}; write whole ones") from None


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


def first_key(found: Container[str], names: Iterable[str]) -> str | None:
    """The first of the names that is a key of an object, or among its keys."""
    return next((name for name in names if name in found), None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON object without repeated keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _Fault(f"found the key {twice!r:.60} twice in one object")
    return found


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
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
