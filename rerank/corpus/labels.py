"""Labels of dense features: a name and a number of values each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """A dense feature function: its name and how many values it has."""

    name: str
    width: int


def column_names(labels: Iterable[Label]) -> list[str]:
    """Names of the F feature values: `LM0`, or `TM0_0`, `TM0_1`, … where one label has several."""
    return [
        label.name if label.width == 1 else f"{label.name}_{i}"
        for label in labels
        for i in range(label.width)
    ]
