"""Labels of dense features: a name and a number of values each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Label:
    """A dense feature function: its name and how many values it has.

    decoder_name: the name in the list, of which `name` keeps letters and digits; empty if they are
    equal.
    """

    name: str
    width: int
    decoder_name: str = field(default="", compare=False)


def decoder_names(labels: Iterable[Label]) -> dict[str, str]:
    """Names of the features of one value in their decoder, where these are other names."""
    return {one.name: one.decoder_name for one in labels if one.decoder_name and one.width == 1}


def column_names(labels: Iterable[Label]) -> list[str]:
    """Names of the F feature values: `LM0`, or `TM0_0`, `TM0_1`, … where one label has several."""
    return [
        label.name if label.width == 1 else f"{label.name}_{i}"
        for label in labels
        for i in range(label.width)
    ]
