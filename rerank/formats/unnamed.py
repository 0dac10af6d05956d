"""Weights that have a place instead of a name: F0, F1, … by Moses' tuners, or a line of numbers.

`F<i>` is what mert/kbmira.cpp of https://github.com/moses-smt/mosesdecoder writes for the i-th
dense value. A line of bare numbers, as mert's weights.txt, is read with the same names.
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
    """Weights F0, F1, … under the names of the labels, whose i-th value Fi belongs to.

    Weights with other names come back as they are, and so do those of labels that are called F0.
    `InputError` where not every value has one weight: Moses tunes the first ones in silence.
    """
    known = [label.name for label in labels]
    if not dense or not all(map(_PLACE.fullmatch, dense)) or any(map(_PLACE.fullmatch, known)):
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
