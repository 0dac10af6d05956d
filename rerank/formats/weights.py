"""Feature weights: read from what tuners write, written for rerank and for Moses."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.labels import Label
from rerank.errors import InputError, UsageError
from rerank.files.lines import display, read_lines
from rerank.formats.moses_grammar import features
from rerank.formats.moses_ini import (
    COMMENT,
    SECTION,
    alpha_line,
    merged,
    read_alpha,
    weight_line,
)
from rerank.formats.tokens import NUMBER, number
from rerank.formats.unnamed import by_place
from rerank.notices import Notices

SCHEMA = 1
_KEYS = ("schema", "weights", "sparse", "alpha", "provenance")
_UNTUNED = re.compile(r"UnknownWordPenalty[0-9]*")  # in every moses.ini, in no k-best list


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of dense features, one per value, and of sparse ones; at least one is not 0."""

    dense: Mapping[str, tuple[float, ...]]
    sparse: Mapping[str, float] = field(default_factory=dict)
    alpha: float | None = None  # scale of p(path) ∝ exp(alpha · score), natural log
    provenance: Mapping[str, object] = field(default_factory=dict)  # what made them, JSON values


def read_weights(path: str | Path, notices: Notices) -> Weights:
    """Weights of a file: our JSON, or lines `Name= w w` as in moses.ini, rescore.ini, run*.dense.

    The content decides. Of a file with sections only `[weight]` counts; `#` begins a comment, of
    which `# alpha: v` is read; a label that comes again has further values; a name with `_` is a
    sparse feature. `InputError` for what cannot be read, and for weights that are not finite or
    all zero.
    """
    return weights_from_lines(read_lines(path, notices), notices, source=display(path))


def weights_from_lines(lines: Iterable[bytes], notices: Notices, *, source: str = "") -> Weights:
    """The same from the lines of such a file."""
    content = list(lines)
    first = next((line.strip() for line in content if line.strip()), b"")
    if first == b"not used":
        raise InputError(
            "expected weights, found 'not used', which mert-moses.pl writes after MIRA and PRO; "
            "give run*.dense",
            source=source,
        )
    if first.startswith(b"{"):
        weights = _from_json(b"\n".join(content), source)
    else:
        weights = _from_ini(content, notices, source)
    if not any(any(values) for values in [*weights.dense.values(), weights.sparse.values()]):
        raise InputError("expected a weight other than 0, found none", source=source)
    return weights


def write_weights(
    path: str | Path,
    weights: Weights,
    *,
    base: Sequence[bytes] | None = None,
    notices: Notices | None = None,
) -> None:
    """Write a weights file: JSON, to standard output too, or by the suffix `.ini` a rescore.ini.

    `base` are the lines of a moses.ini, which is then written with these weights in it: see
    `rerank.formats.moses_ini.merged`, whose notices go to `notices`. Provenance is left out of it.
    """
    from rerank.files.outputs import atomic

    kind = kind_of(path, merged=base is not None)
    if base is not None:
        dense, sparse = weights.dense, weights.sparse
        lines = merged(base, dense, sparse, weights.alpha, notices or Notices())
        content = b"".join(line + b"\n" for line in lines)
    else:
        content = to_json(weights) if kind == ".json" else to_ini(weights)
    with atomic(path) as file:
        file.write(content)


def kind_of(path: str | Path, *, merged: bool) -> str:
    """What is written to a path, `.json` or `.ini`; UsageError for another suffix.

    merged: whether it is a moses.ini with the weights in it. `-`, standard output, has no suffix.
    """
    kinds = [".ini"] if merged else [".json", ".ini"]
    suffix = kinds[0] if str(path) == "-" else Path(path).suffix
    if suffix not in kinds:
        expected = ".ini, as --base is one" if merged else ".json or .ini"
        raise UsageError(f"--out {path}: expected a weights file {expected}")
    return suffix


def to_json(weights: Weights) -> bytes:
    """Content of a JSON weights file; it reads back equal."""
    values = {
        "schema": SCHEMA,
        "weights": {name: list(values) for name, values in weights.dense.items()},
        "sparse": dict(weights.sparse),
        "alpha": weights.alpha,
        "provenance": dict(weights.provenance),
    }
    return json.dumps(values, indent=1, allow_nan=False).encode() + b"\n"


def to_ini(weights: Weights) -> bytes:
    """Content of a rescore.ini; its weights and alpha read back equal, the rest are comments."""
    lines = [
        f"# {json.dumps(name)[1:-1]}: {json.dumps(value)}"
        for name, value in weights.provenance.items()
        if name != "alpha"
    ]
    lines += [alpha_line(weights.alpha), "", "[weight]"]
    lines += [weight_line(name, values, sparse=False) for name, values in weights.dense.items()]
    lines += [weight_line(name, (value,), sparse=True) for name, value in weights.sparse.items()]
    return "\n".join([*lines, ""]).encode()


