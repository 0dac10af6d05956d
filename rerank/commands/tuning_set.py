"""A tuning set read in a run through documents: features and statistics; and its tuning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.commands.document_run import Run
from rerank.commands.search import Search, search_documents
from rerank.corpus.kbest import KBest
from rerank.corpus.spelling import note_differences
from rerank.errors import InputError, UsageError
from rerank.metrics import Metric
from rerank.notices import Printer, log
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.objective import Sums
from rerank.tuning.plan import Plan
from rerank.tuning.pool import TuningSet, narrow
from rerank.tuning.pool_search import SavedSearches
from rerank.tuning.run import TuningResult, tune


def read_set(
    run: Run,
    references: Sequence[Sequence[Sequence[bytes]]],
    metrics: Sequence[Metric],
    features: TunedFeatures,
    announce: Printer,
) -> TuningSet:
    """The tuning set of a run's documents; references[d][t] are of sentence t."""
    # metrics are compiled: with numba running, compiled code reads short lists, too
    import rerank.formats.moses_kernel  # noqa: F401

    groups: list[tuple[DocumentFeatures, ...]] = []
    counts, gaps, nowhere = list[Sums](), list[Sums](), list[Sums]()
    firsts: list[tuple[bytes, int | None, Sequence[bytes]]] = []
    remaining = iter(references)

    def check(space: FeatureSpace) -> None:
        features.check(space, announce)

    batches = run.batches(check, total=features.total, sparse=features.sparse, keep=False)
    for batch in batches:
        for name, kbest in batch.lists:
            lines = next(remaining, ())
            if len(lines) != len(kbest):
                raise InputError(
                    f"document {name!r}: expected references of {len(kbest)} sentences, found "
                    f"those of {len(lines)}",
                    source=run.name,
                )
            rows, missing = _counted(kbest, lines, metrics)
            if kbest.n:
                counts.append(run.store.kept(narrow(rows)))
                gaps.append(missing)
                for t in np.flatnonzero(kbest.counts).tolist():
                    row = kbest.rows(t)[0]
                    firsts.append((kbest.text(row), kbest.line_number(row), lines[t]))
            else:
                nowhere.append(missing)
        if batch.documents:
            groups.append(tuple(batch.documents))
    if not groups:
        raise InputError("expected candidates to tune on, found none", source=run.name)
    texts, numbers, targets = zip(*firsts, strict=True)
    note_differences(
        texts,
        [line for group in targets for line in group],
        run.notices,
        source=run.name,
        numbers=numbers,
    )
    if nowhere:
        gaps.append(np.sum(nowhere, axis=0))
    return TuningSet(tuple(groups), tuple(counts), np.array(gaps), run.store)


def _counted(
    kbest: KBest, references: Sequence[Sequence[bytes]], metrics: Sequence[Metric]
) -> tuple[Sums, Sums]:
    """Statistics (n, W) of a document's candidates, and summed those of its gaps (W,)."""
    found = [metric.of_lists(kbest, references) for metric in metrics]
    return np.hstack([rows for rows, _ in found]), np.hstack([gaps for _, gaps in found])


def tune_documents(
    run: Run,
    references: Sequence[Sequence[Sequence[bytes]]],
    metrics: Sequence[Metric],
    search: Search,
    *,
    features: TunedFeatures,
    plan: Plan,
    saved: SavedSearches | None = None,
    announce: Printer = log.info,
) -> TuningResult:
    """Read a run's documents and tune weights on them; references[d][t] are of sentence t."""
    corpus = read_set(run, references, metrics, features, announce)
    options = plan.objective
    if (options.documents or options.worst) and len(corpus.gaps) > len(corpus.documents):
        run.notices.add("documents without any candidate, counted as one more document")

    def decode(
        group: Sequence[DocumentFeatures], full: NDArray[np.float64]
    ) -> list[tuple[int, ...]]:
        with run.searching():
            found = [one.choices for one in search_documents(group, full, search)]
            for document in group:
                document.save()
        run.store.release()
        return found

    with run.watch.lap("tuning"):
        result = tune(
            corpus,
            metrics,
            decode=decode,
            features=features,
            plan=plan,
            saved=saved,
            notices=run.notices,
            announce=announce,
        )
    return result


def tuning_search(search: Search, plan: Plan) -> Search:
    """The search with the seed of the tuner; UsageError for a search that tuning cannot use."""
    if search.method == "mbr":
        raise UsageError(
            "--search mbr: tune-mert tunes the path of highest score, which mbr does not look for; "
            "take auto, viterbi, beam, or any other"
        )
    if plan.pools == "exact" and search.method not in ("auto", "viterbi"):
        raise UsageError(
            f"--search {search.method}: --pools exact decodes by Viterbi search; take --search "
            "viterbi, or other pools"
        )
    return search.seeded(plan.settings.seed)
