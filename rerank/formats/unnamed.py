"""Weights without feature names, which are applied by their place in the list of values.

mert/kbmira.cpp of https://github.com/moses-smt/mosesdecoder writes `F<i>` for the i-th dense value.
A line of numbers only, as in weights.txt of Moses' mert, is read with the same names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rerank.corpus.labels import Label
from rerank.errors import InputError

_PLACE = re.compile(r"F(?:0|[1-9][0-9]{0,8})")


def by_place(
    dense: Mapping[str, tuple[float, ...]], labels: Sequence[Label], *, source: str = ""
) -> Mapping[str, tuple[float, ...]]:
    """Weights under the names of the labels, where Fi is the weight of the i-th value.

    The argument itself is returned if a weight has another name, or if a label is called F<i>.
    InputError unless every value has exactly one weight.
    """
    known = [label.name for label in labels]
    unnamed = bool(dense) and all(map(_PLACE.fullmatch, dense))
    if not unnamed or not known or any(map(_PLACE.fullmatch, known)):
        return dense
    width = sum(label.width for label in labels)
    places = [f"F{i}" for i in range(width)]
    found = sum(map(len, dense.values()))
    if dense.keys() != set(places) or found != width:
        raise InputError(
            f"expected {width} weights without names, F0 to F{width - 1}, one for each value of "
            f"{' '.join(known[:20])}, found {found}",
            source=source,
        )
    values = iter(places)
    return {
        label.name: tuple(dense[next(values)][0] for _ in range(label.width)) for label in labels
    }
