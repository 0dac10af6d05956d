"""A `RunReport` as one HTML file, from a Jinja template: offline, escaped, usable without scripts.

Texts come from strangers. The template escapes all of them; invisible characters that change how a
text is read are shown as their code points; a content security policy allows the page's own style
and script, by their hashes, and nothing else. The same report gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any

from rerank.report import charts
from rerank.report.evaluation import NAMES
from rerank.report.explanation import word_runs
from rerank.report.run_report import RunReport
from rerank.table import p_value

# controls but TAB, zero-width and bidirectional characters, separators of lines, soft hyphen
_INVISIBLE = re.compile(
    "[\0-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Text with each invisible character as `‹U+202E›`."""
    return _INVISIBLE.sub(lambda found: f"‹U+{ord(found[0]):04X}›", text)


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
    environment.filters.update(visible=visible, signed=_signed, figure=_figure, p=p_value)
    environment.globals.update(runs=_runs, names=NAMES, sign=charts.sign)
    folder = files("rerank.report") / "html"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    return environment.get_template("report.html").render(
        report=report,
        base=report.evaluation.systems[0],
        ours=report.evaluation.systems[1],
        style=style,
        script=script,
        policy=_policy(style, script),
        **_drawn(report),
    )


def _drawn(report: RunReport) -> dict[str, Any]:
    """The charts of documents and features."""
    documents = report.documents
    gains = [one.gain for one in documents]
    circles = charts.points(
        [one.baseline_bleu for one in documents], gains, [one.sentences for one in documents]
    )
    features = report.explanation.ranked()
    means = [one.added / max(1, report.explanation.changed) for _, one in features]
    return {
        "gains": charts.bars(gains),
        "scatter": circles,
        "features": list(zip(features, means, charts.shares(means), strict=True)),
    }


def _policy(style: str, script: str) -> str:
    hashes = [
        base64.b64encode(hashlib.sha256(x.encode()).digest()).decode() for x in (script, style)
    ]
    return (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _runs(before: str, after: str) -> list[tuple[str, str]]:
    """Words of two texts as (`same`, `old` or `new`, words)."""
    found = []
    for same, old, new in word_runs(before, after):
        if same:
            found.append(("same", new))
            continue
        found += [("old", old)] * bool(old) + [("new", new)] * bool(new)
    return [(kind, visible(words)) for kind, words in found]


def _signed(value: float | None, digits: int = 2) -> str:
    """`+0.25`, with a true minus; nothing for None."""
    return "" if value is None else f"{value:+.{digits}f}".replace("-", "\N{MINUS SIGN}")


def _figure(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:,.{digits}f}".replace("-", "\N{MINUS SIGN}")
