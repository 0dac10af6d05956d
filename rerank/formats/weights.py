"""Feature weights, how they are written, and their places among the features of a list.

A weights file may name a list's features otherwise. A file with one number a name has `TM0_0`,
`TM0_1` for the values of `TM0`; lists of cdec, Joshua and Travatar are read with names of letters
and digits, so that the weight of `tm_pt_0` belongs to the feature `tmpt0`. In weights files a name
with `_` is a sparse feature, until a list is known that has the dense one.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import Label, column_names, decoder_names
from rerank.errors import InputError, RerankError, UsageError
from rerank.files.outputs import atomic
from rerank.files.paths import display
from rerank.formats.moses_ini import merged, scale_line, weight_line
from rerank.formats.run_records import FIRST
from rerank.formats.tokens import Place, plain_name, similar
from rerank.notices import Notices, listed

SCHEMA = 1  # of the JSON file
OF_AGREEMENT = ("agreement", "votes", "consensusbleu", "consensuschrf", "consensusdocbleu")
_ADDED = (  # provenance of features that options add: its key, the option, the key of its value
    ("models", "--lm", "folder"),
    ("scores", "--scores", "file"),
    ("scorers", "--scorer", "entry"),
)
_PLACE = re.compile(r"F(?:0|[1-9][0-9]{0,8})")  # i-th dense value, as in kbmira.cpp of Moses
BY_PRESET = "presets"  # key of the provenance: features whose weights no tuning has found
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
    def keep_first(self) -> bool:
        """Whether a tuning has kept the first candidates, which all-zero weights choose."""
        return self.provenance.get("kept") == FIRST

    @property
    def by_value(self) -> dict[str, float]:
        """Dense weights by value: `Name_0`, `Name_1`, … of a feature of several values."""
        labels = [Label(name, len(values)) for name, values in self.dense.items()]
        return dict(zip(column_names(labels), chain(*self.dense.values()), strict=True))

    def remarks(self) -> list[str]:
        """Lines that name the features of weight 0, and say why; and weights that were not tuned.

        Cross-validation has judged the tuned features that tell candidates apart: `judged` or, in
        files of older versions, the keys of `flat`.
        """
        made, lines = self.provenance, list[str]()
        named = (made.get(key) for key in ("judged", "flat", "tuned") if key in made)
        tuned = next(named, None) if "selection" in made else None
        judged = tuned if isinstance(tuned, list | dict) else ()
        zero = [name for name, value in self.by_value.items() if value == 0]
        for held_out in (True, False):
            names = [name for name in zero if (name in judged) is held_out]
            if names:
                has, they, are = ("have", "they", "are") if names[1:] else ("has", "it", "is")
                reason = "gained nothing on held-out text" if held_out else f"{are} not used"
                listed = ", ".join(f"`{name}`" for name in names)
                lines.append(f"{listed} {has} weight 0: {they} {reason}")
        presets = made.get(BY_PRESET)
        for name in presets if isinstance(presets, list) else ():
            if name in self.dense:
                lines.append(
                    f"`{name}` has weight {self.dense[name][0]:g}, as without a weights file: it "
                    "tells no candidates of the tuning documents apart"
                )
        return lines

    def save(self, path: str | Path) -> None:
        """Write a weights file: JSON or, if the path ends with `.ini`, a rescore.ini."""
        write_weights(path, self)

    def refuse_all_zero(self, cure: str, *, source: str) -> None:
        """InputError if every weight is 0, so that all candidates score the same."""
        if not any(any(values) for values in [*self.dense.values(), self.sparse.values()]):
            raise InputError(
                f"expected a weight that is not 0, found all-zero weights; {cure}", source=source
            )


def write_weights(
    path: str | Path,
    weights: Weights,
    *,
    base: Sequence[bytes] | None = None,
    notices: Notices | None = None,
) -> None:
    """Write a weights file: JSON or, if the path ends with `.ini`, a rescore.ini.

    base: lines of a moses.ini; if given, the file is this moses.ini with the new weights, without
    provenance (`rerank.formats.moses_ini.merged`). RerankError for an `.ini` of weights that keep
    the first candidates.
    """
    kind = kind_of(path, merged=base is not None)
    if weights.keep_first and kind != ".json":
        raise RerankError(
            f"{display(path)}: on held-out documents no weights are as good as the first "
            "candidates, and weights of 0 are none for a decoder; give others with --start, or "
            "keep the first candidates by --out FILE.json"
        )
    if base is not None:
        dense, sparse = weights.dense, weights.sparse
        content = merged(base, dense, sparse, weights.alpha, notices or Notices())
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


def vector(
    weights: Weights,
    labels: Sequence[Label],
    *,
    default: float | None = None,
    presets: Mapping[str, float] = MappingProxyType({}),
    notices: Notices | None = None,
    source: str = "",
) -> NDArray[np.float64]:
    """Weights (F,) in the order of a list's labels; `source` names their file in errors.

    Weights without names are applied in the order of the list's values, with a notice; those of
    other names as `fitted_to` says. A feature without weight gets `default` or, if that is None,
    its own of `presets`, with a notice. InputError for such a feature that has neither, for a
    weight other than 0 of an unknown feature, and for a wrong number of weights.
    """
    place = Place(source, notices or Notices(), 0)
    known = [label.name for label in labels]
    fitted, renamed = _fitted(weights, labels, place)
    dense = fitted.dense
    if _without_names(weights.dense, labels):
        pairs = [f"F{i} → {name}" for i, name in enumerate(column_names(labels))]
        place.note("weights-by-place", pairs=listed(pairs))
    if renamed:
        place.note("renamed-weight", names=renamed)
    unknown = [name for name, values in dense.items() if name not in known and any(values)]
    absent = [name for name in unknown if _UNTUNED.fullmatch(name) is None]
    if absent and not renamed:
        raise _unknown_feature(absent, known, weights.provenance, place)
    if absent:
        place.note("absent-feature", names=absent)
    if untuned := [name for name in unknown if name not in absent]:
        place.note("untuned-weight", names=untuned)
    for label in labels:
        value = presets.get(label.name) if default is None else default
        if value is not None and label.name not in dense:
            origin = ", its weight without a weights file," if default is None else ""
            place.note(
                "feature-without-weight",
                names=[label.name],
                asked=True,
                value=f"{value:g}",
                origin=origin,
            )
            dense = {**dense, label.name: (value,) * label.width}
        if label.name not in dense:
            raise place.fault(
                f"expected a weight for every feature of the list, found none for {label.name!r}; "
                "tune with the same features, or give --default-weight 0; "
                f"{similar(label.name, dense, 'there are weights of')}"
            )
        if len(dense[label.name]) != label.width:
            raise place.fault(
                f"expected {label.width} weights for {label.name!r}, one per value of the "
                f"list, found {len(dense[label.name])}"
            )
    return np.array([value for name in known for value in dense[name]], np.float64)


def _unknown_feature(
    names: Sequence[str], known: Sequence[str], made: Mapping[str, object], place: Place
) -> InputError:
    """The error about weights of features that a list lacks, with the options that add them."""
    options = {name: _option(name, made) for name in names}
    added = [name for name, option in options.items() if option]
    first = added[0] if added else names[0]
    cure = f"add {' '.join(dict.fromkeys(options[name] for name in added))}, as in tuning"
    cure = cure if added else similar(first, known, "the list has")
    return place.fault(f"expected weights of the list's features, found one of {first!r}; {cure}")


def _option(name: str, made: Mapping[str, object]) -> str:
    """The option that adds a feature, by the provenance of its weight; empty if none is known."""
    if name in OF_AGREEMENT:
        return "--agreement"
    for kind, option, value in _ADDED:
        entries = made.get(kind)
        if isinstance(entries, Mapping) and name in entries:
            entry = entries[name]
            target = entry.get(value) if isinstance(entry, Mapping) else None
            return f"{option} {shlex.quote(f'{name}={target or value.upper()}')}"
    terms = made.get(name)
    if name == "glossary" and isinstance(terms, Mapping):
        return f"--glossary {shlex.quote(str(terms.get('file')))}"
    return ""


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
    return _fitted(weights, labels, Place(source, Notices(), 0))[0]


def _fitted(
    weights: Weights, labels: Sequence[Label], place: Place
) -> tuple[Weights, tuple[str, ...]]:
    """The weights under the names of the labels, and `tm_pt_0 → tmpt0` of each renamed weight.

    See `fitted_to`. O(number of weights).
    """
    if _without_names(weights.dense, labels):
        return replace(weights, dense=_at_places(weights.dense, labels, place)), ()
    known = {label.name for label in labels}
    lacking = [label for label in labels if label.name not in weights.dense]
    if not lacking:
        return weights, ()
    numbers = dict(weights.sparse)
    owners: dict[str, str] = {}  # dense features whose values have these names
    for name, values in weights.dense.items():
        if name not in known:
            for i, value in enumerate(values):
                key = name if len(values) == 1 else f"{name}_{i}"
                numbers[key], owners[key] = value, name
    by_plain: dict[str, list[str]] = defaultdict(list)
    for name in numbers:
        by_plain[plain_name(name)].append(name)
    fitted: dict[str, tuple[float, ...]] = {}
    used: set[str] = set()
    renamed: list[str] = []
    for label in lacking:
        columns = [f"{label.name}_{i}" for i in range(label.width)]
        present = [name for name in columns if name in numbers]
        if label.width == 1 and label.name in numbers:  # a value of a feature of several
            present = [label.name]
        if present and len(present) < label.width:
            missing = next(name for name in columns if name not in numbers)
            raise place.fault(
                f"expected weights of all {label.width} values of {label.name!r}, found "
                f"{', '.join(present[:5])} and no {missing}"
            )
        if not present and label.width == 1:
            alike = [label.decoder_name] if label.decoder_name in numbers else by_plain[label.name]
            if len(alike) == 1:
                present = alike
                renamed.append(f"{alike[0]} → {label.name}")
        if present:
            fitted[label.name] = tuple(numbers[name] for name in present)
            used.update(present)
    gone = {owners[name] for name in used if name in owners}
    gone -= {owner for name, owner in owners.items() if name not in used}
    dense = {name: values for name, values in weights.dense.items() if name not in gone}
    sparse = {name: value for name, value in weights.sparse.items() if name not in used}
    return replace(weights, dense=dense | fitted, sparse=sparse), tuple(renamed)


def _without_names(dense: Mapping[str, object], labels: Sequence[Label]) -> bool:
    """Whether weights are called F<i>, by the place of their values, and no label is."""
    places = bool(dense) and bool(labels) and all(map(_PLACE.fullmatch, dense))
    return places and not any(_PLACE.fullmatch(label.name) for label in labels)


def _at_places(
    dense: Mapping[str, tuple[float, ...]], labels: Sequence[Label], place: Place
) -> Mapping[str, tuple[float, ...]]:
    """Weights F<i> under the names of the labels; InputError unless every value has one."""
    places = [f"F{i}" for i in range(sum(label.width for label in labels))]
    n_weights = sum(map(len, dense.values()))
    if dense.keys() != set(places) or n_weights != len(places):
        known = " ".join(label.name for label in labels[:20])
        raise place.fault(
            f"expected {len(places)} weights without names, F0 to {places[-1]}, one for each "
            f"value of {known}, found {n_weights}"
        )
    values = (dense[name][0] for name in places)
    return {label.name: tuple(islice(values, label.width)) for label in labels}
