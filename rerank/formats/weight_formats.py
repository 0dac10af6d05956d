"""Formats that weights are written in, for rerank and for other tools.

A new format is a `WeightFormat` and a line in `rerank.registry.WEIGHT_FORMATS`; other packages add
theirs by entry points. All of them are read by `rerank.formats.weights`. Every format but JSON, ini
and dense keeps one number for each name: a feature of several values is written as Name_0, Name_1,
…, as Moses' mert calls them, or by the place of its values, as kbmira does. Those of cdec and
travatar have the names of the decoder, where they are known (`Weights.decoder_names`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rerank.errors import InputError, UsageError
from rerank.formats.tokens import written
from rerank.formats.weights import Weights, to_ini, to_json, weights_from_lines
from rerank.notices import Notices
from rerank.registry import WEIGHT_FORMATS


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
    try:
        read = weights_from_lines(content.split(b"\n"), Notices())
    except InputError:
        read = Weights({})
    found, expected = _all(read), known.expected(weights)
    if found != expected:
        differing = (name for name, value in expected.items() if found.get(name) != value)
        wrong = next(differing, next(iter(found), ""))
        raise UsageError(
            f"--to {name}: this format cannot hold the feature name {wrong!r}; choose json"
        )
    if not known.keeps_scales and (weights.alpha is not None or weights.mbr_spread is not None):
        notices.add(f"alpha, the scale of mbr and sampling, is not kept by the format {name}")
    return content


def _all(weights: Weights) -> dict[str, tuple[float, ...]]:
    """Dense and sparse weights."""
    return {**weights.dense, **{name: (value,) for name, value in weights.sparse.items()}}


def _by_number(weights: Weights) -> dict[str, tuple[float, ...]]:
    """One number for each name: Name_0, Name_1, … of a feature of several values.

    UsageError for two numbers of one name.
    """
    numbers: list[tuple[str, float]] = []
    for name, values in weights.dense.items():
        if len(values) == 1:
            numbers.append((weights.decoder_names.get(name, name), values[0]))
        else:
            numbers += ((f"{name}_{i}", value) for i, value in enumerate(values))
    numbers += weights.sparse.items()
    found: dict[str, tuple[float, ...]] = {}
    for name, value in numbers:
        if name in found:
            raise UsageError(
                f"expected one weight of {name!r}, found two features of that name; choose json"
            )
        found[name] = (value,)
    return found


def _by_place(weights: Weights) -> dict[str, tuple[float, ...]]:
    """F<i> for the i-th dense value, and the sparse ones by name."""
    values = [value for values in weights.dense.values() for value in values]
    found: dict[str, tuple[float, ...]] = {f"F{i}": (v,) for i, v in enumerate(values)}
    return found | {name: (value,) for name, value in weights.sparse.items()}


def _lines(numbers: Mapping[str, tuple[float, ...]], form: str, end: str = "\n") -> bytes:
    """The numbers in this form, with a name and a value."""
    parts = (
        form.format(name, written(value, name).decode())
        for name, values in numbers.items()
        for value in values
    )
    return end.join(parts).encode() + b"\n"


JSON = WeightFormat("JSON of rerank", to_json, _all, keeps_scales=True)
INI = WeightFormat(
    "rescore.ini; its [weight] section goes into a moses.ini", to_ini, _all, keeps_scales=True
)
DENSE = WeightFormat(
    "run*.dense of mert-moses.pl: a line 'Name= w' per value",
    lambda weights: _lines(_all(weights), "{}= {}"),
    _all,
)
KBMIRA = WeightFormat(
    "kbmira and PRO: F0, F1, … for the dense values, sparse ones by name",
    lambda weights: _lines(_by_place(weights), "{} {}"),
    _by_place,
)
CDEC = WeightFormat(
    "cdec and Joshua: a line 'Name value'",
    lambda weights: _lines(_by_number(weights), "{} {}"),
    _by_number,
)
TRAVATAR = WeightFormat(
    "travatar: name=value pairs on one line",
    lambda weights: _lines(_by_number(weights), "{}={}", " "),
    _by_number,
)
