"""`rerank tune-mert`: weights of dense features, tuned on whole documents.

For lists of systems' outputs the start is that of `rerank.tuning.features.start_of_systems`, unless
weights are given. Several processes may share the documents: scores of orders 0 and 1 are all that
models compute, those of other orders after the histories of the first candidates and of the start
weights' search. Memory: see `TuningSet`; candidates that do not fit into `--memory` lie in files
(`rerank.files.arrays`).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.files.paths import display
from rerank.options import Command, optional, part, record
from rerank.report.measures import tokenizer_of
from rerank.runs.options import Messages, ReferenceFiles, RunOptions
from rerank.runs.search import SearchOptions
from rerank.tuning.plan import Plan, TunedWeights
from rerank.values import NameList

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rerank.files.lines import InputFiles
    from rerank.files.paths import FilePath
    from rerank.formats.weights import Weights
    from rerank.metrics import Metric
    from rerank.notices import Printer
    from rerank.runs.lists import ListSource
    from rerank.runs.run import Run
    from rerank.runs.search import Search
    from rerank.scorers.features import FeatureSpace
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objective import Sums
    from rerank.tuning.run import TuningResult


@record
class MertWeights:
    """Which weights are tuned, their start and ranges, and the files to write."""

    files: TunedWeights = part(TunedWeights)
    features: tuple[str, ...] | None = optional(
        "Comma-separated features to tune, others keep their start weight [default: all dense "
        "ones; total if it is named, or weighted in --start].",
        type=NameList(),
        metavar="NAMES",
        rare=True,
    )


@record
class TuneMertOptions:
    """Options of `rerank tune-mert`."""

    run: RunOptions = part(RunOptions, without={"threads"}, rare={"no_docs"})
    references: ReferenceFiles = part(
        ReferenceFiles, "Lists and documents", required={"references"}
    )
    weights: MertWeights = part(MertWeights, "Weights")
    plan: Plan = part(Plan, "How weights are found")
    searching: SearchOptions = part(SearchOptions, "Search", without={"gap", "seed"}, rare={"beam"})
    messages: Messages = part(Messages, "Messages")


def tune_mert(options: TuneMertOptions) -> None:
    r"""Tune the feature weights by minimum error rate training, on whole documents.

    Without --start, tuning starts from weights that give the totals, or the order, of the lists;
    for --systems from what the systems agree on, or the best one. Where no weights are better on
    held-out documents than the first candidates, these are kept, by weights of 0.

    Example:
      rerank tune-mert --kbest dev.nbest.gz --docs dev.docids --ref dev.en \
        --lm codclm=models/codclm --start moses.ini --out weights.json
    """
    from rerank.formats.translations import files_of
    from rerank.formats.weights import write_weights
    from rerank.metrics.bleu import Bleu
    from rerank.runs.distribution import announce_work, share_scores
    from rerank.runs.lists import read_targets
    from rerank.runs.opening import open_run
    from rerank.runs.tuning_set import PerHypothesis, tune_documents, tuning_search
    from rerank.tuning.pool_search import SavedSearches

    plan, references, weights = options.plan, options.references.references, options.weights.files
    announce = options.messages.announce
    if options.run.machine.threads is None:
        options = replace(options, run=options.run.with_threads(plan.settings.threads))
    if not share_scores(tune_mert, options):
        return
    with options.messages.warnings() as notices:
        lists = options.run.inputs(drop_unreferenced=options.references.drop_unreferenced)
        plan.check(ranges=bool(weights.ranges), start=bool(weights.start or lists.made))
        files = [*files_of(references, "reference"), *weights.inputs, *plan.objective.paths]
        inputs = weights.check_files([*options.run.files, *files], options.run.scorers.folders)
        frame, start = weights.read(notices)
        bleu = Bleu(tokenizer_of(plan.objective.tokenize, references, announce))
        search = tuning_search(options.searching.chosen(), plan, start)
        documents, lines = read_targets(lists, references, notices, announce)
        programs = plan.objective.program_metrics()
        with open_run(
            lists,
            notices,
            options.run.with_agreement() if lists.made and start is None else options.run,
            documents=documents,
            announce=announce,
            programs=[program.estimator for program in programs.values()],
            metrics=[named for named in plan.objective.files if named[0] not in programs],
        ) as run:
            saved = SavedSearches(run.opened_cache())
            features = _features(options.weights, start, run)
            search = run.choose_search(search, announce)
            if run.shard is not None:
                _score_shard(run, search, features, inputs, options.messages)
                return
            announce_work(run, search, announce)
            metrics = plan.objective.load_metrics(
                bleu, lambda name: programs.get(name) or PerHypothesis(run.metrics[name])
            )
            _check_base(run, features, frame, weights.base)
            result = tune_documents(
                run,
                documents.split(lines),
                metrics,
                search,
                features=features,
                plan=plan,
                saved=saved,
                announce=announce,
            )
            run.warn()
            inputs.check()
            _plot(run, result, weights.plot)
            run.report(announce, options.messages.detail)
            # here, since a copy of standard input exists only as long as the lists are open
            scores = _scores(result.statistics, metrics, lines, announce)
            tuned = result.written(_provenance(run, files, result, search, scores))
            write_weights(weights.out, tuned, base=frame, notices=notices)
            saved.discard()
    said = [f"verdict: {tuned.provenance['verdict']}", result.to_text()]
    if "beside_systems" in tuned.provenance:  # what counts most is the last line
        said.reverse()
    announce("\n".join([*tuned.remarks(), *said]))


COMMAND = Command("tune-mert", TuneMertOptions, tune_mert)


def _features(weights: MertWeights, start: Weights | None, run: Run[ListSource]) -> TunedFeatures:
    """The tuned features; one of the systems, or their consensus, is a start without weights."""
    from rerank.tuning.features import TunedFeatures

    return TunedFeatures(
        weights.features or (),
        start,
        display(weights.files.start or ""),
        dict(weights.files.ranges),
        systems={} if start else run.source.systems,
    )


def _score_shard(
    run: Run[ListSource],
    search: Search,
    features: TunedFeatures,
    inputs: InputFiles,
    messages: Messages,
) -> None:
    """Put the scores of a shard into the cache: under first candidates, and under start weights."""
    from rerank.runs.distribution import outputs

    def weigh(space: FeatureSpace) -> NDArray[np.float64] | None:
        features.check(space, lambda line: None)
        start = features.start(space)
        return start if start.any() else None

    with outputs(run, {}, messages.announce):
        for batch in run.batches(weigh, search, total=features.total, sparse=features.sparse):
            for _, _, document, result in batch.documents:
                if document is not None:
                    document.under(document.first())
                    if len(batch.weights):
                        document.under(result.choices)
    inputs.check()
    run.report(messages.announce, messages.detail)


def _check_base(
    run: Run[ListSource], features: TunedFeatures, frame: Sequence[bytes] | None, base: str | None
) -> None:
    """Faults of the file to write, which would show up after the work."""
    lists = run.read_unreported() if frame is not None else ()
    for first in islice((kbest for _, kbest in lists if kbest.n), 1):
        features.check_base(run.space(first, total=features.total), frame, base)


def _plot(run: Run[ListSource], result: TuningResult, path: str | None) -> None:
    """Draw the objective around the weights, if it is asked for."""
    from rerank.report.figures import plot_surface

    if path is not None:
        with run.watch.lap("tuning"):
            pool = result.task.pool(result.path)
            plot_surface(path, pool, result.weights, result.task.search)


def _provenance(
    run: Run[ListSource],
    files: Sequence[FilePath],
    result: TuningResult,
    search: Search,
    scores: dict[str, object],
) -> dict[str, object]:
    """Entries of a weights file about its making: objective, seed, options, digests of inputs.

    scores: on the tuning set.
    """
    from rerank.corpus.reading import AS_NFC, AS_SOURCE
    from rerank.runs.tuning_set import start_entries, verdict_entries

    lists, documents, task = run.source.lists, run.source.documents, result.task
    options = {name: value for name, value in search.options.given().items() if value is not None}
    made: dict[str, object] = {
        **task.plan.entries(task.goal.name, [*lists.files, *run.options.scorers.files, *files]),
        **task.features.entries(task.names),
        "search": {"method": search.method, **options},
        "top": lists.top,
        **({"normalize": AS_NFC} if lists.in_nfc else {}),
        **({"missing": AS_SOURCE} if lists.missing == AS_SOURCE else {}),
        "models": {},
        "scores": {
            scorer.name: {"file": Path(scorer.place.source).name, "digest": scorer.digest}
            for scorer in run.scorers_by_kind.score_files
        },
        **run.scorers_by_kind.entries(run.options.scorers),
    }
    for scorer in run.scorers:
        made |= scorer.provenance()
    made |= start_entries(run, result) | scores | result.entries() | verdict_entries(run, result)
    return made | ({"unreferenced": documents.n_left_out} if lists.drop_unreferenced else {})


def _scores(
    sums: Sums, metrics: Sequence[Metric], references: Sequence[Sequence[bytes]], announce: Printer
) -> dict[str, object]:
    """Entries of a weights file about the tuning set: BLEU, which comes first, and the others.

    sums: summed statistics (D, W) of the metrics, side by side. Several are announced as they are
    published, with their signatures.
    """
    import numpy as np

    from rerank.tuning.objective import length_of

    n_references = len(references[0]) if references else 0
    ends, shown = np.cumsum([metric.width for metric in metrics]), list[str]()
    entries: list[dict[str, object]] = []
    for metric, statistics in zip(metrics, np.split(sums.sum(axis=0), ends[:-1]), strict=True):
        score = metric.shown(float(metric.scores(statistics)))
        signature = metric.signature(n_references)
        shown.append(f"{metric.name} {score:.2f} ({signature})")
        entries.append({"score": score, "signature": signature})
    if len(shown) > 1:
        announce(f"decoded: {'; '.join(shown)}")
    bleu, *others = entries
    named = dict(zip((metric.name for metric in metrics[1:]), others, strict=True))
    return {
        "bleu": bleu["score"],
        "length_ratio": length_of(sums),
        "signature": bleu["signature"],
        **({"metrics": named} if named else {}),
    }
