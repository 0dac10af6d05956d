"""Evaluation of systems against a baseline, over the corpus and per document.

BLEU is sacrebleu's corpus BLEU, of all lines and of the lines of each document. The increase ratio
is the share of documents whose BLEU is strictly better than the baseline's, as in Lin et al.
(2015), https://aclanthology.org/D15-1106. Confidence intervals and p-values resample whole
documents (`rerank.metrics.significance`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.documents import Documents
from rerank.corpus.preparation import note_differences
from rerank.errors import InputError, UsageError
from rerank.files.paths import display
from rerank.formats.weight_files import read_weights
from rerank.metrics import CorpusScore, DocumentMetric, MeanScore, Rows, TextMetric
from rerank.metrics.bleu import (
    Bleu,
    Extremes,
    Statistics,
    corpus_bleu,
    length_ratio,
    without_brevity_penalty,
)
from rerank.metrics.discourse import EnglishF1, Terms
from rerank.metrics.significance import (
    FEWEST_DOCUMENTS,
    Gain,
    bootstrap,
    bootstrap_p_value,
    percentile_interval,
    sign_flip_p_value,
    sign_test,
    verdict,
)
from rerank.notices import Notices, Printer
from rerank.report.evaluation import (
    IN_WORDS,
    DocumentCounts,
    DocumentScores,
    Evaluation,
    MetricScore,
    PValues,
    Score,
    System,
)
from rerank.scorers.numbers import read_line_scores
from rerank.scorers.programs import ProgramMetric
from rerank.tuning.objective import metrics_of

NOT_TUNED: Mapping[str, object] = MappingProxyType({})
OPTIMISED, NOT_OPTIMISED = "optimised", "not optimised"
FAR = 0.05  # difference of length ratios: halves of a corpus differ by less, domains by more


@dataclass(frozen=True, slots=True)
class SystemText:
    """Lines of a system, a line per sentence, and its name in messages."""

    name: str
    lines: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class EvaluatedTexts:
    """References, [sentence][reference], the texts of systems, the baseline first, and sources."""

    references: Sequence[Sequence[bytes]]
    systems: Sequence[SystemText]
    sources: Sequence[bytes] | None = None

    @property
    def hypotheses(self) -> list[tuple[bytes, ...]]:
        """Those of each sentence, [sentence][system]."""
        return [*zip(*(text.lines for text in self.systems), strict=True)]

    def note_differences(self, notices: Notices, tokenize: str) -> None:
        """Warnings of systems that are not spelled or tokenised as the references are."""
        references = [line for sentence in self.references for line in sentence]
        outputs = {text.name: text.lines for text in self.systems}
        note_differences(outputs, references, notices, tokenize=tokenize)

    def changed(self, change: Callable[[Sequence[bytes]], list[bytes]]) -> EvaluatedTexts:
        """The texts, each whole reference and system changed."""
        columns = zip(*map(change, zip(*self.references, strict=True)), strict=True)
        systems = [SystemText(text.name, change(text.lines)) for text in self.systems]
        return EvaluatedTexts([list(row) for row in columns], systems, self.sources)


def announce_programs(metrics: Mapping[str, CorpusScore], announce: Printer) -> None:
    """Announce what programs among the metrics have answered."""
    for metric in metrics.values():
        if isinstance(metric, ProgramMetric):
            announce(f"{metric.estimator.option}: {metric.estimator.report()}")


def values_of(
    texts: EvaluatedTexts, metric: TextMetric | ProgramMetric, documents: Documents
) -> list[float]:
    """The value of each system by a metric, of which more is better."""
    rows = _rows(metric, documents, texts)
    return [float(value) for value in metric.scores(rows.sum(axis=0))]


def leads(documents: Documents, texts: EvaluatedTexts, bleu: Bleu, seed: int) -> list[MetricScore]:
    """BLEU of the second system against each of those behind it."""
    rows, n_references = _rows(bleu, documents, texts), len(texts.references[0])
    return [
        compared(bleu, rows[:, [i, 1]], n_references, seed, None)[1]
        for i in range(2, len(texts.systems))
    ]


def evaluate(
    documents: Documents,
    texts: EvaluatedTexts,
    notices: Notices,
    *,
    metrics: tuple[Bleu, Mapping[str, TextMetric | ProgramMetric]],
    score_files: Mapping[str, Sequence[str]] | None = None,
    extremes: Extremes | None = None,
    plain: EvaluatedTexts | None = None,
    tuning: Mapping[str, object] = NOT_TUNED,
    seed: int = 1,
) -> Evaluation:
    """Evaluation of systems, each with a line for each of the documents' sentences.

    metrics: as `MeasureOptions` loads them; score_files: by metric, those of each system, each of
    which is read once: the mean of their values is that of all lines, so that a document counts as
    much as it has lines; extremes: of a k-best list; plain: the texts detokenised; tuning: what
    weights say of theirs: metrics in its objective are optimised, others not. All systems and
    metrics see the same draws of documents, so that a system's results do not depend on the others.
    InputError without documents.
    """
    objective = str(tuning["objective"]) if tuning else None
    line_scores = {
        name: _scores_of_files(name, paths, documents, texts, notices)
        for name, paths in (score_files or {}).items()
    }
    if not documents.n_sentences:
        raise InputError("expected one or more documents, found none; nothing to evaluate")
    tuned = metrics_of(objective) if objective else ()

    def compare(name: str, metric: CorpusScore, rows: Rows) -> list[MetricScore]:
        role = OPTIMISED if name in tuned else NOT_OPTIMISED if objective else None
        return compared(metric, rows, len(texts.references[0]), seed, role)

    def scored(metric: TextMetric | ProgramMetric, texts: EvaluatedTexts) -> list[MetricScore]:
        return compare(metric.name, metric, _rows(metric, documents, texts))

    programs = {k: m for k, m in metrics[1].items() if isinstance(m, ProgramMetric)}
    named: dict[str, TextMetric] = {"bleu": metrics[0]}
    named |= {k: m for k, m in metrics[1].items() if not isinstance(m, ProgramMetric)}
    rows = {name: _rows(metric, documents, texts) for name, metric in named.items()}
    named = _applicable(named, rows, notices)
    scores = {name: compare(metric.name, metric, rows[name]) for name, metric in named.items()}
    means = {name: scored(metric, texts) for name, metric in programs.items()}
    published = {k: type(m)("13a") if isinstance(m, Bleu) else m for k, m in named.items()}
    readable = {} if plain is None else {k: scored(m, plain) for k, m in published.items()}
    for name, files in line_scores.items():
        sums = _sums_of_lines([values for values, _ in files], documents)
        pairs = zip(compare(name, _MeanOfLines(), sums), files, strict=True)
        means[name] = [replace(mean, signature=origin) for mean, (_, origin) in pairs]
    summed = [rows.sum(axis=0) for rows in extremes or ()]
    best = [Score(float(corpus_bleu(row)), float(length_ratio(row))) for row in summed]
    oracle, anti_oracle = best or (None, None)
    kinds = {"metrics": scores, "detokenised": readable, "scores": means}
    names = [text.name for text in texts.systems]
    systems = _systems(names, rows["bleu"], oracle, kinds, named)
    ratio = tuning.get("length_ratio")
    ratio = ratio if isinstance(ratio, float) else None
    for system in systems[len(systems) > 1 :]:
        if ratio is not None and abs(system.length_ratio - ratio) > FAR:
            here, tuned_to = f"{system.length_ratio:.3f}", f"{ratio:.3f}"
            notices.add("length-ratio", source=system.name, ratio=here, tuned=tuned_to)
    by_document = _documents(documents, rows["bleu"])
    return Evaluation(tuple(systems), by_document, oracle, anti_oracle, seed, objective, ratio)


def _applicable(
    metrics: Mapping[str, TextMetric], rows: Mapping[str, Rows], notices: Notices
) -> dict[str, TextMetric]:
    """The metrics that find something to count in the texts; rows: their statistics."""
    applicable: dict[str, TextMetric] = {}
    for name, metric in metrics.items():
        if isinstance(metric, EnglishF1):
            metric.check_language()
        if isinstance(metric, EnglishF1 | Terms) and not rows[name][..., -1].any():
            notices.add("metric-left-out", name=name)
        else:
            applicable[name] = metric
    return applicable


def _systems(
    names: Sequence[str],
    rows: Statistics,
    oracle: Score | None,
    kinds: Mapping[str, Mapping[str, Sequence[MetricScore]]],
    metrics: Mapping[str, CorpusScore],
) -> list[System]:
    """Results of the systems, each but the first with a verdict.

    rows: (D, systems, 9) of BLEU; kinds: scores of all systems, by field of `System` and by name.
    """
    systems: list[System] = []
    for i, system_name in enumerate(names):
        scores = {
            kind: {name: of_systems[i] for name, of_systems in by_name.items()}
            for kind, by_name in kinds.items()
        }
        system = _system(system_name, rows[:, [0, i]], oracle, scores)
        if systems:
            longer = system.length_ratio - systems[0].length_ratio
            system = replace(system, verdict=_verdict(system.all_scores, metrics, longer))
        systems.append(system)
    return systems


def _system(name: str, rows: Statistics, oracle: Score | None, scores: Mapping[str, Any]) -> System:
    """Results of a system; rows: (D, 2, 9) of the baseline and of itself; scores: by field."""
    bleu, summed = scores["metrics"]["bleu"], rows.sum(axis=0)
    share, counts = None, DocumentCounts()
    if bleu.difference is not None:
        gain = 0.0 if oracle is None else oracle.bleu - float(corpus_bleu(summed[0]))
        share = bleu.difference / gain if gain > 0 else None
        gains = corpus_bleu(rows[:, 1]) - corpus_bleu(rows[:, 0])
        better, worse = int((gains > 0).sum()), int((gains < 0).sum())
        equal = len(gains) - better - worse
        counts = DocumentCounts(better, equal, worse, better / len(gains))
    repeated = ("signature", "interval", "difference", "difference_interval", "p_value", "p_values")
    return System(
        name,
        bleu.score,
        float(length_ratio(summed[1])),
        **{field: getattr(bleu, field) for field in repeated},
        bleu_without_brevity_penalty=float(corpus_bleu(without_brevity_penalty(summed[1]))),
        documents=counts,
        sign_test_p_value=None if bleu.p_values is None else bleu.p_values.sign_test,
        oracle_share=share,
        **scores,
    )


def _verdict(
    scores: Mapping[str, MetricScore], named: Mapping[str, CorpusScore], longer: float
) -> str:
    """The comparison of a system in words, decided by the optimised metrics, or else BLEU."""

    def gain(name: str) -> Gain:
        """The gain of a score that is published as the metric does."""
        score, difference = scores[name], scores[name].difference or 0.0
        shown = named[name].shown(difference) if name in named else difference
        return Gain(IN_WORDS.get(name, name), shown, score.p_value)

    judges = [name for name, metric in named.items() if not isinstance(metric, EnglishF1 | Terms)]
    main = [name for name in judges if scores[name].role == OPTIMISED] or ["bleu"]
    others = [name for name in judges if name not in main]
    outside = [name for name in scores if name not in judges]
    return verdict([*map(gain, main)], [*map(gain, others)], longer, [*map(gain, outside)])


def _documents(documents: Documents, rows: Statistics) -> tuple[DocumentScores, ...]:
    """Results of documents from statistics (D, systems, 9)."""
    sizes = np.diff(documents.starts).tolist()
    columns = documents.ids, sizes, corpus_bleu(rows).tolist(), length_ratio(rows).tolist()
    return tuple(
        DocumentScores(name, n, tuple(bleu), tuple(ratio))
        for name, n, bleu, ratio in zip(*columns, strict=True)
    )


def _rows(metric: TextMetric | ProgramMetric, documents: Documents, texts: EvaluatedTexts) -> Rows:
    """Statistics (D, systems, width) of documents; a `DocumentMetric` counts each as one text."""
    if isinstance(metric, ProgramMetric):
        return metric.of_texts(documents, texts.hypotheses, texts.references, texts.sources)
    if isinstance(metric, DocumentMetric):
        if metric.with_source:
            if texts.sources is None:
                raise UsageError(f"--metric {metric.name}: it needs the source; give --source FILE")
            pairs = zip(texts.sources, texts.references, strict=True)
            texts = replace(texts, references=[[source, *lines] for source, lines in pairs])
        texts = texts.changed(lambda lines: [*map(metric.between.join, documents.split(lines))])
        documents = Documents(documents.ids, tuple(range(len(documents) + 1)))
    rows = metric.statistics(texts.hypotheses, texts.references)
    return _sums(rows.reshape(-1, len(texts.systems), metric.width), documents)


def _sums_of_lines(values: Sequence[NDArray[np.float64]], documents: Documents) -> Rows:
    """Statistics (D, systems, 2) of the sentences for which all systems have values (T,)."""
    rows = np.stack(values, axis=1)
    judged = ~np.isnan(rows).any(axis=1, keepdims=True)
    rows = np.where(judged, rows, 0)
    sums = _sums(np.stack([rows, rows * 0 + judged], axis=-1), documents)
    # documents without values are no samples of their tests
    return sums if judged.all() else sums[sums[:, 0, 1] > 0]


def _sums(rows: Rows, documents: Documents) -> Rows:
    """Statistics (D, …) of documents, the sums of those of their sentences (T, …)."""
    running = np.zeros((len(rows) + 1, *rows.shape[1:]), dtype=rows.dtype)
    rows.cumsum(axis=0, out=running[1:])
    return np.diff(running[list(documents.starts)], axis=0)


class _MeanOfLines(MeanScore):
    """The mean of values of lines, of which each system has a file, and so a signature."""

    name = "mean"


def compared(
    metric: CorpusScore, rows: Rows, n_references: int, seed: int, role: str | None
) -> list[MetricScore]:
    """Scores of the systems of rows (D, systems, width), each but the first against the first."""
    by_system, has_interval = rows.swapaxes(0, 1), len(rows) > 1
    resampled = bootstrap(by_system, metric.scores, rng=np.random.default_rng(seed))
    draws = [np.array([*map(metric.shown, scores)]) for scores in resampled.tolist()]
    results: list[MetricScore] = []
    for system, drawn in zip(by_system, draws, strict=True):
        score = MetricScore(
            metric.shown(float(metric.scores(system.sum(axis=0)))),
            metric.signature(n_references),
            percentile_interval(drawn) if has_interval else None,
            role=role,
        )
        if results:
            first, rng = by_system[0], np.random.default_rng(seed)
            baseline, resampling = results[0].score, None
            flip = sign_flip_p_value(system, first, metric.scores, rng=rng)
            if len(rows) >= FEWEST_DOCUMENTS:
                resampling = bootstrap_p_value(score.score, baseline, drawn, draws[0])
            gains = metric.scores(system) - metric.scores(first)
            signs = sign_test(int((gains > 0).sum()), int((gains < 0).sum()))
            score = replace(
                score,
                difference=score.score - baseline,
                difference_interval=percentile_interval(drawn - draws[0]) if has_interval else None,
                p_value=flip,
                p_values=PValues(flip, resampling, signs),
            )
        results.append(score)
    return results


# What the measures need


def _scores_of_files(
    name: str, paths: Sequence[str], documents: Documents, texts: EvaluatedTexts, notices: Notices
) -> list[tuple[NDArray[np.float64], str]]:
    """Values (T,) of a metric that another tool has written, of each system, and signatures."""
    named = dict(zip(paths, (text.name for text in texts.systems), strict=True))
    read = {
        path: read_line_scores(path, name, documents, notices, text=named[path]) for path in named
    }
    return [read[path] for path in paths]


def tuning_of(weights: str | None, notices: Notices) -> Mapping[str, object]:
    """Provenance of weights, empty without them; InputError where it names no objective."""
    if weights is None:
        return {}
    made = read_weights(weights, notices).provenance
    objective = made.get("objective")
    if not isinstance(objective, str) or not metrics_of(objective):
        raise InputError(
            "expected weights whose provenance names the objective of tuning, found none; give "
            "the .json file that tune-mert or another tuning command of rerank wrote",
            source=display(weights),
        )
    return made
