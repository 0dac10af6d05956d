"""Feature weights: read from the files of several tuners, written for rerank and for others.

Every format but JSON, ini and dense keeps one number for each name: a feature of several values is
written as Name_0, Name_1, …, as Moses' mert calls them, or by the place of its values, as kbmira
does. Those of cdec and travatar have the names of the decoder, where they are known
(`Weights.decoder_names`). A new format is a `WeightFormat` and a line in
`rerank.registry.WEIGHT_FORMATS`; other packages add theirs by entry points. `read_weights` reads
all of them.

A weights file may name a list's features otherwise. A file with one number a name has `TM0_0`,
`TM0_1` for the values of `TM0`; lists of cdec, Joshua and Travatar are read with names of letters
and digits, so that the weight of `tm_pt_0` belongs to the feature `tmpt0`. In weights files a name
with `_` is a sparse feature, until a list is known that has the dense one.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import Label, column_names, decoder_names
from rerank.errors import InputError, UsageError
from rerank.files.lines import read_lines
from rerank.files.paths import FilePath, display
from rerank.formats.json_weights import SCHEMA, read_json_weights
from rerank.formats.moses_ini import (
    merged,
    read_ini,
    read_scale,
    scale_line,
    weight_file,
    weight_line,
)
from rerank.formats.tokens import plain_name, similar, written
from rerank.notices import Notices
from rerank.registry import WEIGHT_FORMATS

MAX_BYTES = 16 << 20  # of a file, unpacked: some 400,000 sparse weights
_PLACE = re.compile(r"F(?:0|[1-9][0-9]{0,8})")  # i-th dense value, as in kbmira.cpp of Moses
ABSENT = "weight of a feature that no line of the list has, ignored"  # cdec leaves out zeros
RENAMED = "weight of a feature that the list has in letters and digits"
_UNTUNED = re.compile(r"UnknownWordPenalty[0-9]*")  # in every moses.ini, in no k-best list


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of dense features, one per value, and of sparse features.

    decoder_names: `tmpt0` → `tm_pt_0` of features that their decoder calls otherwise
    (`rerank.corpus.columns.Label`).
    """

    dense: Mapping[str, tuple[float, ...]]
    sparse: Mapping[str, float] = field(default_factory=dict)
    alpha: float | None = None  # scale of p(path) ∝ exp(alpha · score), natural log
    provenance: Mapping[str, object] = field(default_factory=dict)  # of a tuning, as JSON values
    mbr_spread: float | None = None  # `spread` of `decoders.mbr.mbr`; None: its default
    decoder_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def all_zero(self) -> bool:
        """Whether every weight is 0, so that all candidates score the same."""
        return not any(any(values) for values in [*self.dense.values(), self.sparse.values()])


def read_weights(path: FilePath, notices: Notices) -> Weights:
    """Weights of a file: our JSON, or lines `Name= w w` as in moses.ini, rescore.ini, run*.dense.

    Of a file with sections `[weight]` is read or, in old files, `[weight-l]` and the like, and the
    file of sparse weights that `[weight-file]` names, beside the file or in the current folder.
    Lines `Name w`, as of kbmira and cdec, `name=w name=w`, as of travatar, and numbers alone are
    read, too. `#` begins a comment, of which `# alpha: v` and
    `# mbr_spread: v` are read. A repeated label adds further values. A name with `_` is a sparse
    feature. InputError for a file without weights, and for values that are not finite numbers.
    """
    lines = list(read_lines(path, notices, max_bytes=MAX_BYTES))
    source = display(path)
    named = None if _first_of(lines).startswith(b"{") else weight_file(lines)
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
    own = weights_from_lines(lines, notices, source=source, sparse_file=True)
    twice = [*(more.dense.keys() & own.dense.keys()), *(more.sparse.keys() & own.sparse.keys())]
    if twice:
        kind = "weight in [weight] and in the file of [weight-file]; that of [weight] is used"
        notices.add(kind, source=source, names=sorted(twice))
    return replace(own, dense={**more.dense, **own.dense}, sparse={**more.sparse, **own.sparse})


def read_base(path: FilePath, notices: Notices) -> list[bytes]:
    """Lines of a moses.ini that is written again with other weights."""
    return list(read_lines(path, notices, max_bytes=MAX_BYTES))


def read_start_weights(path: str | Path, notices: Notices) -> Weights:
    """Weights of a file that a tuning starts from; InputError if they are all zero."""
    weights = read_weights(path, notices)
    refuse_all_zero(weights, "leave out --start to start from 0", source=display(path))
    return weights


def refuse_all_zero(weights: Weights, cure: str, *, source: str) -> None:
    """InputError for all-zero weights."""
    if weights.all_zero:
        raise InputError(
            f"expected a weight that is not 0, found all-zero weights; {cure}", source=source
        )


