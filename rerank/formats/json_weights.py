"""Weights files in JSON: their content checked, with the line of a fault.

    {"schema": 1, "weights": {"LM0": [0.5], "TM0": [0.2, 0.3]}, "sparse": {}, "alpha": null,
     "provenance": {}}

or the object at `weights` alone, where one number needs no list. `mbr_spread` and `decoder_names`
may be missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from rerank.corpus import LARGEST
from rerank.errors import InputError
from rerank.formats.json_objects import DIGITS, read_json
from rerank.formats.tokens import similar

SCHEMA = 1
_KEYS = ("schema", "weights", "sparse", "alpha", "mbr_spread", "decoder_names", "provenance")
_Parts: TypeAlias = tuple[
    dict[str, tuple[float, ...]],
    dict[str, float],
    float | None,
    dict[str, object],
    float | None,
    dict[str, str],
]
_FORMS = (
    'write names and numbers, {"LM0": 0.5, "TM0": [0.2, 0.3]}, or '
    f'{{"schema": {SCHEMA}, "weights": {{"LM0": 0.5}}}}'
)
_DEEP = 100  # objects and lists in each other, of which Python reads several times as many

Place: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead to a value."""
_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)|"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+'
)


class _Fault(ValueError):
    """What was found: at a place, which in a file of weights alone lacks its first key; or a line.

    The place of none, which is that of the file, is ().
    """

    def __init__(self, message: str, *place: str | int, line: int = 0) -> None:
        super().__init__(message)
        self.place, self.line = place, line


def read_json_weights(content: bytes, *, source: str = "") -> _Parts:
    """Dense and sparse weights, alpha, provenance, spread of mbr, and decoder names, of a file.

    InputError with the line of a fault.
    """
    values = _values(content.decode())  # lines of a file are UTF-8
    try:
        found = read_json(content, _strict)
        return _checked(found) if "schema" in found else _without_schema(found)
    except json.JSONDecodeError as fault:
        raise InputError(f"expected JSON: {fault.msg}", source=source, line=fault.lineno) from None
    except RecursionError:
        message = "found too deep a nesting"
        line = next((line for place, _, line in values if len(place) > _DEEP), 1)
    except _Fault as fault:
        message, places = str(fault), {fault.place, fault.place[1:] or fault.place}
        line = fault.line or next((line for place, _, line in values if place in places), 1)
    raise InputError(f"expected JSON weights, {message}", source=source, line=line)


def _strict(content: bytes) -> Any:
    """The value of a JSON text; a fault for a repeated key and what no weights file has."""
    text = content.decode()
    json.loads(text, parse_int=float)
    seen = set[Place]()
    for place, token, line in _values(text):
        key = place[-1] if place else 0
        if place in seen:
            raise _Fault(f"found the key {key!r} twice in one object", line=line)
        if isinstance(key, str) and re.search("[\ud800-\udfff]", key):
            raise _Fault(f"found half a surrogate pair in the key {key!r}", line=line)
        if token in ("NaN", "Infinity", "-Infinity"):
            raise _Fault(f"found {token}", line=line)
        if len(token) > DIGITS and token.removeprefix("-").isdigit():
            raise _Fault(f"found a number of {len(token)} digits", line=line)
        seen.add(place)
    return json.loads(text)


def _values(text: str) -> Iterator[tuple[Place, str, int]]:
    """Place, first token and line of every value of a JSON text."""
    place: list[str | int] = []
    line, end = 1, 0
    for token in _TOKEN.finditer(text):
        line, end = line + text.count("\n", end, token.start()), token.start()
        if token["key"]:
            place[-1] = json.loads(token["key"])
        elif token[0] in ("}", "]"):
            place.pop()
        elif token[0] == ",":
            place[-1:] = [last + 1 if isinstance(last, int) else last for last in place[-1:]]
        elif token[0] != ":":
            yield tuple(place), token[0], line
            if token[0] in ("{", "["):
                place.append("" if token[0] == "{" else 0)


def _without_schema(found: Mapping[str, Any]) -> _Parts:
    """The parts of a file that has names and numbers alone."""
    key = next((key for key in _KEYS if isinstance(found.get(key), dict)), None)
    if key is not None:
        raise _Fault(f"found {key!r} without 'schema'; add \"schema\": {SCHEMA}", key)
    try:
        return _checked({"schema": SCHEMA, "weights": found})
    except _Fault as fault:
        raise _Fault(f"{fault}; {_FORMS}", *fault.place) from None


def _checked(found: Mapping[str, Any]) -> _Parts:
    """The parts of a file."""
    for key in found:
        if key not in _KEYS:
            raise _Fault(f"found the key {key!r}; {similar(key, _KEYS)}", key)
    if (schema := found["schema"]) != SCHEMA:
        message = f"found schema {schema!r}; this version reads {SCHEMA}, try a newer one"
        raise _Fault(message, "schema")
    alpha, spread = (_scale(found, key) for key in ("alpha", "mbr_spread"))
    dense = {
        name: (
            tuple(_finite(one, "weights", name, i) for i, one in enumerate(value))
            if isinstance(value, list)
            else (_finite(value, "weights", name),)
        )
        for name, value in _mapping(found, "weights").items()
    }
    sparse = {
        name: _finite(value, "sparse", name) for name, value in _mapping(found, "sparse").items()
    }
    empty = next((name for name, values in dense.items() if not values), None)
    if empty is not None:
        raise _Fault(f"found no number for {empty!r}", "weights", empty)
    if not dense and not sparse:
        raise _Fault("found none")
    names = _mapping(found, "decoder_names")
    for key, name in names.items():
        if not isinstance(name, str):
            message = f"found {key!r}: {_short(name)}; the name of a feature is text"
            raise _Fault(message, "decoder_names", key)
    return dense, sparse, alpha, _mapping(found, "provenance"), spread, names


def _scale(found: Mapping[str, Any], key: str) -> float | None:
    """The number above 0 at a key; None if the key is missing or null."""
    scale = None if found.get(key) is None else _finite(found[key], key)
    if scale is not None and scale <= 0:
        raise _Fault(f"found {key} {found[key]!r}; {key} must be positive, or null", key)
    return scale


def _mapping(found: Mapping[str, Any], key: str) -> dict[str, Any]:
    """JSON object at a key; empty if the key is missing."""
    value = found.get(key, {})
    if not isinstance(value, dict):
        raise _Fault(f"found no object at {key!r}", key)
    return value


def _finite(value: Any, *place: str | int) -> float:
    """The number at a place, at most `LARGEST` in size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        name = place[min(1, len(place) - 1)]
        message = f"found {name!r}: {_short(value)}; weights are finite numbers up to {LARGEST:g}"
        raise _Fault(message, *place)
    return float(value)


def _short(value: object) -> str:
    """A value for a message, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
