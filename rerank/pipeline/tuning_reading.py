"""A tuning set read from a source of documents: features, and statistics of the candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rerank.corpus.kbest import KBest
from rerank.corpus.references import note_differences
from rerank.errors import InputError
from rerank.metrics import Metric
from rerank.pipeline.run_loop import run_loop
from rerank.pipeline.sources import DocumentSource, Printer
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.tuning_set import TuningSet


def read_set(
    source: DocumentSource,
    references: Sequence[Sequence[Sequence[bytes]]],
    metrics: Sequence[Metric],
    features: TunedFeatures,
    announce: Printer,
) -> TuningSet:
    """The tuning set of a source's documents; references[d][t] are those of sentence t."""
    groups: list[tuple[DocumentFeatures, ...]] = []
    counts, gaps, nowhere = list[Sums](), list[Sums](), list[Sums]()
    baseline, remaining = _Baseline([], [], []), iter(references)

    def check(space: FeatureSpace) -> None:
        features.check(space, announce)

    for batch in run_loop(source, check, total=features.total, sparse=features.sparse, keep=False):
        for name, kbest in batch.lists:
            lines = next(remaining, ())
            if len(lines) != len(kbest):
                raise InputError(
                    f"document {name!r}: expected references of {len(kbest)} sentences, found "
                    f"those of {len(lines)}",
                    source=source.name,
                )
            rows, missing = _counted(kbest, lines, metrics)
            if kbest.n:
                counts.append(rows)
                gaps.append(missing)
                baseline.add(kbest, lines)
            else:
                nowhere.append(missing)
        if batch.documents:
            groups.append(tuple(batch.documents))
    if not groups:
        raise InputError("expected candidates to tune on, found none", source=source.name)
    baseline.note_oddities(source)
    if nowhere:
        gaps.append(np.sum(nowhere, axis=0))
    return TuningSet(tuple(groups), tuple(counts), np.array(gaps))


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
        """Take note of a document and the references of its sentences."""
        for t in np.flatnonzero(kbest.counts).tolist():
            row = kbest.rows(t)[0]
            self.hypotheses.append(kbest.text(row))
            self.numbers.append(kbest.line_number(row))
            self.references.extend(references[t])

    def note_oddities(self, source: DocumentSource) -> None:
        """Notices of lists that differ from the references in more than words."""
        note_differences(
            self.hypotheses,
            self.references,
            source.notices,
            source=source.name,
            numbers=self.numbers,
        )
