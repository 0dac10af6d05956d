"""A tuning set read into memory: lists, references, scores of the models, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rerank.corpus.kbest import KBest
from rerank.corpus.references import note_escaping, note_normalization
from rerank.errors import InputError
from rerank.files.lines import display
from rerank.metrics import Metric
from rerank.pipeline.lists import KBestSource
from rerank.pipeline.sources import Announce
from rerank.pipeline.tuning_set import TuningSet
from rerank.pipeline.wanted import Wanted
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.objectives import Sums


def read_set(
    opened: KBestSource,
    references: Sequence[Sequence[bytes]],
    metrics: Sequence[Metric],
    wanted: Wanted,
    announce: Announce,
) -> tuple[TuningSet, FeatureSpace]:
    """The whole tuning set: features, scores of the models, statistics of the metrics."""
    groups: list[tuple[DocumentFeatures, ...]] = []
    counts, gaps, nowhere = list[Sums](), list[Sums](), list[Sums]()
    space: FeatureSpace | None = None
    baseline = _Baseline([], [], [])
    d = 0
    for batch in opened.batches():
        for _, kbest in batch:
            begin, end = opened.documents.span(d)
            rows, missing = _counted(kbest, references[begin:end], metrics)
            d += 1
            if kbest.n:
                counts.append(rows)
                gaps.append(missing)
                baseline.add(kbest, references)
            else:
                nowhere.append(missing)
        filled = [(name, kbest) for name, kbest in batch if kbest.n]
        if not filled:
            continue
        if space is None:
            wanted.check(opened.space(filled[0][1], total=wanted.total), announce)
        space = opened.space(filled[0][1], total=wanted.total)
        sparse = wanted.given.sparse if wanted.given else {}
        groups.append(tuple(opened.prepared(filled, space, sparse)))
    if space is None:
        raise InputError(
            "expected candidates to tune on, found none", source=display(opened.lists.kbest)
        )
    baseline.note_oddities(opened)
    if nowhere:
        gaps.append(np.sum(nowhere, axis=0))
    return TuningSet(tuple(groups), tuple(counts), np.array(gaps)), space


def _counted(
    kbest: KBest, references: Sequence[Sequence[bytes]], metrics: Sequence[Metric]
) -> tuple[Sums, Sums]:
    """Statistics (n, W) of a document's candidates, and summed those of its gaps (W,)."""
    found = [metric.of_lists(kbest, references) for metric in metrics]
    return np.hstack([rows for rows, _ in found]), np.hstack([gaps for _, gaps in found])


@dataclass(frozen=True, slots=True)
class _Baseline:
    """First candidates, the numbers of their lines, and the references of their sentences."""

    hypotheses: list[bytes]
    numbers: list[int | None]
    references: list[bytes]

    def add(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> None:
        """Take note of a document; `references` are those of all documents."""
        for t in np.flatnonzero(kbest.counts).tolist():
            row = kbest.rows(t)[0]
            self.hypotheses.append(kbest.text(row))
            self.numbers.append(kbest.line_number(row))
            self.references.extend(references[kbest.first + t])

    def note_oddities(self, opened: KBestSource) -> None:
        """Notices of lists that differ from the references in more than words."""
        source = display(opened.lists.kbest)
        for note in (note_escaping, note_normalization):
            note(
                self.hypotheses,
                self.references,
                opened.notices,
                source=source,
                numbers=self.numbers,
            )
