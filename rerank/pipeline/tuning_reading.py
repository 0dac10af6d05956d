"""A tuning set read from a source of documents: features, and statistics of the candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rerank.commands.document_run import Run
from rerank.corpus.kbest import KBest
from rerank.corpus.spelling import note_differences
from rerank.errors import InputError
from rerank.metrics import Metric
from rerank.notices import Printer
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.objective import Sums
from rerank.tuning.pool import TuningSet, narrow


def read_set(
    source: Run,
    references: Sequence[Sequence[Sequence[bytes]]],
    metrics: Sequence[Metric],
    features: TunedFeatures,
    announce: Printer,
) -> TuningSet:
    """The tuning set of a source's documents; references[d][t] are of sentence t."""
    # metrics are compiled: with numba running, compiled code reads short lists, too
    import rerank.formats.moses_kernel  # noqa: F401

    groups: list[tuple[DocumentFeatures, ...]] = []
    counts, gaps, nowhere = list[Sums](), list[Sums](), list[Sums]()
    firsts: list[tuple[bytes, int | None, Sequence[bytes]]] = []
    remaining = iter(references)

    def check(space: FeatureSpace) -> None:
        features.check(space, announce)

    batches = source.batches(check, total=features.total, sparse=features.sparse, keep=False)
    for batch in batches:
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
                counts.append(source.store.kept(narrow(rows)))
                gaps.append(missing)
                for t in np.flatnonzero(kbest.counts).tolist():
                    row = kbest.rows(t)[0]
                    firsts.append((kbest.text(row), kbest.line_number(row), lines[t]))
            else:
                nowhere.append(missing)
        if batch.documents:
            groups.append(tuple(batch.documents))
    if not groups:
        raise InputError("expected candidates to tune on, found none", source=source.name)
    texts, numbers, targets = zip(*firsts, strict=True)
    note_differences(
        texts,
        [line for group in targets for line in group],
        source.notices,
        source=source.name,
        numbers=numbers,
    )
    if nowhere:
        gaps.append(np.sum(nowhere, axis=0))
    return TuningSet(tuple(groups), tuple(counts), np.array(gaps), source.store)


def _counted(
    kbest: KBest, references: Sequence[Sequence[bytes]], metrics: Sequence[Metric]
) -> tuple[Sums, Sums]:
    """Statistics (n, W) of a document's candidates, and summed those of its gaps (W,)."""
    found = [metric.of_lists(kbest, references) for metric in metrics]
    return np.hstack([rows for rows, _ in found]), np.hstack([gaps for _, gaps in found])
