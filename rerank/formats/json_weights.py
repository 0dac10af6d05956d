"""Weights files in JSON: their content checked, with the line of a fault.

    {"schema": 1, "weights": {"LM0": [0.5], "TM0": [0.2, 0.3]}, "sparse": {}, "alpha": null,
     "provenance": {}}

or the object at `weights` alone, where one number needs no list. `mbr_spread` and `decoder_names`
may be missing.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias

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
    """What was found; `here` says of a value's place and first token whether it is at fault."""

    def __init__(self, message: str, here: Callable[[Place, str], bool]) -> None:
        super().__init__(message)
        self.here = here


def read_json_weights(content: bytes, *, source: str = "") -> _Parts:
    """Dense and sparse weights, alpha, provenance, spread of mbr, and decoder names, of a file.

    InputError with the line of a fault.
    """
    text = content.decode()  # lines of a file are UTF-8
    try:
        found = read_json(content, _plain)
        return _checked(found) if "schema" in found else _without_schema(found)
    except json.JSONDecodeError as fault:
        raise InputError(f"expected JSON: {fault.msg}", source=source, line=fault.lineno) from None
    except RecursionError:
        found = _Fault("found too deep a nesting", lambda place, token: len(place) > _DEEP)
    except _Fault as fault:
        found = fault
    line = next((line for place, token, line in _values(text) if found.here(place, token)), 1)
    raise InputError(f"expected JSON weights, {found}", source=source, line=line)


def _plain(content: bytes) -> Any:
    """What the content has; a fault for what weights cannot be."""
    return json.loads(
        content.decode(), object_pairs_hook=_object, parse_constant=_constant, parse_int=_whole
    )


def _values(text: str) -> Iterator[tuple[Place, str, int]]:
    """Place, first token and line of every value of a JSON text, up to the first fault in it."""
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


def _at(*place: str | int) -> Callable[[Place, str], bool]:
    """Whether a value is at this place, which in a file of weights alone lacks its first key."""
    return lambda found, token: found == place or (len(place) > 1 and found == place[1:])


def _repeated() -> Callable[[Place, str], bool]:
    """Whether a value is at the place of an earlier one."""
    places = Counter[Place]()

    def again(place: Place, token: str) -> bool:
        places[place] += 1
        return places[place] > 1

    return again


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON object without repeated keys and lone surrogates."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise _Fault(f"found the key {twice!r} twice in one object", _repeated())
    half = next((name for name in found if re.search("[\ud800-\udfff]", name)), None)
    if half is not None:
        message = f"found half a surrogate pair in the key {half!r}"
        raise _Fault(message, lambda place, token: place[-1:] == (half,))
    return found


def _constant(constant: str) -> NoReturn:
    raise _Fault(f"found {constant}", lambda place, token: token == constant)


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise _Fault(
            f"found a number of {len(digits)} digits", lambda place, token: token == digits
        )
    return int(digits)


def _without_schema(found: Mapping[str, Any]) -> _Parts:
    """The parts of a file that has names and numbers alone."""
    key = next((key for key in _KEYS if isinstance(found.get(key), dict)), None)
    if key is not None:
        raise _Fault(f"found {key!r} without 'schema'; add \"schema\": {SCHEMA}", _at(key))
    try:
        return _checked({"schema": SCHEMA, "weights": found})
    except _Fault as fault:
        raise _Fault(f"{fault}; {_FORMS}", fault.here) from None


def _checked(found: Mapping[str, Any]) -> _Parts:
    """The parts of a file."""
    for key in found:
        if key not in _KEYS:
            raise _Fault(f"found the key {key!r}; {similar(key, _KEYS)}", _at(key))
    if (schema := found["schema"]) != SCHEMA:
        message = f"found schema {schema!r}; this version reads {SCHEMA}, try a newer one"
        raise _Fault(message, _at("schema"))
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
        raise _Fault(f"found no number for {empty!r}", _at("weights", empty))
    if not dense and not sparse:
        raise _Fault("found none", _at())
    names = _mapping(found, "decoder_names")
    for key, name in names.items():
        if not isinstance(name, str):
            message = f"found {key!r}: {_short(name)}; the name of a feature is text"
            raise _Fault(message, _at("decoder_names", key))
    return dense, sparse, alpha, _mapping(found, "provenance"), spread, names


def _scale(found: Mapping[str, Any], key: str) -> float | None:
    """The number above 0 at a key; None if the key is missing or null."""
    scale = None if found.get(key) is None else _finite(found[key], key)
    if scale is not None and scale <= 0:
        raise _Fault(f"found {key} {found[key]!r}; {key} must be positive, or null", _at(key))
    return scale


def _mapping(found: Mapping[str, Any], key: str) -> dict[str, Any]:
    """JSON object at a key; empty if the key is missing."""
    value = found.get(key, {})
    if not isinstance(value, dict):
        raise _Fault(f"found no object at {key!r}", _at(key))
    return value


def _finite(value: Any, *place: str | int) -> float:
    """The number at a place, at most `LARGEST` in size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        name = place[min(1, len(place) - 1)]
        message = f"found {name!r}: {_short(value)}; weights are finite numbers up to {LARGEST:g}"
        raise _Fault(message, _at(*place))
    return float(value)


def _short(value: object) -> str:
    """A value for a message, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
