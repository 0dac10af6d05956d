"""A tuning set read in a run through documents: features and statistics; and its tuning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.kbest import KBest
from rerank.corpus.preparation import note_differences
from rerank.corpus.reading import KEEP
from rerank.errors import InputError, UsageError
from rerank.files.arrays import size_text
from rerank.files.paths import base_name
from rerank.files.signature import signature
from rerank.formats.weights import Weights
from rerank.metrics import Counted, MeanScore, Metric
from rerank.metrics.bleu import Bleu
from rerank.notices import Printer, log
from rerank.runs.results import ModelUse
from rerank.runs.run import Run
from rerank.runs.search import Search, search_documents
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.scorers.numbers import NumberLines
from rerank.tuning.features import TunedFeatures, values_of_systems
from rerank.tuning.objective import Sums
from rerank.tuning.plan import Plan
from rerank.tuning.pool import TuningSet, narrow
from rerank.tuning.pool_search import SavedSearches
from rerank.tuning.run import TuningResult, tune
from rerank.tuning.tables import DocumentTables


def read_set(
    run: Run[Any],
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
    totals = list[NDArray[np.float64]]()
    firsts: list[tuple[bytes, int | None, Sequence[bytes]]] = []
    remaining = iter(references)

    def check(space: FeatureSpace) -> None:
        features.check(space, announce)

    batches = run.batches(check, total=features.total, sparse=features.sparse, keep=False)
    for batch in batches:
        for _, kbest, *_ in batch.documents:
            lines = next(remaining)
            counted = [metric.of_lists(kbest, lines) for metric in metrics]
            rows, missing = (np.hstack(side) for side in zip(*counted, strict=True))
            if kbest.n:
                counts.append(run.store.kept(narrow(rows)))
                no_totals = np.full(kbest.n, np.nan)
                totals.append(run.store.kept(no_totals if kbest.totals is None else kbest.totals))
                gaps.append(missing)
                for t in np.flatnonzero(kbest.counts).tolist():
                    row = kbest.rows(t)[0]
                    firsts.append((kbest.text(row), kbest.line_number(row), lines[t]))
            else:
                nowhere.append(missing)
        if group := tuple(scored for _, _, scored, _ in batch.documents if scored is not None):
            groups.append(group)
    if not groups:
        raise InputError("expected candidates to tune on, found none", source=run.source.name)
    texts, numbers, targets = zip(*firsts, strict=True)
    note_differences(
        {run.source.name: texts},
        [line for group in targets for line in group],
        run.notices,
        numbers=numbers,
        form=run.source.file_format,
        tokenize=next((metric.tokenize for metric in metrics if isinstance(metric, Bleu)), None),
    )
    if nowhere:
        gaps.append(np.sum(nowhere, axis=0))
    return TuningSet(tuple(groups), tuple(counts), np.array(gaps), tuple(totals), run.store)


def tune_documents(
    run: Run[Any],
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
    if (memory := run.options.sharing.memory) is not None:
        announce(f"memory: at most about {size_text(memory)}; more candidates go to files")
    corpus = read_set(run, references, metrics, features, announce)
    tables = _tables(corpus, search)

    def decode(
        group: Sequence[DocumentFeatures], full: NDArray[np.float64], narrow: bool
    ) -> list[tuple[int, ...]]:
        with run.searching():
            if tables:
                return [tables[id(document)].best(full) for document in group]
            how = search.narrowed() if narrow else search
            results = search_documents(group, full, how, baseline=False)
            for document in group:
                document.save()
        run.store.release()
        return [result.choices for result in results]

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
    for document in corpus.documents:  # the scale is fitted after the last decoding
        document.save()
    if run.defects.some and run.defects.mode == KEEP:
        announce(
            "defects: candidates are no translations, as the warnings say; --defects avoid tunes a "
            "weight for them, by which decode avoids them"
        )
    return result


def _tables(corpus: TuningSet, search: Search) -> dict[int, DocumentTables]:
    """The tables of each document, by its `id`; empty where a search needs something else."""
    tables = dict[int, DocumentTables]()
    if search.method in ("auto", "viterbi"):
        for document in corpus.documents:
            if (table := DocumentTables.of(document)) is None:
                return {}
            tables[id(document)] = table
    return tables


def tuning_search(search: Search, plan: Plan, start: Weights | None = None) -> Search:
    """The search with the seed of the tuner and the scale of start weights, if they have one.

    UsageError for a search that tuning cannot use.
    """
    if search.method == "mbr":
        raise UsageError(
            "--search mbr: tune-mert tunes the path of highest score, which mbr does not look for; "
            "take auto, viterbi, beam, or any other"
        )
    seeded = search.seeded(plan.settings.seed)
    return seeded.at(start) if start else seeded


def start_entries(run: Run[Any], result: TuningResult) -> dict[str, object]:
    """Entries of a weights file about where tuning began, and the systems' values."""
    task, made = result.task, dict[str, object]()
    if task.features.derived:
        made["start"] = task.features.source
    if task.features.systems:
        made["systems"] = values_of_systems(run.source.systems, task.corpus, task.free_objective)
        made["indicators"] = {name: label for label, name in run.source.systems.items()}
    return made


def verdict_entries(run: Run[Any], result: TuningResult) -> dict[str, object]:
    """Entries of a weights file about what the weights are worth: in words, beside systems."""
    line, beside_systems = result.verdict(run.source.systems)
    use, full = ModelUse(run.scorers, run.scorers_by_kind.models), result.task.full(result.weights)
    for document, choices in zip(result.task.corpus.documents, result.path, strict=True):
        use.add(document, choices, full)
    entries: dict[str, object] = {"verdict": "; ".join(filter(None, (use.to_text(), line)))}
    return entries | ({"beside_systems": asdict(beside_systems)} if beside_systems else {})


class PerHypothesis(MeanScore, Metric):
    """A metric of another tool, which has written a score for each hypothesis to a file.

    Its name is the one that the user gave. A row of statistics is `[score, 1]` (float64); the score
    of a sum is the mean over the sentences that have candidates. Larger is better: the file of an
    error rate holds its negative.

    Line i of the file belongs to line i of the list, also where --top leaves candidates out. Blank
    lines at the end are ignored on both sides. InputError for a file of another length, before any
    work, and at a line that is not a finite number.
    """

    width = 2

    def __init__(self, numbers: NumberLines) -> None:
        self.name, self._numbers = numbers.name, numbers

    def of_lists(self, kbest: KBest, references: Sequence[Sequence[bytes]]) -> Counted:
        """Statistics of a document's candidates; references are not used.

        Those of a gap are 0, and of the source line that takes its place.
        """
        values, listed = self._numbers.of_candidates(kbest), np.asarray(kbest.line_numbers) > 0
        return Counted(np.stack([values, listed], axis=1), np.zeros(self.width))

    def signature(self, n_references: int) -> str:
        """`rerank|metric:comet|file:dev.comet.gz=ab12cd34|v:0.2.0`."""
        file = f"{base_name(self._numbers.path)}={self._numbers.short_digest}"
        return signature({"metric": self.name, "file": file})
