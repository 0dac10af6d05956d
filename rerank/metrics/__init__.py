"""Metrics that tuning can follow: statistics of candidates, which add up, and the score of a sum.

A metric is one file, one line in `rerank.registry.METRICS` (or an entry point of the group
`rerank.metrics` in another package) and one test. Both name a class that is called without
arguments and makes a `TextMetric`. Where a metric scores one hypothesis at a time, its author
derives from `SentenceMetric` and writes a name and one method:

    class WordAccuracy(SentenceMetric):
        name = "accuracy"

        def score(self, hypothesis: str, references: Sequence[str]) -> float:
            return max(len({*hypothesis.split()} & {*r.split()}) for r in references)

A corpus metric derives from `TextMetric` and writes `statistics` and `scores`. Scores of a tool
that cannot be called from Python are read from a file: `rerank.runs.tuning_set`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.errors import RerankError
from rerank.files.signature import signature
from rerank.metrics.ngrams import Texts
from rerank.registry import METRICS

Rows: TypeAlias = NDArray[Any]
"""Rows of statistics, shape (…, width): int64 where they are counts, else float64."""


class Counted(NamedTuple):
    """Statistics of a document: (n, width) of candidates, (width,) of sentences without any."""

    rows: Rows
    gaps: Rows


class CorpusScore(ABC):
    """A score that is a function of a sum of statistics; larger is better. name: in reports."""

    name: str

    @abstractmethod
    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Scores (…) of summed statistics (…, width); of an error rate the negative."""

    def shown(self, score: float) -> float:
        """The score as it is published: an error rate is positive here, others are unchanged."""
        return score

    def signature(self, n_references: int) -> str:
        """One line with all that decides on the score: `rerank|metric:accuracy|nrefs:1|v:0.2.0`."""
        return signature({"metric": self.name, "nrefs": n_references})


class MeanScore(CorpusScore):
    """The mean of scores, of statistics [score, 1]."""

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Means (…) of summed statistics (…, 2); 0 where nothing was summed."""
        return np.asarray(summed[..., 0] / np.maximum(summed[..., 1], 1))


class Metric(CorpusScore):
    """A corpus score of candidates of k-best lists. width: number of statistics of a candidate."""

    width: int

    @abstractmethod
    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates; `references` has those of each sentence (T)."""


class TextMetric(Metric):
    """A metric that needs only hypotheses and references."""

    @abstractmethod
    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> Rows:
        """Statistics of the hypotheses of T sentences, (n, width), lists one after another.

        Both hold a group of lines of UTF-8 for each sentence; of references at least one line.
        """

    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates, whose texts are not copied."""
        return counted(kbest.counts, self.statistics(Texts.of_lists(kbest), references))


class DocumentMetric(TextMetric):
    """A metric of whole documents: sentences joined by `between`; the source may come first."""

    between = b" "
    with_source = False


class SentenceMetric(MeanScore, TextMetric):
    """A metric with a score for each hypothesis; the corpus score is the mean over sentences.

    A sentence without candidates is scored as an empty hypothesis.
    """

    width = 2

    @abstractmethod
    def score(self, hypothesis: str, references: Sequence[str]) -> float:
        """Score of a hypothesis, finite; larger is better."""

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> NDArray[np.float64]:
        """Statistics (n, 2); equal hypotheses of a sentence are scored once."""
        rows: list[tuple[float, float]] = []
        for group, lines in zip(hypotheses, references, strict=True):
            texts = [line.decode() for line in lines]
            rows += map(cache(partial(self._row, texts)), group)
        return np.array(rows, np.float64).reshape(-1, self.width)

    def _row(self, references: Sequence[str], line: bytes) -> tuple[float, float]:
        """Statistics of a hypothesis; RerankError for a score that is not finite."""
        score = float(self.score(line.decode(), references))
        if not math.isfinite(score):
            raise RerankError(
                f"metric {self.name}: expected a finite score, found {score} for {line.decode()!r}"
            )
        return score, 1.0


def counted(counts: NDArray[np.int64], rows: Rows) -> Counted:
    """The statistics of lists of `counts` (T,) candidates, by the rows of these and of gaps."""
    gap = np.repeat(counts == 0, np.maximum(counts, 1))
    return Counted(rows[~gap], rows[gap].sum(axis=0))


def metric(name: str) -> TextMetric:
    """The metric of a name, with its defaults; UsageError if it is unknown or cannot be loaded."""
    chosen: TextMetric = METRICS.named(name)()
    return chosen
