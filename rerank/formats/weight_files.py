"""Weights files: those of several tuners are read, and written for rerank and for others.

Our own are JSON, of which strangers write only the names and numbers:

    {"schema": 1, "weights": {"LM0": [0.5], "TM0": [0.2, 0.3]}, "sparse": {}, "alpha": null,
     "provenance": {}}

or the object at `weights` alone, where one number needs no list. `mbr_spread` and `decoder_names`
may be missing.

Every format but JSON, ini and dense has a number a name: the values of a feature are Name_0,
Name_1, …, as Moses' mert calls them, or named by their places, as kbmira does. cdec and travatar
have the names of the decoder, where they are known (`Weights.decoder_names`). A new format is a
`WeightFormat` and a line in `rerank.registry.WEIGHT_FORMATS`, or an entry point.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rerank.errors import InputError, UsageError
from rerank.files.encoding import LARGEST
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.moses_ini import read_ini, read_scale, weight_file
from rerank.formats.tokens import DIGITS, Place, first_line, read_json, similar, written
from rerank.formats.weights import SCHEMA, Weights, to_ini, to_json
from rerank.notices import Notices
from rerank.registry import WEIGHT_FORMATS

MAX_BYTES = 16 << 20  # of a file, unpacked: some 400,000 sparse weights
_KEYS = ("schema", "weights", "sparse", "alpha", "mbr_spread", "decoder_names", "provenance")
_FORMS = (
    'write names and numbers, {"LM0": 0.5, "TM0": [0.2, 0.3]}, or '
    f'{{"schema": {SCHEMA}, "weights": {{"LM0": 0.5}}}}'
)
_DEEP = 100  # objects and lists in each other, of which Python reads several times as many

_TOKEN = re.compile(
    r'(?P<key>"(?:[^"\\]|\\.)*")(?=\s*:)|"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+'
)


def read_weights(path: FilePath, notices: Notices) -> Weights:
    """Weights of a file: our JSON, or lines `Name= w w` as in moses.ini, rescore.ini, run*.dense.

    Of a file with sections `[weight]` is read or, in old files, `[weight-l]` and the like, and the
    file of sparse weights that `[weight-file]` names, beside the file or in the current folder.
    Lines `Name w`, as of kbmira and cdec, `name=w name=w`, as of travatar, and numbers alone are
    read, too. `#` begins a comment, of which `# alpha: v` and `# mbr_spread: v` are read. Values of
    a repeated label are further ones. A name with `_` is a sparse feature. InputError for a file
    without weights, and for values that are not finite numbers.
    """
    lines = list(read_lines(path, notices, max_bytes=MAX_BYTES))
    source = display(path)
    named = None if first_line(lines).startswith(b"{") else weight_file(lines)
    if named is None:
        return weights_from_lines(lines, notices, source=source)
    name, line = named
    places = [Path(name), Path(path).parent / name]
    sparse_path = next((place for place in places if os.path.isfile(place)), None)
    if sparse_path is None:
        raise InputError(
            f"expected the file of [weight-file], found none at {display(name)}; write where it "
            "is, or remove the section",
            source=source,
            line=line,
        )
    more = weights_from_lines(
        read_lines(sparse_path, notices, max_bytes=MAX_BYTES), notices, source=display(sparse_path)
    )
    weights = weights_from_lines(lines, notices, source=source, sparse_file=True)
    both = more.dense.keys() & weights.dense.keys() | more.sparse.keys() & weights.sparse.keys()
    if both:
        notices.add("weight-in-two-places", source=source, names=sorted(both))
    dense, sparse = {**more.dense, **weights.dense}, {**more.sparse, **weights.sparse}
    return replace(weights, dense=dense, sparse=sparse)


def read_base(path: FilePath, notices: Notices) -> list[bytes]:
    """Lines of a moses.ini that is written again with other weights."""
    return list(read_lines(path, notices, max_bytes=MAX_BYTES))


def read_start_weights(path: str | Path, notices: Notices) -> Weights:
    """Weights of a file that a tuning starts from; InputError if they are all zero."""
    weights = read_weights(path, notices)
    weights.refuse_all_zero("leave out --start to start from 0", source=display(path))
    return weights


def weights_from_lines(
    lines: Iterable[bytes], notices: Notices, *, source: str = "", sparse_file: bool = False
) -> Weights:
    """Weights from the lines of a file; see `read_weights`, and `read_ini` for `sparse_file`."""
    content, place = list(lines), Place(source, notices, 0)
    first = first_line(content)
    if first == b"not used":
        raise place.fault(
            "expected weights, found 'not used', which mert-moses.pl writes after MIRA and PRO; "
            "give run*.dense"
        )
    if first.startswith(b"{"):
        whole = io.BytesIO()  # `join` takes 80 bytes a line
        whole.writelines(line + b"\n" for line in content)
        return _of_json(whole.getvalue(), source)
    spread = read_scale(content, place, "mbr_spread")
    parts = read_ini(content, notices, source=source, sparse_file=sparse_file)
    return Weights(*parts, mbr_spread=spread)


# JSON


class _Fault(ValueError):
    """What was found: at a place, which in a file of weights alone lacks its first key; or a line.

    The place of none, which is that of the file, is ().
    """

    def __init__(self, message: str, *place: str | int, line: int = 0) -> None:
        super().__init__(message)
        self.place, self.line = place, line


def _of_json(content: bytes, source: str) -> Weights:
    """Weights of a file in JSON; InputError with the line of a fault."""
    values = _values(content.decode())  # lines of a file are UTF-8
    try:
        value = read_json(content, _strict)
        return _checked(value) if "schema" in value else _without_schema(value)
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
    seen = set[tuple[str | int, ...]]()
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


def _values(text: str) -> Iterator[tuple[tuple[str | int, ...], str, int]]:
    """Keys and indices that lead to every value of a JSON text, its first token, and its line."""
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


def _without_schema(values: Mapping[str, Any]) -> Weights:
    """The weights of a file that has names and numbers alone."""
    key = next((key for key in _KEYS if isinstance(values.get(key), dict)), None)
    if key is not None:
        raise _Fault(f"found {key!r} without 'schema'; add \"schema\": {SCHEMA}", key)
    try:
        return _checked({"schema": SCHEMA, "weights": values})
    except _Fault as fault:
        raise _Fault(f"{fault}; {_FORMS}", *fault.place) from None


def _checked(values: Mapping[str, Any]) -> Weights:
    """The weights of a file."""
    for key in values:
        if key not in _KEYS:
            raise _Fault(f"found the key {key!r}; {similar(key, _KEYS)}", key)
    if (schema := values["schema"]) != SCHEMA:
        message = f"found schema {schema!r}; this version reads {SCHEMA}, try a newer one"
        raise _Fault(message, "schema")
    alpha, spread = (_scale(values, key) for key in ("alpha", "mbr_spread"))
    dense = {
        name: (
            tuple(_finite(number, "weights", name, i) for i, number in enumerate(value))
            if isinstance(value, list)
            else (_finite(value, "weights", name),)
        )
        for name, value in _mapping(values, "weights").items()
    }
    sparse = {
        name: _finite(value, "sparse", name) for name, value in _mapping(values, "sparse").items()
    }
    empty = next((name for name, numbers in dense.items() if not numbers), None)
    if empty is not None:
        raise _Fault(f"found no number for {empty!r}", "weights", empty)
    if not dense and not sparse:
        raise _Fault("found none")
    names = _mapping(values, "decoder_names")
    for key, name in names.items():
        if not isinstance(name, str):
            message = f"found {key!r}: {name!r:.60}; the name of a feature is text"
            raise _Fault(message, "decoder_names", key)
    return Weights(dense, sparse, alpha, _mapping(values, "provenance"), spread, names)


def _scale(values: Mapping[str, Any], key: str) -> float | None:
    """The number above 0 at a key; None if the key is missing or null."""
    scale = None if values.get(key) is None else _finite(values[key], key)
    if scale is not None and scale <= 0:
        raise _Fault(f"found {key} {values[key]!r}; {key} must be positive, or null", key)
    return scale


def _mapping(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    """JSON object at a key; empty if the key is missing."""
    value = values.get(key, {})
    if not isinstance(value, dict):
        raise _Fault(f"found no object at {key!r}", key)
    return value


def _finite(value: Any, *place: str | int) -> float:
    """The number at a place, at most `LARGEST` in size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        name = place[min(1, len(place) - 1)]
        message = f"found {name!r}: {value!r:.60}; weights are finite numbers up to {LARGEST:g}"
        raise _Fault(message, *place)
    return float(value)


