"""Weights under the names that a list's features have, where a weights file names them otherwise.

A file with one number a name has `TM0_0`, `TM0_1` for the values of `TM0`, as Moses' mert calls
them. Lists of cdec, Joshua and Travatar are read with names of letters and digits, so that the
weight of `tm_pt_0` belongs to the feature `tmpt0`. In weights files a name with `_` is a sparse
feature, until a list is known that has the dense one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rerank.corpus.columns import Label
from rerank.errors import InputError
from rerank.formats.tokens import plain_name


@dataclass(frozen=True, slots=True)
class FittedWeights:
    """Dense and sparse weights for a list; renamed: `tm_pt_0 → tmpt0` of each renamed weight."""

    dense: Mapping[str, tuple[float, ...]]
    sparse: Mapping[str, float]
    renamed: tuple[str, ...]


def fitted(
    dense: Mapping[str, tuple[float, ...]],
    sparse: Mapping[str, float],
    labels: Sequence[Label],
    *,
    source: str = "",
) -> FittedWeights:
    """The weights under the names of the labels; O(number of weights).

    A label without a weight of its name gets those of its single values, `TM0_0`, `TM0_1`, …, that
    of its name in the decoder, or that of the one name that is the same in letters and digits. All
    other weights stay as they are.
    InputError where only some of a label's values have a weight.
    """
    known = {label.name for label in labels}
    lacking = [label for label in labels if label.name not in dense]
    if not lacking:
        return FittedWeights(dense, sparse, ())
    numbers = dict(sparse)
    owners: dict[str, str] = {}  # dense features whose values have these names
    for name, values in dense.items():
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
    kept = {name for name in dense if name in known} | (
        dense.keys() - {owners[name] for name in used if name in owners}
    )
    return FittedWeights(
        {name: values for name, values in dense.items() if name in kept} | found,
        {name: value for name, value in sparse.items() if name not in used},
        tuple(renamed),
    )