def weights_from_lines(
    lines: Iterable[bytes], notices: Notices, *, source: str = "", sparse_file: bool = False
) -> Weights:
    """Weights from the lines of a file; see `read_weights`, and `read_ini` for `sparse_file`."""
    content = list(lines)
    first = _first_of(content)
    if first == b"not used":
        raise InputError(
            "expected weights, found 'not used', which mert-moses.pl writes after MIRA and PRO; "
            "give run*.dense",
            source=source,
        )
    if first.startswith(b"{"):
        whole = io.BytesIO()  # `join` takes 80 bytes a line
        whole.writelines(line + b"\n" for line in content)
        return Weights(*read_json_weights(whole.getvalue(), source=source))
    spread = read_scale(content, "mbr_spread", source=source)
    found = read_ini(content, notices, source=source, sparse_file=sparse_file)
    return Weights(*found, mbr_spread=spread)


def _first_of(lines: Sequence[bytes]) -> bytes:
    """The first line that is not blank, as it begins."""
    return next((line.strip() for line in lines if line.strip()), b"")


# For the features of a list


def vector(
    weights: Weights,
    labels: Sequence[Label],
    *,
    default: float | None = None,
    notices: Notices | None = None,
    source: str = "",
) -> NDArray[np.float64]:
    """Weights (F,) in the order of a list's labels; `source` names their file in errors.

    Weights without names are applied in the order of the list's values, with a notice; those of
    other names as `fitted_to` says. A feature without weight gets `default`, with a notice.
    InputError for such a feature if there is no default, for a weight of an unknown feature, and
    for a wrong number of weights.
    """
    notices = notices or Notices()
    known = [label.name for label in labels]
    fitted, renamed = _fitted(weights, labels, source)
    dense = fitted.dense
    if _without_names(weights.dense, labels):
        pairs = [f"F{i} → {name}" for i, name in enumerate(column_names(labels))]
        shown = ", ".join(pairs[:5] + ["…"] * (len(pairs) > 5))
        notices.add(f"weights without names, applied by place: {shown}", source=source)
    if renamed:
        notices.add(RENAMED, source=source, names=renamed)
    unknown = [name for name in dense if name not in known]
    absent = [name for name in unknown if _UNTUNED.fullmatch(name) is None]
    if absent and not renamed:
        raise InputError(
            f"expected weights of the list's features, found one of {absent[0]!r}; "
            + similar(absent[0], known),
            source=source,
        )
    if absent:
        notices.add(ABSENT, source=source, names=absent)
    if untuned := [name for name in unknown if name not in absent]:
        notices.add("weight that Moses never tunes, ignored", source=source, names=untuned)
    if default is not None:
        if lacking := [name for name in known if name not in dense]:
            kind = f"feature without weight; {default:g} is used"
            notices.add(kind, source=source, names=lacking)
        dense = {**{label.name: (default,) * label.width for label in labels}, **dense}
    for label in labels:
        if label.name not in dense:
            raise InputError(
                f"expected a weight for every feature of the list, found none for "
                f"{label.name!r}; {similar(label.name, dense)}, or --default-weight 0",
                source=source,
            )
        if len(dense[label.name]) != label.width:
            raise InputError(
                f"expected {label.width} weights for {label.name!r}, one per value of the "
                f"list, found {len(dense[label.name])}",
                source=source,
            )
    return np.array([value for name in known for value in dense[name]], np.float64)


def by_name(values: NDArray[np.float64], labels: Sequence[Label]) -> dict[str, tuple[float, ...]]:
    """Weights (F,) by feature, as in a file."""
    parts = np.split(values, np.cumsum([label.width for label in labels])[:-1])
    return {label.name: tuple(part.tolist()) for label, part in zip(labels, parts, strict=True)}


def fitted_to(weights: Weights, labels: Sequence[Label], *, source: str = "") -> Weights:
    """The weights under the names of a list's features.

    F<i> is the weight of the i-th value if no weight and no label has another name. Otherwise a
    label without a weight of its name gets those of its single values, `TM0_0`, `TM0_1`, …, that
    of its name in the decoder, or that of the one name that is the same in letters and digits.
    All other weights stay as they are. InputError unless every value has one of the weights
    without names, and where only some of a label's values have a weight.
    """
    weights = replace(weights, decoder_names={**weights.decoder_names, **decoder_names(labels)})
    return _fitted(weights, labels, source)[0]