# Writing


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """A format of weight files: what it is for, its writer, and what is read back of the weights.

    keeps_scales: whether alpha and the spread of mbr are kept, too.
    """

    description: str
    write: Callable[[Weights], bytes]
    expected: Callable[[Weights], dict[str, tuple[float, ...]]]
    keeps_scales: bool = False


def to_bytes(weights: Weights, name: str, notices: Notices) -> bytes:
    """Content of a file of weights in a format of the registry; O(number of weights).

    UsageError for names that the format cannot hold: what is written is read back and compared.
    """
    known: WeightFormat = WEIGHT_FORMATS.named(name)
    content = known.write(weights)
    again, expected = dict[str, tuple[float, ...]](), known.expected(weights)
    with suppress(InputError):
        again = _all(weights_from_lines(content.split(b"\n"), Notices()))
    if again != expected:
        differing = (name for name, value in expected.items() if again.get(name) != value)
        wrong = next(differing, next(iter(again), ""))
        raise UsageError(
            f"--to {name}: this format cannot hold the feature name {wrong!r}; choose json"
        )
    if not known.keeps_scales and (weights.alpha is not None or weights.mbr_spread is not None):
        notices.add("alpha-not-kept", name=name)
    return content


def _all(weights: Weights) -> dict[str, tuple[float, ...]]:
    """Dense and sparse weights."""
    return {**weights.dense, **{name: (value,) for name, value in weights.sparse.items()}}


