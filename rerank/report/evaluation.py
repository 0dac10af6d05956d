"""Result of an evaluation: scores of systems beside those of a baseline, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from operator import attrgetter
from typing import Any, TypeAlias

from rerank.metrics.significance import DRAWS, FEWEST_DOCUMENTS, MOST_EXACT, RESAMPLES, SIGNIFICANT
from rerank.table import Column, Form, Table, one_line, p_value

Interval: TypeAlias = tuple[float, float]
"""Lower and upper end of a 95% confidence interval."""

NAMES = {  # of metrics, as they are published
    **{"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"},
    **{"bleu-lc": "BLEU-lc", "d-bleu": "d-BLEU"},
}
IN_WORDS = {**NAMES, "chrf": "chrF"}  # of metrics, in a verdict
_REMARKS = {
    **{"ter": "; less is better", "d-bleu": "; of documents as one line each"},
    "pronouns": "; F1 of the classes he, she, it, they",
    "connectives": "; F1 of the relations that connectives state",
    "tense": "; F1 of the tenses of verb forms",
    "names": "; F1 of words with a capital inside sentences",
    "terms": "; % of names and terms of the source that are rendered as elsewhere in the document",
    "cohesion": "; F1 of content words that an earlier sentence of the document has",
}
_OUTSIDE = ".4f"  # means of other tools, many of which lie between 0 and 1
_CONTEXTS = """
no context: every sentence as if it were the whole document; another document: the sentences that
were chosen there; references: the first reference of the other sentences; the weights are the same
changed: sentences whose text is not that of the decoding"""


@dataclass(frozen=True, slots=True)
class PValues:
    """P-values of a gain over the baseline, by tests that take documents as the sample.

    sign_flip: approximate randomisation of the gain in the score of the whole text, two-sided;
    exact up to 20 documents. bootstrap: paired bootstrap of the same gain, as in sacrebleu. Both
    are None below `FEWEST_DOCUMENTS`. sign_test: two-sided, of documents better and worse.
    """

    sign_flip: float | None
    bootstrap: float | None
    sign_test: float


@dataclass(frozen=True, slots=True)
class MetricScore:
    """A corpus score as it is published; an error rate is positive, and smaller is better.

    signature: sacrebleu's, for its metrics; interval: None for a single document. The comparison
    with the baseline is None for the baseline. p_value: of the sign-flip test, as in `p_values`.
    role: `optimised` or `not optimised` in the tuning of the weights, None where that is not known.
    """

    score: float
    signature: str
    interval: Interval | None
    difference: float | None = None
    difference_interval: Interval | None = None
    p_value: float | None = None
    p_values: PValues | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """BLEU (0 to 100) and length ratio: hypothesis words / reference words."""

    bleu: float
    length_ratio: float


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """Numbers of documents with better, equal and worse BLEU than the baseline's."""

    better: int | None = None
    equal: int | None = None
    worse: int | None = None
    increase_ratio: float | None = None

    def __str__(self) -> str:
        return "" if self.better is None else f"{self.better}/{self.equal}/{self.worse}"