def vector(
    weights: Weights,
    labels: Sequence[Label],
    *,
    default: float | None = None,
    notices: Notices | None = None,
    source: str = "",
) -> NDArray[np.float64]:
    """Weights (F,) in the order of the labels of a list; `source` names their file in errors.

    Weights without names are those of the values of the list one by one: see `by_place`.
    `InputError` for a weight of a feature that the list has not, for another number of values, and
    for a feature without weight, unless `default` is given: then it is counted in `notices`.
    """
    notices = notices or Notices()
    dense = by_place(weights.dense, labels, source=source)
    known = [label.name for label in labels]
    for name in dense:
        if name in known:
            continue
        if _UNTUNED.fullmatch(name) is None:
            raise InputError(
                f"expected weights of features of the list, found one of {name!r}; "
                + _near(name, known),
                source=source,
            )
        notices.add("weight that Moses does not tune and lists do not hold", source=source)
    values: list[float] = []
    for label in labels:
        found = dense.get(label.name)
        if found is None:
            if default is None:
                raise InputError(
                    f"expected a weight for every feature of the list, found none for "
                    f"{label.name!r}; {_near(label.name, dense)}, or --default-weight 0",
                    source=source,
                )
            notices.add(
                f"feature {label.name!r} without weight, taken as {default:g}", source=source
            )
            found = (default,) * label.width
        if len(found) != label.width:
            raise InputError(
                f"expected {label.width} weights for {label.name!r} as the list has values, "
                f"found {len(found)}",
                source=source,
            )
        values += found
    return np.array(values, dtype=np.float64)


def _from_ini(lines: Sequence[bytes], notices: Notices, source: str) -> Weights:
    """Weights of lines `Name= w w` or `Name w w`, in a section [weight] if there are sections."""
    dense: dict[str, list[float]] = {}
    sparse: dict[str, float] = {}
    texts = [COMMENT.sub(b"", line).strip() for line in lines]
    inside = not any(map(SECTION.fullmatch, texts))
    for n, text in enumerate(texts, 1):
        section = SECTION.fullmatch(text)
        if section:
            inside = section[1] == b"weight"
            if section[1] == b"weight-file":
                notices.add("[weight-file], whose weights are not read", source=source, line=n)
        elif inside and text:
            try:
                found, more = features(_labelled(text), number)
                for name in sparse.keys() & more:
                    raise InputError(f"expected one weight of {name!r}, found two")
            except InputError as fault:
                raise InputError(str(fault), source=source, line=n) from None
            sparse |= more
            for name, values in found.items():
                dense.setdefault(name, []).extend(values)
    if not dense and not sparse:
        raise InputError(
            "expected weights, as JSON or as lines 'Name= w w' of a section [weight], found none",
            source=source,
        )
    alpha = read_alpha(lines, source=source)
    return Weights({name: tuple(values) for name, values in dense.items()}, sparse, alpha)


def _labelled(text: bytes) -> bytes:
    """The line as a feature column: `Name w` and `Name = w` made `Name= w`."""
    text = re.sub(rb"\s+=", b"=", text)
    name = text.split()[0]
    if b"=" in name or name.endswith(b":") or NUMBER.fullmatch(name):
        return text
    return name + b"=" + text[len(name) :]


def _from_json(content: bytes, source: str) -> Weights:
    """Weights of a JSON object: ours, or plainly names with a number or numbers each."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"found {constant}")

    try:
        found = json.loads(content, object_pairs_hook=_object, parse_constant=refuse)
        if "schema" not in found:
            found = {"schema": SCHEMA, "weights": found}
        return _checked(found)
    except json.JSONDecodeError as fault:
        message, line = f"expected JSON: {fault.msg}", fault.lineno
        raise InputError(message, source=source, line=line) from None
    except RecursionError:
        raise InputError("expected JSON weights, found too deep a nesting", source=source) from None
    except (ValueError, OverflowError) as fault:
        raise InputError(f"expected JSON weights, {fault}", source=source) from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object whose keys are all different, and can be written."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("found a key twice in one object")
    for name in found:
        name.encode()
    return found


def _checked(found: Mapping[str, object]) -> Weights:
    """`Weights` from the values of a JSON file; `ValueError` for what they should not be."""
    for key in found:
        if key not in _KEYS:
            raise ValueError(f"found the key {key!r}; {_near(key, _KEYS)}")
    schema = found["schema"]
    if schema != SCHEMA:
        raise ValueError(f"found schema {schema!r}; this version reads {SCHEMA}, try a newer one")
    alpha = found.get("alpha")
    if alpha is not None and _finite("alpha", alpha) <= 0:
        raise ValueError(f"found alpha {alpha!r}; it is larger than 0, or null")
    dense = _mapping(found, "weights")
    return Weights(
        dense={
            name: tuple(_finite(name, value) for value in (v if isinstance(v, list) else [v]))
            for name, v in dense.items()
        },
        sparse={name: _finite(name, value) for name, value in _mapping(found, "sparse").items()},
        alpha=None if alpha is None else _finite("alpha", alpha),
        provenance=_mapping(found, "provenance"),
    )


def _mapping(found: Mapping[str, object], key: str) -> dict[str, object]:
    """The JSON object at a key, empty if there is none."""
    value = found.get(key, {})
    if not isinstance(value, dict):
        raise ValueError(f"found no object at {key!r}")
    return value


def _finite(name: str, value: object) -> float:
    """A finite number of a JSON file."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"found {name!r}: {value!r}; weights are finite numbers")
    return float(value)


def _near(name: str, names: Iterable[str]) -> str:
    """The question whether another name was meant, or else which there are."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names[:20])}"