def _by_number(weights: Weights) -> dict[str, tuple[float, ...]]:
    """One number for each name: Name_0, Name_1, … of a feature of several values.

    A sparse feature whose only `_` is at its end has it from the reader of the list.
    UsageError for two numbers of one name.
    """
    numbers: list[tuple[str, float]] = []
    for name, values in weights.dense.items():
        if len(values) == 1:
            numbers.append((weights.decoder_names.get(name, name), values[0]))
        else:
            numbers += ((f"{name}_{i}", value) for i, value in enumerate(values))
    for name, value in weights.sparse.items():
        numbers.append((name[:-1] if name.find("_") == len(name) - 1 else name, value))
    by_name: dict[str, tuple[float, ...]] = {}
    for name, value in numbers:
        if name in by_name:
            raise UsageError(
                f"expected one weight of {name!r}, found two features of that name; choose json"
            )
        by_name[name] = (value,)
    return by_name


def _by_place(weights: Weights) -> dict[str, tuple[float, ...]]:
    """F<i> for the i-th dense value, and the sparse ones by name."""
    values = [value for values in weights.dense.values() for value in values]
    by_place: dict[str, tuple[float, ...]] = {f"F{i}": (v,) for i, v in enumerate(values)}
    return by_place | {name: (value,) for name, value in weights.sparse.items()}


def _line_format(
    description: str,
    numbers: Callable[[Weights], dict[str, tuple[float, ...]]],
    form: str,
    end: str = "\n",
) -> WeightFormat:
    """A format that has each number in this form, with its name and value."""

    def write(weights: Weights) -> bytes:
        parts = (
            form.format(name, written(value, name).decode())
            for name, values in numbers(weights).items()
            for value in values
        )
        return end.join(parts).encode() + b"\n"

    return WeightFormat(description, write, numbers)


JSON = WeightFormat("JSON of rerank", to_json, _all, keeps_scales=True)
INI = WeightFormat(
    "rescore.ini; its [weight] section goes into a moses.ini", to_ini, _all, keeps_scales=True
)
DENSE = _line_format("run*.dense of mert-moses.pl: a line 'Name= w' per value", _all, "{}= {}")
KBMIRA = _line_format(
    "kbmira and PRO: F0, F1, … for the dense values, sparse ones by name", _by_place, "{} {}"
)
CDEC = _line_format("cdec and Joshua: a line 'Name value'", _by_number, "{} {}")
TRAVATAR = _line_format("travatar: name=value pairs on one line", _by_number, "{}={}", " ")
