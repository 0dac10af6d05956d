"""A `RunReport` as one HTML file, from a Jinja template: offline, escaped, usable without scripts.

The page begins with the verdict; then it says why, where, and shows sentences. Texts come from
strangers. The template escapes all of them; invisible characters that change how a text is read
are shown as their code points; a content security policy allows the page's own style and script,
by their hashes, and nothing else. The same report gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING

from rerank.errors import visible
from rerank.metrics.significance import MIXED, SIGNIFICANT, answer, p_text
from rerank.report.evaluation import NAMES, MetricScore
from rerank.report.explanation import word_runs
from rerank.report.run_report import LEAST, ChangedSentence, ReportedDocument, RunReport

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_QUOTES = '"“”'
ENDS = 5  # documents that gained most, and that lost most, which stand before all others
FEATURES, CHANGES = 8, 5  # of features and of changes of words those that stand before others


@cache
def _template() -> Template:
    """Of the page; to compile it takes most of the time of a small report."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("rerank.report", "html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    signed = partial(_figure, form="+")
    environment.filters.update(visible=visible, signed=signed, figure=_figure, p=p_text, name=_name)
    environment.globals.update(runs=_runs, marked=marked, sign=sign, direction=direction)
    environment.globals.update(names=NAMES, significant=SIGNIFICANT, least=LEAST, mixed=MIXED)
    return environment.get_template("report.html")


def render(report: RunReport) -> str:
    """The page."""
    folder = files("rerank.report") / "html"
    style, script = ((folder / name).read_text("utf-8") for name in ("report.css", "report.js"))
    hashes = [
        base64.b64encode(hashlib.sha256(x.encode()).digest()).decode() for x in (script, style)
    ]
    explanation, evaluation = report.explanation, report.evaluation
    base, ours, *others = evaluation.systems if evaluation else (None, None)
    ranked = ranking(report)
    gains = [d.gain or 0.0 for d in report.documents]
    features = [feature for feature in explanation.ranked() if feature[1] or feature[2]]
    features.sort(key=lambda feature: -abs(feature[2]))
    return _template().render(
        report=report,
        base=base,
        ours=ours,
        others=others,
        answer=answer(ours.verdict or "") if ours else ("Not known", "same"),
        style=style,
        script=script,
        policy=f"default-src 'none'; script-src 'sha256-{hashes[0]}'; "
        f"style-src 'sha256-{hashes[1]}'; img-src data:; base-uri 'none'; form-action 'none'",
        features=(features[:FEATURES], features[FEATURES:]),
        largest=max((abs(mean) for *_, mean in features), default=0.0) or 1.0,
        engines=(engines := explanation.engine_shares()),
        several=sum(times for _, times in engines) > explanation.sentences,
        words=explanation.content_changes()[:CHANGES],
        ranked=ranked,
        losers=sum(gain < 0 for gain in gains),
        worst=[i for i in reversed(ranked) if gains[i] < 0][:ENDS],
        best=[i for i in ranked if gains[i] > 0][:ENDS],
        widest=max(map(abs, gains), default=0.0) or 1.0,
        examples=examples(report),
    )


def ranking(report: RunReport) -> list[int]:
    """Numbers of the documents from the largest gain to the largest loss.

    Without references, from the largest share of changed sentences.
    """

    def rank(i: int) -> tuple[float, int]:
        document: ReportedDocument = report.documents[i]
        share = document.changed / max(1, document.sentences)
        return -(share if document.gain is None else document.gain), i

    return sorted(range(len(report.documents)), key=rank)


def examples(report: RunReport) -> list[tuple[str, int, ChangedSentence]]:
    """The shown sentences with the median gain and the median loss in chrF, and the largest loss.

    Without losses, the largest gain; without references, the first sentence. Each with what it is
    and the number of its document.
    """
    shown = [(d, s) for d, document in enumerate(report.documents) for s in document.shown or ()]
    if not shown or shown[0][1].chrf is None:
        return [("A changed sentence", *first) for first in shown[:1]]
    gains = [sentence.chrf or 0.0 for _, sentence in shown]
    ranked = sorted(range(len(shown)), key=gains.__getitem__)
    losing = [i for i in ranked if gains[i] <= -LEAST]
    gaining = [i for i in ranked if gains[i] >= LEAST]
    chosen = {ranked[len(ranked) // 2]: "A typical change (the median of the gains in chrF)"}
    if losing:
        chosen.setdefault(
            losing[len(losing) // 2], "A typical loss (the median of the losses in chrF)"
        )
        chosen.setdefault(losing[0], "The largest loss in chrF")
    elif gaining:
        chosen.setdefault(gaining[-1], "The largest gain in chrF")
    return [(title, *shown[i]) for i, title in chosen.items()]


def _runs(before: str, after: str) -> list[tuple[str, str]]:
    """Words of two texts: (`same`, words), (`del`, words of the first), (`ins`, of the second)."""
    return [
        (kind, visible(text))
        for old, new in word_runs(before, after)
        for kind, text in ([("same", old)] if old == new else [("del", old), ("ins", new)])
        if text
    ]


def marked(text: str, errors: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Parts of a text in order, each with what an error in it is; '' for parts without one.

    An error whose words are not in the text, or in another error, stands behind it, in quotes.
    """
    spans, behind = list[tuple[int, int, str]](), list[tuple[str, str]]()
    for error in errors:
        kind, words = f"{error['severity']}, {error['category']}", error["span"]
        places = (m.span() for m in re.finditer(re.escape(words), text)) if words else ()
        free = (x for x in places if all(x[1] <= a or b <= x[0] for a, b, _ in spans))
        if (place := next(free, None)) is None:
            behind += [("", " "), (kind, f"“{words.strip(_QUOTES)}”" if words else "…")]
        else:
            spans.append((*place, kind))
    parts, at = list[tuple[str, str]](), 0
    for begin, end, kind in sorted(spans):
        parts += [("", text[at:begin]), (kind, text[begin:end])]
        at = end
    return [(kind, visible(part)) for kind, part in [*parts, ("", text[at:]), *behind] if part]


def _name(text: str) -> Markup:
    """A name that lines may break after `_`, `-` and a `.` before no digit, or in 24 characters."""
    from markupsafe import Markup

    parts = re.findall(r"(?:[^_.-]|\.(?=\d)){1,24}[_.-]?|[_.-]", visible(text), re.DOTALL)
    return Markup("<wbr>").join(parts)


def _figure(value: float | None, digits: int = 2, *, form: str = ",") -> str:
    """`1,234.50`, or `+0.25` of the form +, with a true minus; nothing for None, 0 without sign."""
    if value is None:
        return ""
    text = f"{value:{form}.{digits}f}".replace("-", "\N{MINUS SIGN}")
    return text if text.strip("+\N{MINUS SIGN}0.") else text.strip("+\N{MINUS SIGN}")


def sign(value: float | None, digits: int = 2) -> str:
    """`up`, `down`, or `same` for what is zero with so many digits."""
    return "same" if not round(value or 0.0, digits) else "up" if (value or 0.0) > 0 else "down"


def direction(name: str, score: MetricScore) -> str:
    """The `sign` of a significant gain in a metric; `same` for another, which may be chance."""
    if score.difference is None or score.p_value is None or score.p_value >= SIGNIFICANT:
        return "same"
    return sign(-score.difference if name == "ter" else score.difference)