@dataclass(frozen=True, slots=True)
class System:
    """Results of a system; the comparison with the baseline is None for the baseline.

    metrics: by name, BLEU first, which the fields beside it repeat. oracle_share: of the gain that
    the oracle of a k-best list has over the baseline, None without a list. detokenised: metrics of
    the detokenised text, BLEU with the tokenizer 13a. scores: means of values from files and
    programs. Those that were not asked for are empty. verdict: the comparison in words.
    """

    name: str
    bleu: float
    length_ratio: float
    signature: str
    interval: Interval | None
    metrics: Mapping[str, MetricScore]
    bleu_without_brevity_penalty: float
    difference: float | None
    difference_interval: Interval | None
    documents: DocumentCounts
    p_value: float | None
    sign_test_p_value: float | None
    p_values: PValues | None
    oracle_share: float | None
    detokenised: Mapping[str, MetricScore]
    scores: Mapping[str, MetricScore]
    verdict: str | None = None

    @property
    def all_scores(self) -> dict[str, MetricScore]:
        """Metrics, then the means of values from files and programs."""
        return {**self.metrics, **self.scores}


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """Results of a document, for each system."""

    id: str
    sentences: int
    bleu: tuple[float, ...]
    length_ratio: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of `rerank evaluate`; `systems[0]` is the baseline.

    objective: of the tuning that the roles of metrics are about. tuning_length_ratio: of what the
    weights chose on the tuning documents. Both are None where they are not known. changed: of
    `rerank ablate`, whose systems are contexts: lines by system whose text is not that of the
    decoding. idle: which language models contribute nothing, where that is known.
    """

    systems: tuple[System, ...]
    documents: tuple[DocumentScores, ...]
    oracle: Score | None
    anti_oracle: Score | None
    seed: int
    objective: str | None = None
    tuning_length_ratio: float | None = None
    changed: Mapping[str, int] = field(default_factory=dict)
    idle: str = ""

    @property
    def verdicts(self) -> list[str]:
        """The comparisons in words, a line each."""
        base, *others = self.systems
        lines = [f"{x.name} against {base.name}: {x.verdict}" for x in others if x.verdict]
        return [f"verdict: {line}" for line in (*lines, self.idle) if line]

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as JSON values, unrounded, the figures of documents beside each system."""
        report = {"schema": 1, **asdict(self)}
        changed = report.pop("changed")
        for name in ("tuning_length_ratio", "idle"):
            if not report[name]:
                report.pop(name)
        for system, row in zip(self.systems, report["systems"], strict=True):
            row["increase_ratio"] = system.documents.increase_ratio
            row["documents"]["p_value"] = system.p_value
            if changed:
                row["changed"] = changed[system.name]
        return report

    def table(self) -> Table:
        """A row for each system, numbers unrounded."""
        return Table.of([_numbers(system) for system in self.systems])

    def _repr_html_(self) -> str:
        """The table of BLEU and documents, for notebooks; `to_text` has the others."""
        return Table.by_columns(_bleu_columns(self.systems)).to_html()

    def to_text(self) -> str:
        """BLEU and documents; below, other metrics; then a legend."""
        systems = self.systems
        whole = Table.by_columns(_bleu_columns(systems))
        extremes = (("oracle", self.oracle), ("anti-oracle", self.anti_oracle))
        rows = [[name, score.bleu, None, score.length_ratio] for name, score in extremes if score]
        others = [{k: v for k, v in x.metrics.items() if k != "bleu"} for x in systems]
        shown: list[tuple[str, Form, str]] = [
            ("BLEU without\nbrevity penalty", ".2f", "bleu_without_brevity_penalty")
        ]
        if len(systems) > 1:
            shown.append(("sign\ntest p", p_value, "sign_test_p_value"))
        if any(system.oracle_share is not None for system in systems):
            shown.append(("share of\noracle gain", ".1%", "oracle_share"))
        columns = _columns(systems, ("system", "", "name")) + _metric_columns(others)
        columns += _columns(systems, *shown)
        tables = [Table(whole.columns, [*whole.rows, *rows]), Table.by_columns(columns)]
        if systems[0].detokenised:
            columns = _columns(systems, ("detokenised", "", "name"))
            columns += _metric_columns([system.detokenised for system in systems])
            tables.append(Table.by_columns(columns))
        tables += [_scores(systems)] if systems[0].scores else []
        return "\n".join([*(f"{table.to_text()}\n" for table in tables), *_legend(self)]) + "\n"

    def to_latex(self) -> str:
        """A LaTeX table of the systems, for the package booktabs."""
        return "\n\n".join([self._for_papers().to_latex(), *self._marked("% ")])

    def to_markdown(self) -> str:
        """A Markdown table of the systems."""
        return "\n\n".join([self._for_papers().to_markdown(), *self._marked("")])

    def _for_papers(self) -> Table:
        """A table of what papers print: scores with marks of significance, gains, p-values."""
        systems = self.systems
        columns = _columns(systems, ("system", "", "name"))
        for name, first in systems[0].all_scores.items():
            scores = [system.all_scores[name] for system in systems]
            form = ".2f" if name in systems[0].metrics else _OUTSIDE
            columns.append((Column(_title(name, first), _marked(form)), scores))
            if name == "bleu":
                columns += _columns(systems, ("95%", _ends(".2f"), "interval"))
            if len(systems) > 1:
                gains = [score if score.difference is not None else None for score in scores]
                columns.append((Column("gain, 95%", _gain(f"+{form}")), gains))
                columns += _columns(scores, ("p", p_value, "p_value"))
        columns += _columns(systems, ("length ratio", ".3f", "length_ratio"))
        if len(systems) > 1:
            columns += _columns(systems, ("better/equal/worse", str, "documents"))
        return Table.by_columns(columns)

    def _marked(self, begin: str) -> list[str]:
        """What the marks say, if there are any."""
        scores = [score for system in self.systems for score in system.all_scores.values()]
        if not any(_is_significant(score) for score in scores):
            return []
        return [
            f"{begin}*: p < {SIGNIFICANT:g} against {one_line(self.systems[0].name)}, sign-flip "
            "test over documents"
        ]

    def documents_table(self, *, distinct: bool = False) -> Table:
        """BLEU of each document, and the gains of other systems; distinct: headings name them."""
        columns = [Column("document"), Column("lines", ","), Column(self.systems[0].name, ".2f")]
        for system in self.systems[1:]:
            gain = f"{system.name} gain" if distinct else "gain"
            columns += [Column(system.name, ".2f"), Column(gain, "+.2f")]
        rows = []
        for document in self.documents:
            first, *others = document.bleu
            compared = [number for bleu in others for number in (bleu, bleu - first)]
            rows.append([document.id, document.sentences, first, *compared])
        return Table(columns, rows)

    def score_lines(self, digits: int, *, first: int = 1) -> str:
        """A line for each system from the `first`: its scores alone, with TABs between them."""
        return "\n".join(
            "\t".join(f"{score.score:.{digits}f}" for score in system.all_scores.values())
            for system in self.systems[first:]
        )


