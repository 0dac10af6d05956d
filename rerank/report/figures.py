"""Pictures, drawn by matplotlib (the extra `figures`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rerank.errors import UsageError
from rerank.files.outputs import atomic

if TYPE_CHECKING:
    from rerank.tuning.surface import Section

SUFFIXES = (".svg", ".png", ".pdf")
_COLUMNS = 4


def check_figure(path: str | Path) -> None:
    """UsageError for a file that cannot become a figure, before any work."""
    if Path(path).suffix not in SUFFIXES:
        raise UsageError(f"--plot {path}: expected a file {', '.join(SUFFIXES)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError(
            "--plot needs matplotlib: pip install 'rerank[figures]', or leave --plot out"
        ) from None


def plot_sections(
    path: str | Path,
    found: Sequence[Section],
    names: Sequence[str],
    spreads: Sequence[float],
    *,
    title: str,
) -> None:
    """The objective along every feature, a small picture each, written to `path`.

    names: of all features; spreads: (F,) spread of each. A picture shows weights as far as a change
    of about the size of all weights; the weight is marked, and the range where less than `NEAR` is
    lost is shaded.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = -(-len(found) // _COLUMNS)
    figure = Figure(figsize=(3.2 * _COLUMNS, 2.4 * rows + 0.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    size = max((abs(s.weight) * spreads[s.feature] for s in found), default=1.0) or 1.0
    for i, section in enumerate(found):
        axes = figure.add_subplot(rows, _COLUMNS, i + 1)
        reach = size / spreads[section.feature]
        low, high = section.weight - reach, section.weight + reach
        left = np.clip(section.left, low, high)
        inside = np.append(left[1:], high) > left
        axes.stairs(section.values[inside], np.append(left[inside], high), baseline=None)
        axes.axvline(section.weight, color="C1", linewidth=1)
        start, end = section.flat()
        axes.axvspan(max(start, low), min(end, high), color="C1", alpha=0.15, linewidth=0)
        axes.set_title(names[section.feature], fontsize=9)
        axes.tick_params(labelsize=7)
    with atomic(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:], metadata={"Date": None})