def _fitted(
    weights: Weights, labels: Sequence[Label], source: str
) -> tuple[Weights, tuple[str, ...]]:
    """The weights under the names of the labels, and `tm_pt_0 → tmpt0` of each renamed weight.

    See `fitted_to`. O(number of weights).
    """
    if _without_names(weights.dense, labels):
        return replace(weights, dense=_at_places(weights.dense, labels, source)), ()
    known = {label.name for label in labels}
    lacking = [label for label in labels if label.name not in weights.dense]
    if not lacking:
        return weights, ()
    numbers = dict(weights.sparse)
    owners: dict[str, str] = {}  # dense features whose values have these names
    for name, values in weights.dense.items():
        if name not in known:
            for i, value in enumerate(values):
                one = name if len(values) == 1 else f"{name}_{i}"
                numbers[one], owners[one] = value, name
    by_plain: dict[str, list[str]] = defaultdict(list)
    for name in numbers:
        by_plain[plain_name(name)].append(name)
    found: dict[str, tuple[float, ...]] = {}
    used: set[str] = set()
    renamed: list[str] = []
    for label in lacking:
        columns = [f"{label.name}_{i}" for i in range(label.width)]
        given = [name for name in columns if name in numbers]
        if given and len(given) < label.width:
            missing = next(name for name in columns if name not in numbers)
            raise InputError(
                f"expected weights of all {label.width} values of {label.name!r}, found "
                f"{', '.join(given[:5])} and no {missing}",
                source=source,
            )
        if not given and label.width == 1:
            own = [label.decoder_name] if label.decoder_name in numbers else by_plain[label.name]
            if len(own) == 1:
                given = own
                renamed.append(f"{own[0]} → {label.name}")
        if given:
            found[label.name] = tuple(numbers[name] for name in given)
            used.update(given)
    gone = {owners[name] for name in used if name in owners}
    dense = {name: values for name, values in weights.dense.items() if name not in gone}
    sparse = {name: value for name, value in weights.sparse.items() if name not in used}
    return replace(weights, dense=dense | found, sparse=sparse), tuple(renamed)


def _without_names(dense: Mapping[str, object], labels: Sequence[Label]) -> bool:
    """Whether weights are called F<i>, by the place of their values, and no label is."""
    places = bool(dense) and bool(labels) and all(map(_PLACE.fullmatch, dense))
    return places and not any(_PLACE.fullmatch(label.name) for label in labels)


def _at_places(
    dense: Mapping[str, tuple[float, ...]], labels: Sequence[Label], source: str
) -> Mapping[str, tuple[float, ...]]:
    """Weights F<i> under the names of the labels; InputError unless every value has one."""
    places = [f"F{i}" for i in range(sum(label.width for label in labels))]
    found = sum(map(len, dense.values()))
    if dense.keys() != set(places) or found != len(places):
        known = " ".join(label.name for label in labels[:20])
        raise InputError(
            f"expected {len(places)} weights without names, F0 to {places[-1]}, one for each "
            f"value of {known}, found {found}",
            source=source,
        )
    values = (dense[place][0] for place in places)
    return {label.name: tuple(islice(values, label.width)) for label in labels}


# Writing


def write_weights(
    path: str | Path,
    weights: Weights,
    *,
    base: Sequence[bytes] | None = None,
    notices: Notices | None = None,
) -> None:
    """Write a weights file: JSON or, if the path ends with `.ini`, a rescore.ini.

    base: lines of a moses.ini; if given, the file is this moses.ini with the new weights, without
    provenance (`rerank.formats.moses_ini.merged`).
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
    """Suffix of the weights file for a path, `.json` or `.ini`; UsageError for another one.

    merged: whether the file is a moses.ini with new weights. The path `-` is standard output.
    """
    kinds = [".ini"] if merged else [".json", ".ini"]
    suffix = kinds[0] if str(path) == "-" else Path(path).suffix
    if suffix not in kinds:
        expected = ".ini, like --base" if merged else ".json or .ini"
        raise UsageError(f"--out {path}: expected a weights file {expected}")
    return suffix


def to_json(weights: Weights) -> bytes:
    """Content of a JSON weights file, from which equal weights are read."""
    values = {
        "schema": SCHEMA,
        "weights": {name: list(values) for name, values in weights.dense.items()},
        "sparse": dict(weights.sparse),
        "alpha": weights.alpha,
        **({} if weights.mbr_spread is None else {"mbr_spread": weights.mbr_spread}),
        **({"decoder_names": dict(weights.decoder_names)} if weights.decoder_names else {}),
        "provenance": dict(weights.provenance),
    }
    return json.dumps(values, indent=1, allow_nan=False).encode() + b"\n"


def to_ini(weights: Weights) -> bytes:
    """Content of a rescore.ini: weights and alpha, and the provenance as comments."""
    lines = [
        f"# {json.dumps(name)[1:-1]}: {json.dumps(value)}"
        for name, value in weights.provenance.items()
        if name not in ("alpha", "mbr_spread")
    ]
    lines.append(scale_line("alpha", weights.alpha))
    if weights.mbr_spread is not None:
        lines.append(scale_line("mbr_spread", weights.mbr_spread))
    lines += ["", "[weight]"]
    lines += [weight_line(name, values, sparse=False) for name, values in weights.dense.items()]
    lines += [weight_line(name, (value,), sparse=True) for name, value in weights.sparse.items()]
    return "\n".join([*lines, ""]).encode()


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