def _numbers(system: System) -> dict[str, object]:
    """The figures of a system by name, for other programs."""
    row: dict[str, object] = {"system": system.name}
    for name, score in system.all_scores.items():
        low, high = score.interval or (None, None)
        gain_low, gain_high = score.difference_interval or (None, None)
        _, bootstrap, sign_test = astuple(score.p_values) if score.p_values else (None,) * 3
        figures: dict[str, object] = {"low": low, "high": high, "gain": score.difference}
        figures |= {"gain_low": gain_low, "gain_high": gain_high, "p": score.p_value}
        figures |= {"bootstrap_p": bootstrap, "sign_test_p": sign_test}
        figures |= {} if score.role is None else {"role": score.role}
        row |= {name: score.score, **{f"{name}_{key}": value for key, value in figures.items()}}
    return row | {
        "length_ratio": system.length_ratio,
        "bleu_without_brevity_penalty": system.bleu_without_brevity_penalty,
        **asdict(system.documents),
        "sign_test_p": system.sign_test_p_value,
        "oracle_share": system.oracle_share,
    }


# Columns and tables

_Columns: TypeAlias = list[tuple[Column, Sequence[Any]]]


def _title(name: str, score: MetricScore, between: str = " ") -> str:
    """A metric as it is published, with its role in tuning where that is known."""
    role = "" if score.role is None else f"{between}({score.role})"
    return f"{NAMES.get(name, name)}{role}"


def _is_significant(score: MetricScore) -> bool:
    """Whether a difference from the baseline is significant."""
    return score.p_value is not None and score.p_value < SIGNIFICANT


def _marked(form: str) -> Callable[[MetricScore], str]:
    """How a score is shown, with a mark if its difference from the baseline is significant."""
    return lambda score: f"{score.score:{form}}{'*' * _is_significant(score)}"


def _gain(form: str) -> Callable[[MetricScore], str]:
    """How a gain over the baseline is shown: `+0.35 [-0.56, +1.13]`."""

    def shown(score: MetricScore) -> str:
        ends = ", ".join(f"{end:{form}}" for end in score.difference_interval or ())
        return f"{score.difference:{form}}{f' [{ends}]' * bool(ends)}"

    return shown


def _ends(form: str) -> Callable[[Interval], str]:
    """How the ends of an interval are shown."""
    return lambda interval: f"{interval[0]:{form}} … {interval[1]:{form}}"


def _columns(results: Sequence[Any], *columns: tuple[str, Form, str]) -> _Columns:
    """Columns of a heading, a form, and the attribute of each result that is shown."""
    return [
        (Column(heading, form), [*map(attrgetter(name), results)])
        for heading, form, name in columns
    ]


def _bleu_columns(systems: Sequence[System]) -> _Columns:
    """BLEU, and the documents in which it is better."""
    columns = _columns(
        systems,
        ("system", "", "name"),
        (_title("bleu", systems[0].metrics["bleu"], "\n"), ".2f", "bleu"),
        ("95%", _ends(".2f"), "interval"),
        ("length\nratio", ".3f", "length_ratio"),
    )
    if len(systems) == 1:
        return columns
    return columns + _columns(
        systems,
        ("gain", "+.2f", "difference"),
        ("95%", _ends("+.2f"), "difference_interval"),
        ("better/equal/\nworse", str, "documents"),
        ("increase\nratio", ".1%", "documents.increase_ratio"),
        ("p", p_value, "p_value"),
    )


