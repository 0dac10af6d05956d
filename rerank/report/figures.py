"""Figures of a report for papers, and of tuning, drawn by matplotlib (the extra `figures`).

The same report gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rerank.files.outputs import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from rerank.report.run_report import RunReport
    from rerank.tuning.pool import Pool
    from rerank.tuning.pool_search import PoolSearch
    from rerank.tuning.tuners.ascent import Section

_COLUMNS = 4
FORMATS = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
_WIDTH, _HEIGHT = 5.0, 2.6  # inches
_NAMED = 20  # documents and features that get a line with their names
_VISIBLE = 0.01  # of the longest bar
_UP, _DOWN = "#0072b2", "#d55e00"  # of Okabe and Ito's palette for the colour-blind
_STYLE: Any = {
    **{"svg.hashsalt": "rerank", "svg.fonttype": "none", "pdf.fonttype": 42, "font.size": 8},
    **{"axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6},
}


def plot_surface(path: str, pool: Pool, weights: NDArray[np.float64], search: PoolSearch) -> None:
    """Draw the objective around weights (G,) to a file."""
    from rerank.tuning.tuners.ascent import sections

    objective = search.goal.objective
    around = sections(pool, weights, objective, search.names)
    plot_sections(path, around, objective=objective.name)


def plot_sections(path: str | Path, sections: Sequence[Section], *, objective: str) -> None:
    """Write a figure with the objective along every feature, a panel each, to `path`.

    A panel shows weights within a change of about the size of all weights; the tuned weight is
    marked, and the range where the objective loses at most `NEAR` is shaded.
    """
    from rerank.tuning.tuners.ascent import NEAR

    rows = max(1, -(-len(sections) // _COLUMNS))
    figure = _empty(3.2 * _COLUMNS, 2.4 * rows + 1.2)
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


def write_figures(folder: Path, report: RunReport) -> list[Path]:
    """Write the figures of a report to a folder; their paths.

    `gains`: the gain of each document, if there are references; `features`: what each feature adds;
    `engines`: the share of each in the choices, of lists of systems.
    """
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    gains = [(x.id, x.gain) for x in report.documents if x.gain is not None]
    explanation, written = report.explanation, []
    added = [(name, mean) for name, _, mean in explanation.ranked()]
    added.sort(key=lambda bar: -abs(bar[1]))
    added = [bar for bar in added[:_NAMED] if abs(bar[1]) > _VISIBLE * abs(added[0][1])]
    shares = [(name, 100 * n / explanation.sentences) for name, n in explanation.engine_shares()]
    with matplotlib.rc_context(_STYLE):
        figures = {
            **({"gains": _gains(gains)} if gains else {}),
            "features": _bars(added, "mean contribution to the lead over the baseline"),
            **({"engines": _bars(shares, "share of the sentences (%)")} if shares else {}),
        }
        for name, figure in figures.items():
            for form, metadata in FORMATS.items():
                path = folder / f"{name}.{form}"
                with atomic(path) as file:
                    figure.savefig(file, format=form, metadata=metadata)
                written.append(path)
    return written


def _empty(width: float = _WIDTH, height: float = _HEIGHT) -> Figure:
    """A figure of this size, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _gains(gains: Sequence[tuple[str, float]]) -> Figure:
    """Bars of the gains of documents, the largest first; with their names, of few documents."""
    ranked = sorted(gains, key=lambda bar: -bar[1])
    if len(ranked) <= _NAMED:
        return _bars(ranked, "gain (BLEU points)")
    figure, values = _empty(), [gain for _, gain in ranked]
    axes = figure.add_subplot()
    axes.bar(range(1, len(values) + 1), values, color=_colors(values))
    axes.axhline(0, color="black", linewidth=0.6)
    axes.margins(x=0.01)
    axes.set_xlabel(f"{len(values):,} documents, by gain")
    axes.set_ylabel("gain (BLEU points)")
    return figure


def _bars(named: Sequence[tuple[str, float]], unit: str) -> Figure:
    """Horizontal bars of values by their names, from the top."""
    figure = _empty(height=0.5 + 0.17 * max(1, len(named)))
    axes, values = figure.add_subplot(), [value for _, value in named]
    axes.barh(range(len(values)), values, color=_colors(values))
    axes.set_yticks(range(len(values)), [name for name, _ in named], parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_xlabel(unit)
    return figure


def _colors(values: Sequence[float]) -> list[str]:
    return [_DOWN if x < 0 else _UP for x in values]
