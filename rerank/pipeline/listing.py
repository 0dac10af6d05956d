"""`rerank list`: what there is to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from decoders.table import DECODERS, Decoder
from rerank.pipeline.searching import FLAGS

_HIDDEN = frozenset({"rng", "n_best"})  # arguments that have an option of another name


@dataclass(frozen=True, slots=True)
class DecoderList:
    """The decoders of `--search`."""

    rows: tuple[Decoder, ...]

    def to_dict(self) -> dict[str, object]:
        """The table for machines."""
        return {"schema": 1, "decoders": [_row(row) for row in self.rows]}

    def to_text(self) -> str:
        """The table for people."""
        from tabulate import tabulate

        rows = [{**_row(row), "options": " ".join(flags(row))} for row in self.rows]
        widths = [None, None, None, 24, 28, 40]
        return str(tabulate(rows, headers="keys", tablefmt="simple_grid", maxcolwidths=widths))


def list_decoders(table: Mapping[str, Decoder] = DECODERS) -> DecoderList:
    """The decoders in the order of the table."""
    return DecoderList(tuple(table.values()))


def flags(row: Decoder) -> list[str]:
    """The options of the shell that a decoder uses."""
    seed = ["--seed"] if row.takes("seed") else []
    several = ["--n-best"] if row.takes("n_best") else []
    return [*(FLAGS[name] for name in row.options if name not in _HIDDEN), *seed, *several]


def _row(row: Decoder) -> dict[str, object]:
    """What is shown of a decoder."""
    return {
        "name": row.name,
        "orders": row.orders,
        "exact on": row.exact_orders,
        "cost": row.cost,
        "options": flags(row),
        "source": row.source,
    }
