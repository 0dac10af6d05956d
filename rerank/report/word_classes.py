"""Classes of words in an evaluation: precision, recall and F1 of each system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rerank.corpus.documents import Documents
from rerank.metrics.word_classes import WordClass, WordF1, class_statistics
from rerank.report.metric_scores import MetricScore, compared, sums_of_documents

if TYPE_CHECKING:
    from rerank.report.evaluation import Evaluation, Text


@dataclass(frozen=True, slots=True)
class WordClassScore:
    """Precision, recall and F1 (0 to 100) of the words of a class, and their numbers.

    words: in the output; reference_words: in the references that count. precision: None without
    words in the output.
    """

    precision: float | None
    recall: float | None
    words: int
    reference_words: int
    f1: MetricScore


def with_word_classes(
    found: Evaluation,
    documents: Documents,
    references: Sequence[Sequence[bytes]],
    systems: Sequence[Text],
    *,
    classes: Sequence[WordClass],
    split: Callable[[bytes], list[str]],
) -> Evaluation:
    """The evaluation with the scores of classes of words of each system.

    split: words of a line. A class without a word in the references is left out, by name in
    `absent_word_classes`. Intervals and p-values are of F1, as those of the other metrics.
    """
    if not classes:
        return found
    hypotheses = zip(*(text.lines for text in systems), strict=True)
    rows = class_statistics(classes, hypotheses, references, split)
    rows = sums_of_documents(rows.reshape(-1, len(systems), len(classes), 3), documents)
    results, absent = list(found.systems), list[str]()
    for c, one in enumerate(classes):
        own = rows[:, :, c]
        totals = own.sum(axis=0).tolist()
        if not any(reference_words for _, _, reference_words in totals):
            absent.append(one.name)
            continue
        scores = compared(WordF1(one.name), own, len(references[0]), found.seed)
        for i, ((matches, words, expected), f1) in enumerate(zip(totals, scores, strict=True)):
            score = WordClassScore(
                _percent(matches, words), _percent(matches, expected), words, expected, f1
            )
            classes_so_far = results[i].word_classes
            results[i] = replace(results[i], word_classes={**classes_so_far, one.name: score})
    return replace(found, systems=tuple(results), absent_word_classes=tuple(absent))


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
