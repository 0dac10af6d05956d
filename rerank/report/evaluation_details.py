"""Tables of `rerank evaluate` with a row for each measure and system, and what they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rerank.metrics.significance import FEWEST_DOCUMENTS, MOST_EXACT, RESAMPLES

if TYPE_CHECKING:
    from rerank.report.evaluation import Evaluation, System
    from rerank.report.metric_scores import Interval, MetricScore

OUTSIDE = ".4f"  # means of other tools, many of which lie between 0 and 1
NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}  # of metrics, as they are published


def title(name: str, score: MetricScore, between: str = " ") -> str:
    """A metric as it is published, with its role in tuning where that is known."""
    role = "" if score.role is None else f"{between}({score.role})"
    return f"{NAMES.get(name, name)}{role}"


def all_scores(system: System) -> dict[str, MetricScore]:
    """Metrics, then the means of values from files."""
    return {**system.metrics, **system.scores}


def escaped(rows: Sequence[Sequence[str]], form: str) -> list[list[str]]:
    """Cells for a format of tabulate, which escapes what LaTeX reads otherwise, but no bars."""
    bar = r"\|" if form == "github" else "|"
    return [[cell.replace("|", bar) for cell in row] for row in rows]


def long_table(headers: Sequence[str], rows: Sequence[Sequence[str]], form: str = "simple") -> str:
    """A table whose first two columns are what is measured, and a system; form: of tabulate."""
    from tabulate import tabulate

    align = ["left"] * 2 + ["right"] * (len(headers) - 2)
    if form != "simple":
        headers = [header.replace("/\n", "/").replace("\n", " ") for header in headers]
    table: str = tabulate(
        escaped(rows, form), headers=headers, tablefmt=form, colalign=align, disable_numparse=True
    )
    return table


def scores(systems: Sequence[System]) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the table of metrics of other tools: a row for each and each system."""
    headers = ["metric", "system", "mean", "95%"]
    headers += ["gain", "95%", "p"] if len(systems) > 1 else []
    rows = []
    for name in systems[0].scores:
        for system in systems:
            score = system.scores[name]
            rows.append([title(name, score), system.name, *_compared(score, OUTSIDE)])
    return headers, rows


def word_classes(systems: Sequence[System]) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the table of word classes: a row for each class and system."""
    headers = ["words", "system", "number/in\nreferences", "precision", "recall", "F1", "95%"]
    headers += ["gain", "95%", "p"] if len(systems) > 1 else []
    rows = []
    for name in systems[0].word_classes:
        for system in systems:
            own = system.word_classes[name]
            cells = [f"{own.words:,}/{own.reference_words:,}"]
            cells += ["" if x is None else f"{x:.2f}" for x in (own.precision, own.recall)]
            rows.append([title(name, own.f1), system.name, *cells, *_compared(own.f1, ".2f")])
    return headers, rows


def _compared(score: MetricScore, form: str) -> list[str]:
    """A score, its interval, and, but for the baseline's, the gain, its interval and p."""
    cells = [f"{score.score:{form}}", ends(score.interval, form)]
    if score.difference is None:
        return cells
    gain = [f"{score.difference:+{form}}", ends(score.difference_interval, f"+{form}")]
    return [*cells, *gain, p_text(score.p_value)]


def tests_of(systems: Sequence[System]) -> tuple[list[str], list[list[str]]]:
    """Headers and rows of the table of p-values: a row for each metric and system compared."""
    headers = [
        "metric",
        "system",
        "gain",
        "sign-flip\ntest p",
        "paired\nbootstrap p",
        "sign\ntest p",
    ]
    rows = []
    for name in all_scores(systems[0]):
        for system in systems[1:]:
            score = all_scores(system)[name]
            form = OUTSIDE if name in system.scores else ".2f"
            gain = "" if score.difference is None else f"{score.difference:+{form}}"
            p = score.p_values
            shown = [] if p is None else map(p_text, (p.sign_flip, p.bootstrap, p.sign_test))
            rows.append([title(name, score), system.name, gain, *shown])
    return headers, rows


def p_text(p: float | None) -> str:
    """A p-value for people; empty for None."""
    return "" if p is None else f"{p:.4f}" if p >= 1e-4 else f"{p:.0e}"


def ends(interval: Interval | None, form: str) -> str:
    """The ends of an interval for people; empty for None."""
    return "" if interval is None else f"{interval[0]:{form}} … {interval[1]:{form}}"


def legend_of_roles(found: Evaluation) -> Iterator[str]:
    """What is said of the objective of tuning; nothing where it is not known."""
    if found.objective is not None:
        yield f"optimised: in the objective of tuning, {found.objective}; held out: not in it"


def legend_of_words(found: Evaluation) -> Iterator[str]:
    """What is said below the table of word classes; nothing without one."""
    if found.systems[0].word_classes:
        yield (
            "precision, recall, F1 of words: of their counts in each sentence, whatever their "
            "places; the larger of two counts is clipped to the smaller"
        )
    if found.absent_word_classes:
        absent = ", ".join(found.absent_word_classes)
        yield f"without a word in the references, and left out: {absent}"


def legend_of_tests(found: Evaluation) -> Iterator[str]:
    """What each p-value of the table of tests is of."""
    if len(found.documents) >= FEWEST_DOCUMENTS:
        exact = "exact" if len(found.documents) <= MOST_EXACT else "approximate"
        yield (
            f"sign-flip test p: that above; it is {exact} randomisation, which swaps the outputs "
            "of documents"
        )
        yield (
            "paired bootstrap p: of the same gain, as sacrebleu computes it; resampled gains that "
            f"exceed their mean by as much, over documents, {RESAMPLES:,} resamples"
        )
    yield "sign test p, of each metric: of documents better and worse by that metric"
