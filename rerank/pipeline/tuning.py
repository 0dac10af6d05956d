"""`rerank tune-mert`: weights of dense features, tuned on whole documents from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.commands.distribution import distributed
from rerank.commands.document_run import ListRun, Run, choose_search
from rerank.commands.lists import Lists, read_targets
from rerank.commands.search import AUTO, Search, search_documents
from rerank.commands.systems import DOCUMENT_BLEU, SENTENCE_CHRF
from rerank.corpus.columns import decoder_names
from rerank.errors import UsageError
from rerank.files.arrays import size_text
from rerank.files.lines import InputFiles
from rerank.files.outputs import check_outputs
from rerank.files.paths import FilePath, display
from rerank.formats.moses_ini import merged
from rerank.formats.translations import files_of
from rerank.formats.weights import Weights, kind_of, read_base, read_start_weights, write_weights
from rerank.metrics import Metric
from rerank.metrics.bleu import Bleu
from rerank.notices import Notices, Printer, log
from rerank.pipeline.tuning_outcome import (
    Tuning,
    by_name,
    metric_scores,
    provenance,
    score_entries,
    surface,
)
from rerank.pipeline.tuning_reading import read_set
from rerank.scorers.features import DocumentFeatures, FeatureSpace
from rerank.tuning.features import Alternatives, TunedFeatures, values_of_systems
from rerank.tuning.per_hypothesis import PerHypothesis
from rerank.tuning.plan import ObjectiveOptions, Plan
from rerank.tuning.pool_search import SavedSearches
from rerank.tuning.rounds import refuse_orders
from rerank.tuning.run import TuningResult, tune


@dataclass(frozen=True, slots=True)
class TunedWeights:
    """Which weights are tuned, from which start, and the files to write.

    features: names of those tuned (default: all dense ones; `total` if it is named, or weighted in
    `start`); the others keep their start weight. ranges: least and greatest weight of some. base: a
    moses.ini, of which `out` is a copy with the new weights. plot: a figure of the objective around
    the weights
    """

    out: str | Path
    features: Sequence[str] = ()
    start: str | Path | None = None
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    base: str | Path | None = None
    plot: str | Path | None = None

    @property
    def inputs(self) -> list[str | Path]:
        """Files that are read."""
        return [path for path in (self.start, self.base) if path]

    def check(self, others: Sequence[FilePath]) -> None:
        """UsageError where an output cannot be written, or is one of the files that are read."""
        outputs = [self.out, *([self.plot] if self.plot else [])]
        check_outputs(outputs, [*others, *self.inputs])
        kind_of(self.out, merged=self.base is not None)
        if self.plot:
            from rerank.report.figures import check_figure

            check_figure(self.plot)


def tune_mert(
    lists: Lists,
    references: Sequence[str | Path],
    weights: TunedWeights,
    *,
    search: Search = AUTO,
    plan: Plan | None = None,
    notices: Notices,
    announce: Printer = lambda line: None,
    details: Printer = lambda line: None,
) -> Tuning | None:
    """Tune weights on whole documents by a plan (`rerank.tuning.run.tune`), and write them.

    For lists of systems' outputs the start is that of `rerank.tuning.system_start`, unless weights
    are given. Several processes may share the documents (`rerank.commands.distribution`): scores
    of orders 0 and 1 are all that models compute, those of other orders after the histories of the
    first candidates and of the start weights' search. None after a shard, and in processes of
    `torchrun` other than the first.

    Memory: see `TuningSet`; candidates that do not fit into `Scoring.memory` lie in files
    (`rerank.files.arrays`).
    """
    run = partial(
        _tune,
        references=references,
        weights=weights,
        search=search,
        plan=plan or Plan(),
    )
    return distributed(run, lists, notices, announce, details)


def _tune(
    lists: Lists,
    notices: Notices,
    announce: Printer,
    details: Printer,
    *,
    references: Sequence[str | Path],
    weights: TunedWeights,
    search: Search,
    plan: Plan,
) -> Tuning | None:
    """`tune_mert` in one process; with a shard only its scores, which go to the cache."""
    started = weights.start is not None or bool(lists.systems)
    plan.check(ranges=bool(weights.ranges), start=started)
    objective = plan.objective
    measured = [path for _, path in objective.files]
    read = files_of(references, "reference")
    files = [*read, *weights.inputs, *measured]
    inputs = InputFiles([*lists.files, *files])
    weights.check([*lists.files, *read, *measured])
    frame = None if weights.base is None else read_base(weights.base, notices)
    given = None if weights.start is None else read_start_weights(weights.start, notices)
    features = TunedFeatures(weights.features, given, display(weights.start or ""), weights.ranges)
    bleu = Bleu(objective.tokenize)
    search = tuning_search(search, plan).at(given.alpha if given else None)
    documents, lines = read_targets(lists, references, notices, announce)
    with ListRun.open(lists, notices, documents=documents) as source:
        saved = SavedSearches(source.opened_cache())
        features = _with_alternatives(features, source, objective)
        search = choose_search(source, search, announce)
        if source.sharded is not None:
            _score_shard(source, search, features, announce)
            inputs.check()
            source.report(announce, details)
            return None
        if source.scorers:
            source.estimate(search, announce)
        metrics = objective.load_metrics(
            bleu,
            lambda name, path: PerHypothesis(name, source.copied(path), source.info, notices),
        )
        _check(source, features, plan, weights.base, frame)
        if (memory := lists.scoring.memory) is not None:
            announce(f"memory: at most about {size_text(memory)}; more candidates go to files")
        result = tune_source(
            source,
            documents.split(lines),
            metrics,
            search,
            features=features,
            plan=plan,
            saved=saved,
            announce=announce,
        )
        source.warn()
        inputs.check()
        task = result.task
        with source.watch.lap("tuning"):
            pool, around = task.pool(result.path), task.goal.objective
            flat = surface(pool, result.weights, around, task.names, plot=weights.plot)
        source.report(announce, details)
        scores = metric_scores(result.statistics, metrics, len(lines[0]) if lines else 0)
        if len(scores) > 1:
            announce(f"decoded: {'; '.join(one.to_text() for one in scores)}")
        # here, since a copy of standard input exists only as long as the lists are open
        made = provenance(source, files, result, search)
        made |= _of_systems(result, source) | score_entries(result.statistics, scores)
        made |= {**result.entries(), "flat": flat}
        if lists.drop_unreferenced:
            made["unreferenced"] = documents.n_left_out
        alpha = result.scale.alpha if result.scale else None
        sparse = features.other_sparse(task.space)
        written = Weights(
            by_name(task.full(result.weights), task.space),
            sparse,
            alpha,
            made,
            decoder_names=decoder_names(task.space.labels),
        )
        write_weights(weights.out, written, base=frame, notices=notices)
        saved.discard()
    return Tuning(written, result)


def _score_shard(
    source: ListRun, search: Search, features: TunedFeatures, announce: Printer
) -> None:
    """Put the scores of a shard into the cache: under first candidates, and under start weights."""

    def weigh(space: FeatureSpace) -> NDArray[np.float64] | None:
        features.check(space, lambda line: None)
        start = features.start(space)
        return start if start.any() else None

    with source.scoring_shard(announce):
        for batch in source.batches(weigh, search, total=features.total, sparse=features.sparse):
            for _, _, document, result in batch.each():
                if document is not None:
                    document.under(document.first())
                    if batch.results:
                        document.under(result.choices)


def _with_alternatives(
    features: TunedFeatures, source: ListRun, objective: ObjectiveOptions
) -> TunedFeatures:
    """The features, with the alternatives for a start where there are systems, but no weights."""
    if features.given is not None or not source.systems:
        return features
    only_chrf = [name for name, _ in objective.metrics] == ["chrf"]
    consensus = SENTENCE_CHRF if only_chrf else DOCUMENT_BLEU
    return replace(features, alternatives=Alternatives(source.systems, consensus))


def _of_systems(result: TuningResult, source: ListRun) -> dict[str, object]:
    """Entries of a weights file about systems: start, value of each, names of their features."""
    corpus = result.task.corpus
    if not result.task.features.alternatives.systems:
        return {}
    return {
        "start": result.task.features.source,
        "systems": values_of_systems(source.systems, corpus, result.task.goal.objective),
        "indicators": {name: label for label, name in source.systems.items()},
    }


def tune_source(
    source: Run,
    references: Sequence[Sequence[Sequence[bytes]]],
    metrics: Sequence[Metric],
    search: Search,
    *,
    features: TunedFeatures,
    plan: Plan,
    saved: SavedSearches | None = None,
    announce: Printer = log.info,
) -> TuningResult:
    """Read a source's documents and tune weights on them; references[d][t] are of sentence t."""
    corpus = read_set(source, references, metrics, features, announce)
    options = plan.objective
    if (options.documents or options.worst) and len(corpus.gaps) > len(corpus.documents):
        source.notices.add("documents without any candidate, counted as one more document")

    def decode(
        group: Sequence[DocumentFeatures], full: NDArray[np.float64]
    ) -> list[tuple[int, ...]]:
        with source.searching():
            found = [one.choices for one in search_documents(group, full, search)]
            for document in group:
                document.keep()
        source.store.release()
        return found

    with source.watch.lap("tuning"):
        result = tune(
            corpus,
            metrics,
            decode=decode,
            features=features,
            plan=plan,
            saved=saved,
            notices=source.notices,
            announce=announce,
        )
    return result


def _check(
    source: ListRun,
    features: TunedFeatures,
    plan: Plan,
    base: str | Path | None,
    frame: Sequence[bytes] | None,
) -> None:
    """Faults that would show up after the work: orders of features, and the file to write."""
    if plan.pools == "exact":
        refuse_orders([scorer.order for scorer in source.scorers])
    if frame is not None and (first := source.first_with_candidates()) is not None:
        space = source.space(first[1], total=features.total)
        begin = by_name(features.start(space), space)
        merged(frame, begin, features.sparse, None, Notices(), source=display(base or ""))


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
