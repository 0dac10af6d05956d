"""Evaluation of systems against a baseline, over the corpus and per document.

BLEU is sacrebleu's corpus BLEU, of all lines and of the lines of each document. The increase ratio
is the share of documents whose BLEU is strictly better than the baseline's, as in Lin et al.
(2015), https://aclanthology.org/D15-1106. Confidence intervals and p-values resample whole
documents (`rerank.metrics.significance`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.metrics import Rows, TextMetric
from rerank.metrics.bleu import (
    Bleu,
    Statistics,
    corpus_bleu,
    length_ratio,
    without_brevity_penalty,
)
from rerank.metrics.oracle import Extremes
from rerank.report.metric_scores import Interval, MetricScore, PValues, compared, sums_of_documents
from rerank.report.word_classes import WordClassScore
from rerank.table import Table

NO_METRICS: Mapping[str, TextMetric] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of one file, one per sentence, and the file's name in messages."""

    name: str
    lines: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Detokenised:
    """References, [sentence][reference], and systems of an evaluation, detokenised."""

    references: Sequence[Sequence[bytes]]
    systems: Sequence[Text]


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


@dataclass(frozen=True, slots=True)
class System:
    """Results of one system; the comparison with the baseline is None for the baseline.

    metrics: of every metric by its name, BLEU first, which the fields beside it repeat.
    bleu_without_brevity_penalty: 0 to 100. oracle_share: of the gain that the oracle of a k-best
    list has over the baseline, None without a list. sign_test_p_value: as in p_values, those of
    BLEU. detokenised: metrics of the detokenised text, BLEU with
    the tokenizer 13a; empty if that was not asked for. scores: means of values from files, by the
    names of their metrics. word_classes: by name; empty if none was asked for.
    """

    name: str
    bleu: float
    length_ratio: float
    signature: str
    interval: Interval | None
    metrics: Mapping[str, MetricScore]
    bleu_without_brevity_penalty: float
    difference: float | None = None
    difference_interval: Interval | None = None
    documents: DocumentCounts = DocumentCounts()
    p_value: float | None = None
    sign_test_p_value: float | None = None
    p_values: PValues | None = None
    oracle_share: float | None = None
    detokenised: Mapping[str, MetricScore] = field(default_factory=dict)
    scores: Mapping[str, MetricScore] = field(default_factory=dict)
    word_classes: Mapping[str, WordClassScore] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocumentScores:
    """Results of one document: one number per system."""

    id: str
    sentences: int
    bleu: tuple[float, ...]
    length_ratio: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of `rerank evaluate`; `systems[0]` is the baseline.

    absent_word_classes: those that were asked for, but have no word in the references. objective:
    of the tuning that the roles of metrics are about, None without one.
    """

    systems: tuple[System, ...]
    documents: tuple[DocumentScores, ...]
    oracle: Score | None
    anti_oracle: Score | None
    seed: int
    absent_word_classes: tuple[str, ...] = ()
    objective: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The evaluation as JSON values, unrounded.

        The increase ratio and the p-value are given twice: for the system and for its documents.
        """
        report = {"schema": 1, **asdict(self)}
        for system, found in zip(self.systems, report["systems"], strict=True):
            found["increase_ratio"] = system.documents.increase_ratio
            found["documents"]["p_value"] = system.p_value
        return report

    def to_text(self, width: int | None = None, *, tests: bool = False) -> str:
        """The evaluation as tables, with a legend below them (`rerank.report.evaluation_tables`).

        Systems are columns where as rows they would take more than `width` characters. tests: with
        a table of the p-values of all tests.
        """
        from rerank.report.evaluation_tables import as_text

        return as_text(self, width, tests=tests)

    def table(self) -> Table:
        """A row for each system, numbers unrounded."""
        from rerank.report.evaluation_tables import numbers

        return Table.of([numbers(system) for system in self.systems])

    def to_latex(self) -> str:
        """A LaTeX table of the systems, for the package booktabs."""
        from rerank.report.evaluation_tables import as_table

        return as_table(self, "latex_booktabs")

    def to_markdown(self) -> str:
        """A Markdown table of the systems."""
        from rerank.report.evaluation_tables import as_table

        return as_table(self, "github")


