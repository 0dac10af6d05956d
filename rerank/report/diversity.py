"""Diversity of the lists of a run, as a table and for machines."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass, fields

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.diversity import Diversity

_FIGURES = tuple(field.name for field in fields(Diversity))
_SHARES = {"least": 0.0, "10%": 0.1, "50%": 0.5, "90%": 0.9, "most": 1.0}


@dataclass(frozen=True, slots=True)
class Diversities:
    """Diversity of each list that has candidates, by its id in the file."""

    lists: dict[int, Diversity]

    def column(self, figure: str) -> NDArray[np.float64]:
        """Values (≤ T,) of a figure, without lists for which it is not defined."""
        found = [getattr(one, figure) for one in self.lists.values()]
        return np.array([value for value in found if value is not None], dtype=np.float64)

    def mean(self, figure: str) -> float | None:
        """Mean of a figure over the lists for which it is defined; None if there are none."""
        column = self.column(figure)
        return float(column.mean()) if len(column) else None

    def to_dict(self) -> dict[str, object]:
        """The report as JSON values, numbers unrounded."""
        return {
            "schema": 1,
            "candidates": int(self.column("candidates").sum()),
            "distinct": int(self.column("distinct").sum()),
            "mean": {figure: self.mean(figure) for figure in _FIGURES},
            "lists": [{"id": t, **asdict(one)} for t, one in self.lists.items()],
        }

    def to_tsv(self) -> str:
        """A header and a line per list; a figure that is not defined for a list is empty."""
        rows = [("id", *_FIGURES), *((t, *astuple(one)) for t, one in self.lists.items())]
        cells = (["" if value is None else str(value) for value in row] for row in rows)
        return "".join("\t".join(row) + "\n" for row in cells)

    def to_text(self) -> str:
        """The report as a table: mean and quantiles of each figure over the lists."""
        from tabulate import tabulate

        rows = [["mean", *(_cell(figure, self.mean(figure)) for figure in _FIGURES)]]
        for name, share in _SHARES.items():
            rows.append([name, *(_cell(f, _quantile(self.column(f), share)) for f in _FIGURES)])
        table = tabulate(
            rows,
            headers=["of a list", *_FIGURES],
            colalign=["left"] + ["right"] * len(_FIGURES),
            disable_numparse=True,
        )
        total, distinct = (int(self.column(figure).sum()) for figure in _FIGURES[:2])
        return (
            f"{table}\n\n"
            f"{len(self.lists):,} lists, {total:,} candidates, {distinct:,} distinct\n"
            "distance: edit distance in words, mean of all pairs of a list\n"
            "relative: distance / length of the longer candidate, mean of all pairs of a list\n"
            "10%, 50%, 90%: quantiles over the lists\n"
        )


def _quantile(values: NDArray[np.float64], share: float) -> float | None:
    """The smallest value with at least this share of the values at or below it; None if empty."""
    return float(np.quantile(values, share, method="inverted_cdf")) if len(values) else None


def _cell(figure: str, value: float | None) -> str:
    """A figure in the table: one decimal for counts, two for distances, three for relative ones."""
    places = {"distance": 2, "relative": 3}.get(figure, 1)
    return "" if value is None else f"{value:.{places}f}"
