"""A `RunReport` as one HTML file, from a Jinja template: offline, escaped, usable without scripts.

Texts come from strangers. The template escapes all of them; invisible characters that change how a
text is read are shown as their code points; a content security policy allows the page's own style
and script, by their hashes, and nothing else. The same report gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import TypeAlias

from rerank.report.evaluation import NAMES
from rerank.report.explanation import word_runs
from rerank.report.run_report import RunReport
from rerank.table import p_value
from rerank.text import visible

LEFT, WIDTH, HEIGHT = 70.0, 1000.0, 240.0  # labels stand left of LEFT


def render(report: RunReport) -> str:
    """The page."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rerank.report", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    signed = partial(_figure, form="+")
    environment.filters.update(visible=visible, signed=signed, figure=_figure, p=p_value)
    environment.globals.update(runs=_runs, names=NAMES, sign=sign)
    folder = files("rerank.report") / "html"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    hashes = [
        base64.b64encode(hashlib.sha256(x.encode()).digest()).decode() for x in (script, style)
    ]
    documents, features = report.documents, report.explanation.ranked()
    gains = [one.gain for one in documents]
    most = max((abs(mean) for _, _, mean in features), default=0.0) or 1.0  # a bar of length 100
    return environment.get_template("report.html").render(
        report=report,
        base=report.evaluation.systems[0],
        ours=report.evaluation.systems[1],
        style=style,
        script=script,
        policy=f"default-src 'none'; script-src 'sha256-{hashes[0]}'; "
        f"style-src 'sha256-{hashes[1]}'; img-src data:; base-uri 'none'; form-action 'none'",
        gains=bars(gains),
        scatter=points(
            [one.baseline_bleu for one in documents], gains, [one.sentences for one in documents]
        ),
        features=[(one, round(100 * abs(one[2]) / most, 2)) for one in features],
    )


def _runs(before: str, after: str) -> list[tuple[str, str]]:
    """Words of two texts as (`same`, `old` or `new`, words)."""
    found = []
    for old, new in word_runs(before, after):
        kinds = {"same": new} if old == new else {"old": old, "new": new}
        found += [(kind, visible(words)) for kind, words in kinds.items() if words or old == new]
    return found


def _figure(value: float | None, digits: int = 2, *, form: str = ",") -> str:
    """`1,234.50`, or `+0.25` of the form +, with a true minus; nothing for None."""
    return "" if value is None else f"{value:{form}.{digits}f}".replace("-", "\N{MINUS SIGN}")


# Geometry of the charts: what is drawn where, in the units of an SVG's view box. An axis is the
# place of zero and labelled ticks, (place, label); a shape has the index of its value.


Ticks: TypeAlias = tuple[tuple[float, str], ...]
Axis: TypeAlias = tuple[float, Ticks]


def bars(
    values: Sequence[float],
) -> tuple[list[tuple[int, float, float, float, float, str]], Axis]:
    """Vertical bars of values from the largest to the smallest, up or down from a zero line.

    Each is index, x, y, width, height, `sign`.
    """
    top, bottom = _range(values)
    step = (WIDTH - LEFT) / max(1, len(values))
    zero, ticks = _axis(bottom, top)
    found = []
    ranked = sorted(range(len(values)), key=lambda i: (-values[i], i))
    for place, i in enumerate(ranked):
        size = max(abs(_height(values[i], bottom, top) - zero), 0.5)
        x, y = LEFT + (place + 0.1) * step, zero - size * (values[i] > 0)
        found.append(
            (i, round(x, 2), round(y, 2), round(0.8 * step, 2), round(size, 2), sign(values[i]))
        )
    return found, (zero, ticks)


def points(
    xs: Sequence[float], ys: Sequence[float], sizes: Sequence[int]
) -> tuple[list[tuple[int, float, float, float, str]], Axis, Ticks]:
    """Circles at (x, y), their areas as sizes; the vertical axis, and ticks of the other one.

    Each is index, x, y, radius, `sign` of y.
    """
    top, bottom = _range(ys)
    low, high = min(xs, default=0.0), max(xs, default=1.0)
    span = (high - low) or 1.0
    largest = max(sizes, default=1)
    found = []
    for i, (x, y, size) in enumerate(zip(xs, ys, sizes, strict=True)):
        place = LEFT + 10 + (WIDTH - LEFT - 20) * (x - low) / span
        radius = max(2.0, 10 * (size / largest) ** 0.5)
        found.append(
            (i, round(place, 2), round(_height(y, bottom, top), 2), round(radius, 2), sign(y))
        )
    width = WIDTH - LEFT - 20
    ticks = tuple(
        (round(LEFT + 10 + width * (value - low) / span, 2), f"{value:.{digits}f}")
        for value, digits in _round_values(low, low + span)
    )
    return found, _axis(bottom, top), ticks


def sign(value: float) -> str:
    """`up`, `down` or `same`."""
    return "up" if value > 0 else "down" if value < 0 else "same"


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Largest and smallest value, zero included, and a little space."""
    top, bottom = max(0.0, *values, 0.0), min(0.0, *values, 0.0)
    space = 0.08 * ((top - bottom) or 1.0)
    return top + space, bottom - space


def _height(value: float, bottom: float, top: float) -> float:
    return HEIGHT * (top - value) / (top - bottom)


def _axis(bottom: float, top: float) -> Axis:
    ticks = tuple(
        (round(_height(value, bottom, top), 2), f"{value:+.{digits}f}" if value else "0")
        for value, digits in _round_values(bottom, top)
    )
    return round(_height(0.0, bottom, top), 2), ticks


def _round_values(low: float, high: float) -> list[tuple[float, int]]:
    """The multiples of 1, 2 or 5 times a power of 10 within a range, two to five, with digits."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4))
    step = next(
        step for step in (power, 2 * power, 5 * power, 10 * power) if 4 * step >= high - low
    )
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    multiples = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [(round(multiple * step, digits + 2), digits) for multiple in multiples]
