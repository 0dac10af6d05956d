"""Evaluation of systems against a baseline, over the corpus and per document.

BLEU is sacrebleu's corpus BLEU, of all lines and of the lines of each document. The increase ratio
is the share of documents whose BLEU is strictly better than the baseline's, as in Lin et al.
(2015), https://aclanthology.org/D15-1106. Confidence intervals and p-values resample whole
documents (`rerank.metrics.significance`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rerank.corpus.documents import Documents
from rerank.errors import InputError
from rerank.metrics import CorpusScore, MeanScore, Rows, TextMetric
from rerank.metrics.bleu import (
    Bleu,
    Extremes,
    Statistics,
    corpus_bleu,
    length_ratio,
    without_brevity_penalty,
)
from rerank.metrics.line_scores import LineScores
from rerank.metrics.significance import (
    FEWEST_DOCUMENTS,
    bootstrap,
    bootstrap_p_value,
    percentile_interval,
    sign_flip_p_value,
    sign_test_p_value,
)
from rerank.metrics.word_classes import WordClass, WordF1, class_statistics
from rerank.report.evaluation import (
    DocumentCounts,
    DocumentScores,
    Evaluation,
    MetricScore,
    PValues,
    Score,
    System,
    WordClassScore,
)
from rerank.tuning.objective import metrics_of

OPTIMISED, HELD_OUT = "optimised", "held out"


@dataclass(frozen=True, slots=True)
class SystemText:
    """Lines of one system, one per sentence, and its name in messages."""

    name: str
    lines: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class EvaluatedTexts:
    """References, [sentence][reference], and the texts of systems, the baseline first."""

    references: Sequence[Sequence[bytes]]
    systems: Sequence[SystemText]

    def changed(self, change: Callable[[Sequence[bytes]], list[bytes]]) -> EvaluatedTexts:
        """The texts, changed one whole reference or system after the other."""
        columns = zip(*map(change, zip(*self.references, strict=True)), strict=True)
        systems = [SystemText(text.name, change(text.lines)) for text in self.systems]
        return EvaluatedTexts([list(row) for row in columns], systems)


def evaluate(
    documents: Documents,
    texts: EvaluatedTexts,
    *,
    metric: Bleu,
    others: Mapping[str, TextMetric],
    detokenised: EvaluatedTexts | None = None,
    line_scores: Mapping[str, Sequence[LineScores]] | None = None,
    word_classes: Sequence[WordClass] = (),
    objectives: Sequence[str] = (),
    extremes: Extremes | None = None,
    seed: int = 1,
) -> Evaluation:
    """Evaluation of systems, each with a line for each of the documents' sentences.

    others: more metrics by name. detokenised: the texts once more, to be scored by all metrics.
    line_scores: values of another tool for the lines of each system, by name of its metric; their
    mean is that of all lines, so that a document counts as much as it has lines. word_classes:
    those without a word in the references are left out, by name in `absent_word_classes`.
    objectives: of the tuning of the weights; the metrics in them are optimised, others held out.
    All systems and metrics see the same draws of documents, so that a system's results do not
    depend on the others. InputError without documents.
    """
    if not documents.n_sentences:
        raise InputError("expected one or more documents, found none; nothing to evaluate")
    metrics, files = {"bleu": metric, **others}, line_scores or {}
    names = {key: own.name for key, own in metrics.items()} | {name: name for name in files}
    tuned = {name for objective in objectives for name in metrics_of(objective)}
    roles = {key: OPTIMISED if name in tuned else HELD_OUT for key, name in names.items()}
    roles, n_references = roles if objectives else {}, len(texts.references[0])
    rows = {name: _of_documents(own, documents, texts) for name, own in metrics.items()}
    scores = {
        name: compared(own, rows[name], n_references, seed, roles.get(name))
        for name, own in metrics.items()
    }
    readable = {}
    if detokenised is not None:
        for name, own in {"bleu": Bleu("13a"), **others}.items():
            found = _of_documents(own, documents, detokenised)
            readable[name] = compared(own, found, n_references, seed, roles.get(name))
    means = {
        name: _means(of_systems, documents, seed, roles.get(name))
        for name, of_systems in files.items()
    }
    role = HELD_OUT if objectives else None
    words = _of_words(word_classes, metric, documents, texts, seed=seed, role=role)
    present = {name: of_systems for name, of_systems in words.items() if of_systems}
    oracle, anti_oracle = None, None
    if extremes is not None:
        oracle, anti_oracle = map(_score, extremes)
    kinds: dict[str, Mapping[str, Sequence[Any]]]
    kinds = {"metrics": scores, "detokenised": readable, "scores": means, "word_classes": present}
    systems = []
    for i, text in enumerate(texts.systems):
        of_system = {
            kind: {name: of_systems[i] for name, of_systems in by_name.items()}
            for kind, by_name in kinds.items()
        }
        systems.append(_system(text.name, rows["bleu"][:, [0, i]], oracle, of_system))
    return Evaluation(
        tuple(systems),
        _documents(documents, rows["bleu"]),
        oracle,
        anti_oracle,
        seed,
        tuple(name for name, of_systems in words.items() if not of_systems),
        " and ".join(objectives) if objectives else None,
    )


def _system(name: str, rows: Statistics, oracle: Score | None, scores: Mapping[str, Any]) -> System:
    """Results of a system; rows: (D, 2, 9) of the baseline and of itself, by document.

    scores: of the fields of `System` that hold scores by name. Its other fields repeat those of
    BLEU among the metrics.
    """
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


def _documents(documents: Documents, rows: Statistics) -> tuple[DocumentScores, ...]:
    """Results of documents from statistics (D, systems, 9)."""
    sizes = np.diff(documents.starts).tolist()
    columns = documents.ids, sizes, corpus_bleu(rows).tolist(), length_ratio(rows).tolist()
    return tuple(
        DocumentScores(name, n, tuple(bleu), tuple(ratio))
        for name, n, bleu, ratio in zip(*columns, strict=True)
    )


def _score(rows: Statistics) -> Score:
    """Score of a corpus from its statistics (n, 9)."""
    summed = rows.sum(axis=0)
    return Score(float(corpus_bleu(summed)), float(length_ratio(summed)))


def _of_documents(metric: TextMetric, documents: Documents, texts: EvaluatedTexts) -> Rows:
    """Statistics (D, systems, width) of documents, the sums of those of their sentences."""
    hypotheses = zip(*(own.lines for own in texts.systems), strict=True)
    rows = metric.statistics(hypotheses, texts.references)
    return _sums(rows.reshape(-1, len(texts.systems), metric.width), documents)


def _sums(rows: Rows, documents: Documents) -> Rows:
    """Statistics (D, …) of documents, the sums of those of their sentences (T, …)."""
    running = np.zeros((len(rows) + 1, *rows.shape[1:]), dtype=rows.dtype)
    rows.cumsum(axis=0, out=running[1:])
    return np.diff(running[list(documents.starts)], axis=0)


class _MeanOfLines(MeanScore):
    """The mean of values of lines, of which each system has a file, and so a signature."""

    name = "mean"


def _means(
    of_systems: Sequence[LineScores], documents: Documents, seed: int, role: str | None
) -> list[MetricScore]:
    """Means of the values of each system, each with the signature of its file."""
    values = np.stack([one.values for one in of_systems], axis=1)
    rows = _sums(np.stack([values, np.ones_like(values)], axis=-1), documents)
    means = compared(_MeanOfLines(), rows, 0, seed, role)
    return [
        replace(mean, signature=one.signature) for mean, one in zip(means, of_systems, strict=True)
    ]


def _of_words(
    classes: Sequence[WordClass],
    metric: Bleu,
    documents: Documents,
    texts: EvaluatedTexts,
    *,
    seed: int,
    role: str | None,
) -> dict[str, list[WordClassScore]]:
    """Scores of the systems by class; none for a class without a word in the references."""
    if not classes:
        return {}
    hypotheses = zip(*(own.lines for own in texts.systems), strict=True)
    rows = class_statistics(classes, hypotheses, texts.references, metric.split)
    rows = _sums(rows.reshape(-1, len(texts.systems), len(classes), 3), documents)
    found: dict[str, list[WordClassScore]] = {}
    for c, one in enumerate(classes):
        found[one.name] = []
        totals = rows[:, :, c].sum(axis=0).tolist()
        if any(expected for _, _, expected in totals):
            f1 = compared(WordF1(one.name), rows[:, :, c], len(texts.references[0]), seed, role)
            found[one.name] = [
                WordClassScore(
                    100 * matches / words if words else None,
                    100 * matches / expected if expected else None,
                    *(words, expected, score),
                )
                for (matches, words, expected), score in zip(totals, f1, strict=True)
            ]
    return found


def compared(
    metric: CorpusScore, rows: Rows, n_references: int, seed: int, role: str | None
) -> list[MetricScore]:
    """Scores of the systems of rows (D, systems, width), each but the first against the first."""
    by_system, several = rows.swapaxes(0, 1), len(rows) > 1
    resampled = bootstrap(by_system, metric.scores, rng=np.random.default_rng(seed))
    draws = [np.array([*map(metric.shown, scores)]) for scores in resampled.tolist()]
    found: list[MetricScore] = []
    for own, drawn in zip(by_system, draws, strict=True):
        score = MetricScore(
            metric.shown(float(metric.scores(own.sum(axis=0)))),
            metric.signature(n_references),
            percentile_interval(drawn) if several else None,
            role=role,
        )
        if found:
            first, rng = by_system[0], np.random.default_rng(seed)
            flip, resampling = sign_flip_p_value(own, first, metric.scores, rng=rng), None
            if len(rows) >= FEWEST_DOCUMENTS:
                resampling = bootstrap_p_value(score.score, found[0].score, drawn, draws[0])
            gains = metric.scores(own) - metric.scores(first)
            signs = sign_test_p_value(int((gains > 0).sum()), int((gains < 0).sum()))
            score = replace(
                score,
                difference=score.score - found[0].score,
                difference_interval=percentile_interval(drawn - draws[0]) if several else None,
                p_value=flip,
                p_values=PValues(flip, resampling, signs),
            )
        found.append(score)
    return found
