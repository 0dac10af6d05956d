"""Text files and weights in the current folder."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def write(name: str, lines: Iterable[str]) -> None:
    """Write a file of these lines in UTF-8."""
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def read(name: str) -> list[str]:
    """Lines of a file in UTF-8; the last one ends like the others."""
    return Path(name).read_text(encoding="utf-8").split("\n")[:-1]


def write_weights(
    name: str, weights: Mapping[str, float | Sequence[float]], **others: object
) -> None:
    """Write a weights file; others: `sparse` weights, `alpha`."""
    content = {"schema": 1, "weights": dict(weights), **others}
    Path(name).write_text(json.dumps(content), encoding="utf-8")