def _metric_columns(systems: Sequence[Mapping[str, MetricScore]]) -> _Columns:
    """Metrics of systems, and of several their gains over the first and the p-values."""
    columns: _Columns = []
    for name, first in systems[0].items():
        shown: list[tuple[str, Form, str]] = [(_title(name, first, "\n"), ".2f", "score")]
        if len(systems) > 1:
            shown.append(("gain", "+.2f", "difference"))
            shown.append((f"p\n({NAMES.get(name, name)})", p_value, "p_value"))
        columns += _columns([scores[name] for scores in systems], *shown)
    return columns


def _scores(systems: Sequence[System]) -> Table:
    """Means of other tools: a row for each metric and system."""
    columns = [
        *(Column("metric"), Column("system"), Column("mean", _OUTSIDE)),
        *(Column("95%", _ends(_OUTSIDE)), Column("difference", f"+{_OUTSIDE}")),
        *(Column("95%", _ends(f"+{_OUTSIDE}")), Column("p", p_value)),
    ]
    rows = []
    for name, first in systems[0].scores.items():
        for system in systems:
            score = system.scores[name]
            row: list[Any] = [_title(name, first), system.name, score.score, score.interval]
            if score.difference is not None:
                row += [score.difference, score.difference_interval, score.p_value]
            rows.append(row)
    return Table(columns, rows)


def _legend(result: Evaluation) -> Iterator[str]:
    """What is said below the tables."""
    n, sentences = len(result.documents), sum(d.sentences for d in result.documents)
    baseline = result.systems[0]
    yield f"BLEU: sacrebleu {baseline.signature}; {n:,} documents, {sentences:,} lines"
    for name, score in baseline.metrics.items():
        if name != "bleu":
            yield f"{NAMES.get(name, name)}: {_origin(score)}{_REMARKS.get(name, '')}"
    for name, score in baseline.detokenised.items():
        yield f"detokenised {NAMES.get(name, name)}: {_origin(score)}"
    for name, score in baseline.scores.items():
        # that of a program is of all systems; of files each system has its own
        shared = all(x.scores[name].signature == score.signature for x in result.systems)
        origin = f"{score.signature}; " * shared
        yield f"{name}: {origin}mean of all lines with values, on the tool's own scale"
    yield "length ratio: words of the system / words of the references"
    if (tuned := result.tuning_length_ratio) is not None:
        listed = ", ".join(f"{x.name} {x.length_ratio - tuned:+.3f}" for x in result.systems)
        yield f"length ratio in tuning: {tuned:.3f}; here {listed}"
    if n > 1:
        yield f"95%: bootstrap over documents, {RESAMPLES:,} resamples, seed {result.seed}"
    if len(result.systems) > 1:
        yield from _legend_of_gains(one_line(baseline.name), n)
    if result.objective is not None:
        yield f"optimised: in the objective of tuning, {result.objective}; not optimised: not in it"
    if result.changed:
        counts = "; ".join(f"{name} {count:,}" for name, count in result.changed.items())
        yield f"changed: {counts}\n{_CONTEXTS}"
    yield from result.verdicts


def _origin(score: MetricScore) -> str:
    """The signature of a metric; of sacrebleu's metrics the name of the tool before it."""
    return "sacrebleu " * (not score.signature.startswith("rerank|")) + score.signature


def _legend_of_gains(first: str, n_documents: int) -> Iterator[str]:
    yield (
        f"gain, better/equal/worse: compared with the first row, {first}; increase ratio: better / "
        "all"
    )
    if n_documents < FEWEST_DOCUMENTS:
        yield f"p: not computed for fewer than {FEWEST_DOCUMENTS} documents"
    else:
        exact = n_documents <= MOST_EXACT
        patterns = f"all {2**n_documents:,}" if exact else f"{DRAWS:,} random"
        yield (
            "p: of the gain in the score of the whole text, two-sided sign-flip test over "
            f"documents, {patterns} patterns; significant: p < {SIGNIFICANT:g}, whether or not the "
            "interval has 0 in it"
        )
    yield "sign test p: of the numbers of better and worse documents, however large each gain is"
