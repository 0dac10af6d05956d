"""Figures of a report for papers: PDF and SVG of equal content, the same bytes for the same report.

They are drawn by matplotlib (the extra `figures`), as wide as a column of text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.files.outputs import atomic
from rerank.report.run_report import RunReport

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
_WIDTH, _HEIGHT = 5.0, 2.6  # inches
_UP, _DOWN = "#0550ae", "#9a3b00"
Curve = Sequence[tuple[float, float]]


def write_figures(folder: Path, report: RunReport, curves: Mapping[str, Curve]) -> list[Path]:
    """Write the figures of a report to a folder; their paths.

    `gains`: the gain of each document; `features`: what each feature adds; `curves`: validation
    perplexity over seconds of training, if there are any, by the name of the model.
    """
    import matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with matplotlib.rc_context({"svg.hashsalt": "rerank", "svg.fonttype": "none", "font.size": 8}):
        for name, figure in _figures(report, curves):
            for form, metadata in FORMATS.items():
                path = folder / f"{name}.{form}"
                with atomic(path) as file:
                    figure.savefig(file, format=form, metadata=metadata)
                written.append(path)
    return written


def _figures(report: RunReport, curves: Mapping[str, Curve]) -> Iterator[tuple[str, Figure]]:
    yield "gains", _gains([document.gain for document in report.documents])
    found = report.explanation
    means = {name: one.added / max(1, found.changed) for name, one in found.ranked()}
    yield "features", _features(means)
    if curves:
        yield "curves", _curves(curves)


def _empty(height: float = _HEIGHT) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _gains(gains: Sequence[float]) -> Figure:
    """Bars of the gains of documents, the largest first."""
    figure, ranked = _empty(), sorted(gains, reverse=True)
    axes = figure.add_subplot()
    axes.bar(range(1, len(ranked) + 1), ranked, color=[_DOWN if x < 0 else _UP for x in ranked])
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set_xlabel("document, by gain")
    axes.set_ylabel("gain in BLEU")
    return figure


def _features(means: Mapping[str, float]) -> Figure:
    """Horizontal bars of what features add in the mean of the changed sentences."""
    figure = _empty(0.5 + 0.16 * max(4, len(means)))
    axes, values = figure.add_subplot(), [*means.values()]
    axes.barh(range(len(values)), values, color=[_DOWN if x < 0 else _UP for x in values])
    axes.set_yticks(range(len(values)), [*means], parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_xlabel("added to the lead of the choice, nats")
    return figure


def _curves(curves: Mapping[str, Curve]) -> Figure:
    """Validation perplexity of each model over the minutes of its training."""
    figure = _empty()
    axes = figure.add_subplot()
    for name, points in curves.items():
        axes.plot([s / 60 for s, _ in points], [p for _, p in points], label=name, linewidth=1)
    axes.set_xlabel("minutes of training")
    axes.set_ylabel("validation perplexity")
    if len(curves) > 1:
        for text in axes.legend(frameon=False).get_texts():
            text.set_parse_math(False)
    return figure
