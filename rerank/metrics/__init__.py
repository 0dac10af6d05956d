"""Metrics that tuning can follow: statistics of candidates, which add up, and the score of a sum.

A metric is one file here and one line in `rerank.registry.METRICS`, or an entry point of the group
`rerank.metrics` in another package: something that makes a `TextMetric` when called without
arguments. `rerank.metrics.per_hypothesis` reads what any other metric has written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.metrics.texts import Texts

Rows: TypeAlias = NDArray[Any]
"""Rows of statistics, shape (…, width): int64 where they are counts, else float64."""


class Counted(NamedTuple):
    """Statistics of a document.

    rows: (n, width) of its candidates; gaps: (width,) of its sentences without any, summed
    """

    rows: Rows
    gaps: Rows


class Metric(Protocol):
    """A corpus score that is a function of the sum of its statistics.

    Larger scores are better: of an error rate `scores` are the negative, `shown` turns it back.
    """

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def width(self) -> int:
        """How many statistics a candidate has."""
        ...

    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates; `references` has those of each sentence (T)."""
        ...

    def scores(self, summed: Rows) -> NDArray[np.float64]:
        """Scores (…) of summed statistics (…, width); larger is better."""
        ...

    def shown(self, score: float) -> float:
        """A score as people know it."""
        ...

    def signature(self, n_references: int) -> str:
        """What decides on the score, in a line."""
        ...


class TextMetric(Metric, Protocol):
    """A metric of nothing but hypotheses and references."""

    def statistics(
        self, hypotheses: Iterable[Iterable[bytes]], references: Iterable[Iterable[bytes]]
    ) -> Rows:
        """Statistics of the hypotheses of T sentences, (n, width), lists one after another.

        Both hold one group per sentence, of lines of UTF-8 text: its hypotheses (maybe none) and
        its references (at least one).
        """
        ...


def counted(kbest: KBest, rows: Rows) -> Counted:
    """What lists have, from rows of their candidates and an empty line for each gap."""
    gap = np.repeat(kbest.counts == 0, np.maximum(kbest.counts, 1))
    return Counted(rows[~gap], rows[gap].sum(axis=0))


def counted_in_place(
    kbest: KBest,
    references: Sequence[Sequence[bytes]],
    statistics: Callable[[Texts, Texts], Rows],
) -> Counted:
    """Statistics of a document's candidates, read where they lie; a gap is an empty line."""
    return counted(kbest, statistics(Texts.of_lists(kbest), Texts.of(references)))


def lines_of(kbest: KBest) -> Iterable[Iterable[bytes]]:
    """The candidates of each sentence, an empty line for a sentence without; read once."""
    for t in range(len(kbest)):
        yield [kbest.text(row) for row in kbest.rows(t)] or [b""]
