"""Evaluation of texts by all that `MeasureOptions` ask for.

To the metrics of `rerank.report.evaluation` come the means of other tools' values for each line,
F1 of classes of words, and the role that every metric had in the tuning of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.casing import detruecased
from rerank.corpus.detokenisation import detokenised
from rerank.corpus.documents import Documents
from rerank.metrics import Rows, TextMetric
from rerank.metrics.bleu import Bleu
from rerank.metrics.line_scores import LineScores, read_line_scores
from rerank.metrics.oracle import Extremes
from rerank.notices import Notices
from rerank.report.evaluation import Detokenised, Evaluation, Text, evaluate
from rerank.report.measures import MeasureOptions
from rerank.report.metric_scores import MetricScore, compared, sums_of_documents
from rerank.report.word_classes import with_word_classes
from rerank.tuning.objective import metrics_of

OPTIMISED, HELD_OUT = "optimised", "held out"


def evaluate_texts(
    documents: Documents,
    targets: Sequence[Sequence[bytes]],
    texts: Sequence[Text],
    measures: MeasureOptions,
    notices: Notices,
    *,
    metric: Bleu,
    others: Mapping[str, TextMetric],
    score_files: Mapping[str, Sequence[str]],
    extremes: Extremes | None = None,
    seed: int = 1,
) -> Evaluation:
    """Scores of texts, the baseline first, against [sentence][reference].

    metric, others: `MeasureOptions.bleu` and `MeasureOptions.other_metrics`; score_files: those of
    `MeasureOptions.score_files`; extremes: of a k-best list.
    """
    classes = measures.read_classes(notices)
    objectives = measures.read_objectives(notices)
    scores = _read_scores(score_files, texts, documents, notices)
    found = evaluate(
        documents,
        targets,
        texts,
        metric=metric,
        others=others,
        detokenised=_readable(targets, texts, measures) if measures.detokenize else None,
        extremes=extremes,
        seed=seed,
    )
    found = with_scores(found, documents, scores)
    found = with_word_classes(found, documents, targets, texts, classes=classes, split=metric.split)
    if not objectives:
        return found
    names = {"bleu": metric.name, **{key: other.name for key, other in others.items()}}
    names |= {name: name for name in scores}
    tuned = {name for objective in objectives for name in metrics_of(objective)}
    optimised = [key for key, name in names.items() if name in tuned]
    return with_roles(found, " and ".join(objectives), optimised)


def with_scores(
    found: Evaluation, documents: Documents, scores: Mapping[str, Sequence[LineScores]]
) -> Evaluation:
    """The evaluation with the means of values of each system, by the name of their metric.

    A mean is that of all lines, so that a document counts as much as it has lines. Intervals and
    p-values see the same draws of documents as those of the other metrics.
    """
    systems = list(found.systems)
    for name, of_systems in scores.items():
        values = np.stack([one.values for one in of_systems], axis=1)
        rows = sums_of_documents(np.stack([values, np.ones_like(values)], axis=-1), documents)
        means = compared(_MeanOfLines(), rows, 0, found.seed)
        for i, (mean, read) in enumerate(zip(means, of_systems, strict=True)):
            own = replace(mean, signature=read.signature)
            systems[i] = replace(systems[i], scores={**systems[i].scores, name: own})
    return replace(found, systems=tuple(systems))


class _MeanOfLines:
    """The mean over lines, of statistics [sum of values, number of lines]."""

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Means (…) of summed statistics (…, 2), of one line or more."""
        return np.asarray(summed[..., 0] / summed[..., 1])

    def shown(self, score: float) -> float:
        """The mean as it is."""
        return score

    def signature(self, n_references: int) -> str:
        """Empty: each system has a file, and so a signature, of its own."""
        return ""


def with_roles(found: Evaluation, objective: str, optimised: Collection[str]) -> Evaluation:
    """The evaluation with the role of every metric in tuning.

    objective: its name, for people; optimised: names in this evaluation of the metrics in it. The
    metrics of detokenised texts have the roles of those of the texts as they are.
    """

    def named(scores: Mapping[str, MetricScore]) -> dict[str, MetricScore]:
        return {
            name: replace(score, role=OPTIMISED if name in optimised else HELD_OUT)
            for name, score in scores.items()
        }

    systems = [
        replace(
            system,
            metrics=named(system.metrics),
            detokenised=named(system.detokenised),
            scores=named(system.scores),
            word_classes={
                name: replace(score, f1=replace(score.f1, role=HELD_OUT))
                for name, score in system.word_classes.items()
            },
        )
        for system in found.systems
    ]
    return replace(found, systems=tuple(systems), objective=objective)


def _read_scores(
    files: Mapping[str, Sequence[str]],
    texts: Sequence[Text],
    documents: Documents,
    notices: Notices,
) -> dict[str, list[LineScores]]:
    """Values of the lines of each system, by name of the metric; a file is read once."""
    found: dict[str, list[LineScores]] = {}
    for name, paths in files.items():
        named = dict(zip(paths, texts, strict=True))
        read = {
            path: _in_order(
                read_line_scores(path, name, documents.n_read, notices, text=text.name), documents
            )
            for path, text in named.items()
        }
        found[name] = [read[path] for path in paths]
    return found


def _in_order(scores: LineScores, documents: Documents) -> LineScores:
    """The values of the sentences of documents, from those of the lines of a file."""
    if documents.lines is None:
        return scores
    return LineScores(scores.values[list(documents.lines)], scores.signature)


def _readable(
    targets: Sequence[Sequence[bytes]], texts: Sequence[Text], measures: MeasureOptions
) -> Detokenised:
    """References and systems, detokenised."""

    def change(lines: Sequence[bytes]) -> list[bytes]:
        ordered = detruecased(lines) if measures.detruecase else lines
        return detokenised(ordered, str(measures.detokenize))

    return Detokenised(
        in_columns(targets, change), [Text(text.name, change(text.lines)) for text in texts]
    )


def in_columns(
    targets: Sequence[Sequence[bytes]], change: Callable[[Sequence[bytes]], list[bytes]]
) -> list[list[bytes]]:
    """References of each sentence, changed one whole reference after the other."""
    return [list(row) for row in zip(*map(change, zip(*targets, strict=True)), strict=True)]