def evaluate(
    documents: Documents,
    references: Sequence[Sequence[bytes]],
    systems: Sequence[Text],
    *,
    metric: Bleu,
    others: Mapping[str, TextMetric] = NO_METRICS,
    detokenised: Detokenised | None = None,
    extremes: Extremes | None = None,
    seed: int = 1,
) -> Evaluation:
    """Evaluation of `systems`, the baseline first, against `references`, [sentence][reference].

    others: more metrics by name. detokenised: the texts once more, to be scored by all metrics. All
    systems get the same random draws, so that a system's results do not depend on the others. Each
    text has a line for each of the documents' sentences. InputError without documents.
    """
    if not documents.n_lines:
        raise InputError("expected one or more documents, found none; nothing to evaluate")
    n_references = len(references[0])
    rows = _of_documents(metric, documents, references, systems)
    scores = {"bleu": compared(metric, rows, n_references, seed)}
    readable: dict[str, list[MetricScore]] = {}
    for name, other in others.items():
        found = _of_documents(other, documents, references, systems)
        scores[name] = compared(other, found, n_references, seed)
    if detokenised is not None:
        for name, other in {"bleu": Bleu("13a"), **others}.items():
            found = _of_documents(other, documents, detokenised.references, detokenised.systems)
            readable[name] = compared(other, found, n_references, seed)
    oracle = None if extremes is None else _score(extremes.best)
    return Evaluation(
        systems=_systems(systems, rows, scores, readable, oracle),
        documents=tuple(
            DocumentScores(
                name, n, tuple(corpus_bleu(own).tolist()), tuple(length_ratio(own).tolist())
            )
            for name, n, own in zip(
                documents.ids, np.diff(documents.starts).tolist(), rows, strict=True
            )
        ),
        oracle=oracle,
        anti_oracle=None if extremes is None else _score(extremes.worst),
        seed=seed,
    )


def _of_documents(
    metric: TextMetric,
    documents: Documents,
    references: Sequence[Sequence[bytes]],
    systems: Sequence[Text],
) -> Rows:
    """Statistics (D, systems, width) of documents, the sums of those of their sentences."""
    hypotheses = zip(*(text.lines for text in systems), strict=True)
    rows = metric.statistics(hypotheses, references).reshape(-1, len(systems), metric.width)
    return sums_of_documents(rows, documents)


def _score(rows: Statistics) -> Score:
    """Score of a corpus from its statistics (n, 9)."""
    summed = rows.sum(axis=0)
    return Score(float(corpus_bleu(summed)), float(length_ratio(summed)))


def _systems(
    texts: Sequence[Text],
    by_document: Statistics,
    scores: Mapping[str, Sequence[MetricScore]],
    readable: Mapping[str, Sequence[MetricScore]],
    oracle: Score | None,
) -> tuple[System, ...]:
    """Results of the systems of `by_document` (D, systems, 9).

    scores, readable: of all, by metric, of the texts as given and detokenised.
    """
    by_system, found = by_document.swapaxes(0, 1), []
    first = scores["bleu"][0].score
    for i, (text, rows) in enumerate(zip(texts, by_system, strict=True)):
        own = {name: of_systems[i] for name, of_systems in scores.items()}
        bleu, summed = own["bleu"], rows.sum(axis=0)
        system = System(
            *(text.name, bleu.score, float(length_ratio(summed)), bleu.signature, bleu.interval),
            metrics=own,
            detokenised={name: of_systems[i] for name, of_systems in readable.items()},
            bleu_without_brevity_penalty=float(corpus_bleu(without_brevity_penalty(summed))),
            difference=bleu.difference,
            difference_interval=bleu.difference_interval,
            p_value=bleu.p_value,
            p_values=bleu.p_values,
        )
        if i:
            counts = _counts(corpus_bleu(rows) - corpus_bleu(by_system[0]))
            gain = 0.0 if oracle is None else oracle.bleu - first
            system = replace(
                system,
                documents=counts,
                sign_test_p_value=bleu.p_values.sign_test if bleu.p_values else None,
                oracle_share=(bleu.score - first) / gain if gain > 0 else None,
            )
        found.append(system)
    return tuple(found)


def _counts(gains: NDArray[np.float64]) -> DocumentCounts:
    """Numbers of documents with positive, zero and negative gain, from gains (D,)."""
    better, worse = int((gains > 0).sum()), int((gains < 0).sum())
    return DocumentCounts(better, len(gains) - better - worse, worse, better / len(gains))
