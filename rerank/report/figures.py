"""Figures of tuning, drawn by matplotlib (the extra `figures`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.files.outputs import atomic

if TYPE_CHECKING:
    from rerank.tuning.tuners.ascent import Section

_COLUMNS = 4


def plot_sections(path: str | Path, sections: Sequence[Section], *, objective: str) -> None:
    """Write a figure with the objective along every feature, a panel each, to `path`.

    A panel shows weights within a change of about the size of all weights; the tuned weight is
    marked, and the range where the objective loses at most `NEAR` is shaded.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from rerank.tuning.tuners.ascent import NEAR

    rows = max(1, -(-len(sections) // _COLUMNS))
    figure = Figure(figsize=(3.2 * _COLUMNS, 2.4 * rows + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle("Objective along each weight, the others at their tuned values")
    figure.supylabel(objective)
    size = max((abs(s.weight) * s.spread for s in sections), default=1.0) or 1.0
    marks: list[Any] = []
    for i, section in enumerate(sections):
        axes = figure.add_subplot(rows, _COLUMNS, i + 1)
        reach = size / section.spread
        low, high = section.weight - reach, section.weight + reach
        left = np.clip(section.left, low, high)
        inside = np.append(left[1:], high) > left
        steps = axes.stairs(section.values[inside], np.append(left[inside], high), baseline=None)
        tuned = axes.axvline(section.weight, color="C1", linewidth=1)
        start, end = section.flat()
        flat = axes.axvspan(max(start, low), min(end, high), color="C1", alpha=0.15, linewidth=0)
        axes.set_xlabel(f"weight of {section.name}", fontsize=9)
        axes.tick_params(labelsize=7)
        marks = [steps, tuned, flat]
    meanings = ["objective", "tuned weight", f"objective at most {NEAR:g} below its tuned value"]
    if marks:
        figure.legend(marks, meanings, loc="outside lower center", ncols=3)
    with atomic(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:], metadata={"Date": None})
