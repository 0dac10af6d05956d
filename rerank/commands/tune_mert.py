"""`rerank tune-mert`: weights of dense features, tuned on whole documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rerank.commands.run import Messages, ReferenceFiles, RunOptions
from rerank.commands.search import SearchOptions
from rerank.options import Command, option, part, record
from rerank.tuning.plan import Plan, TunedWeights
from rerank.values import NameList

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rerank.commands.list_run import ListRun
    from rerank.commands.search import Search
    from rerank.files.paths import FilePath
    from rerank.metrics import Metric
    from rerank.notices import Notices, Printer
    from rerank.scorers.features import FeatureSpace
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.objective import Sums
    from rerank.tuning.pool import Pool
    from rerank.tuning.pool_search import PoolSearch
    from rerank.tuning.run import TuningResult


@record
class MertWeights:
    """Which weights are tuned, their start and ranges, and the files to write."""

    files: TunedWeights = part(TunedWeights)
    features: tuple[str, ...] | None = option(
        "Comma-separated features to tune, others keep their start weight [default: all dense "
        "ones; total if it is named, or weighted in --start].",
        type=NameList(),
        metavar="NAMES",
        default=None,
        rare=True,
    )


@record
class TuneMertOptions:
    """Options of `rerank tune-mert`."""

    run: RunOptions = part(RunOptions, without={"threads"})
    references: ReferenceFiles = part(
        ReferenceFiles, "Lists and documents", required={"references"}
    )
    weights: MertWeights = part(MertWeights, "Weights")
    plan: Plan = part(Plan, "How weights are found")
    searching: SearchOptions = part(SearchOptions, "Search", without={"gap", "seed"})
    messages: Messages = part(Messages, "Messages")


def tune_mert(options: TuneMertOptions) -> None:
    r"""Tune the feature weights by minimum error rate training, on whole documents.

    Example:
      rerank tune-mert --kbest dev.nbest.gz --docs dev.docids --ref dev.en \
        --lm codclm=models/codclm --start moses.ini --out weights.json
    """
    from rerank.commands.distribution import share_scores

    run, threads = options.run, options.plan.settings.threads
    if run.machine.threads is None:
        options = replace(options, run=run.with_threads(threads))
    if not share_scores(tune_mert, options):
        return
    with options.messages.warnings() as notices:
        result = _tuned(options, notices)
    if result is not None:
        options.messages.announce(result.to_text())


COMMAND = Command("tune-mert", TuneMertOptions, tune_mert)


def _tuned(options: TuneMertOptions, notices: Notices) -> TuningResult | None:
    """Tune weights on the documents of lists and write them; of a shard, only score the documents.

    For lists of systems' outputs the start is that of `rerank.tuning.features.start_of_systems`,
    unless weights are given. Several processes may share the documents: scores of orders 0 and 1
    are all that models compute, those of other orders after the histories of the first candidates
    and of the start weights' search. Memory: see `TuningSet`; candidates that do not fit into
    `--memory` lie in files (`rerank.files.arrays`).
    """
    from rerank.commands.list_run import ListRun
    from rerank.commands.lists import read_targets
    from rerank.commands.tuning_set import tune_documents, tuning_search
    from rerank.files.arrays import size_text
    from rerank.files.lines import InputFiles
    from rerank.formats.translations import files_of
    from rerank.formats.weights import read_base
    from rerank.metrics.bleu import Bleu
    from rerank.tuning.per_hypothesis import PerHypothesis
    from rerank.tuning.pool_search import SavedSearches

    plan, references, weights = options.plan, options.references.references, options.weights.files
    lists = options.run.inputs(drop_unreferenced=options.references.drop_unreferenced)
    announce, details = options.messages.announce, options.messages.detail
    plan.check(ranges=bool(weights.ranges), start=bool(weights.start or lists.systems))
    read = files_of(references, "reference")
    measured = [path for _, path in plan.objective.files]
    files = [*read, *weights.inputs, *measured]
    inputs = InputFiles([*options.run.files, *files])
    weights.check_files([*options.run.files, *read, *measured])
    frame = None if weights.base is None else read_base(weights.base, notices)
    features = _features(options.weights, notices)
    bleu = Bleu(plan.objective.tokenize)
    search = tuning_search(options.searching.chosen(), plan)
    search = search.at(features.given.alpha if features.given else None)
    documents, lines = read_targets(lists, references, notices, announce)
    with ListRun.open(lists, notices, options.run, documents=documents) as run:
        saved = SavedSearches(run.opened_cache())
        features = _with_alternatives(features, run, plan)
        search = run.choose_search(search, announce)
        if run.sharded is not None:
            _score_shard(run, search, features, announce)
            inputs.check()
            run.report(announce, details)
            return None
        if run.scorers:
            run.estimate(search, announce)
        metrics = plan.objective.load_metrics(
            bleu, lambda name, path: PerHypothesis(name, run.copies.copied(path), run.info, notices)
        )
        _check(run, features, plan, frame, weights.base)
        if (memory := options.run.sharing.memory) is not None:
            announce(f"memory: at most about {size_text(memory)}; more candidates go to files")
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
        with run.watch.lap("tuning"):
            pool = result.task.pool(result.path)
            flat = surface(pool, result.weights, result.task.search, weights.plot)
        run.report(announce, details)
        # here, since a copy of standard input exists only as long as the lists are open
        made = (
            _provenance(run, files, result, search)
            | _scores(result.statistics, metrics, len(lines[0]) if lines else 0, announce)
            | {**result.entries(), "flat": flat}
            | ({"unreferenced": documents.n_left_out} if lists.drop_unreferenced else {})
        )
        _write(weights.out, result, made, frame, notices)
        saved.discard()
    return result


def _features(weights: MertWeights, notices: Notices) -> TunedFeatures:
    """The tuned features with their start weights."""
    from rerank.files.paths import display
    from rerank.formats.weights import read_start_weights
    from rerank.tuning.features import TunedFeatures

    start = weights.files.start
    given = None if start is None else read_start_weights(start, notices)
    ranges = dict(weights.files.ranges)
    return TunedFeatures(weights.features or (), given, display(start or ""), ranges)


def _with_alternatives(features: TunedFeatures, run: ListRun, plan: Plan) -> TunedFeatures:
    """The features, with the alternatives for a start where there are systems, but no weights."""
    from rerank.commands.systems import DOCUMENT_BLEU, SENTENCE_CHRF
    from rerank.tuning.features import Alternatives

    if features.given is not None or not run.systems:
        return features
    only_chrf = [name for name, _ in plan.objective.metrics] == ["chrf"]
    consensus = SENTENCE_CHRF if only_chrf else DOCUMENT_BLEU
    return replace(features, alternatives=Alternatives(run.systems, consensus))


def _score_shard(run: ListRun, search: Search, features: TunedFeatures, announce: Printer) -> None:
    """Put the scores of a shard into the cache: under first candidates, and under start weights."""

    def weigh(space: FeatureSpace) -> NDArray[np.float64] | None:
        features.check(space, lambda line: None)
        start = features.start(space)
        return start if start.any() else None

    with run.scoring_shard(announce):
        for batch in run.batches(weigh, search, total=features.total, sparse=features.sparse):
            for _, _, document, result in batch.each():
                if document is not None:
                    document.under(document.first())
                    if batch.results:
                        document.under(result.choices)


def _check(
    run: ListRun,
    features: TunedFeatures,
    plan: Plan,
    frame: Sequence[bytes] | None,
    base: str | None,
) -> None:
    """Faults that would show up after the work: orders of features, and the file to write."""
    from rerank.tuning.rounds import refuse_orders

    if plan.pools == "exact":
        refuse_orders([scorer.order for scorer in run.scorers])
    if frame is not None and (first := run.first_with_candidates()) is not None:
        space = run.space(first[1], total=features.total)
        check_frame(frame, features, features.sparse, space, base)


def check_frame(
    frame: Sequence[bytes],
    features: TunedFeatures,
    sparse: Mapping[str, float],
    space: FeatureSpace,
    base: str | None,
) -> None:
    """InputError for lines of a moses.ini into which the weights of a space cannot go."""
    from rerank.files.paths import display
    from rerank.formats.moses_ini import merged
    from rerank.notices import Notices
    from rerank.tuning.provenance import by_name

    begin = by_name(features.start(space), space.labels)
    merged(frame, begin, sparse, None, Notices(), source=display(base or ""))


def surface(
    pool: Pool, weights: NDArray[np.float64], search: PoolSearch, plot: str | None
) -> dict[str, list[float | None]]:
    """Flatness of the objective around weights (G,), drawn to the file `plot` if there is one."""
    from rerank.tuning.provenance import flatness, sections
    from rerank.tuning.tuners.ascent import Axes

    objective, names = search.goal.objective, search.names
    around = sections(pool, weights, objective)
    if plot is not None:
        from rerank.report.figures import plot_sections

        spreads = Axes.of(pool).scale.tolist()
        plot_sections(plot, around, names, spreads, objective=objective.name)
    return flatness(around, names)


def _provenance(
    run: ListRun, files: Sequence[FilePath], result: TuningResult, search: Search
) -> dict[str, object]:
    """Entries of a weights file about its making: objective, seed, options, digests of inputs."""
    from rerank.corpus.reading import AS_NFC, AS_SOURCE
    from rerank.tuning.features import values_of_systems
    from rerank.tuning.provenance import feature_entries, plan_entries

    lists, task = run.lists, result.task
    options = {name: value for name, value in search.options.given().items() if value is not None}
    made: dict[str, object] = {
        **plan_entries(task.plan, task.goal, [*lists.files, *run.options.scorers.files, *files]),
        **feature_entries(task.names, task.features.ranges),
        "search": {"method": search.method, **options},
        "pools": task.plan.pools,
        "top": lists.top,
        "diverse": lists.diverse,
        **({"normalize": AS_NFC} if lists.in_nfc else {}),
        **({"missing": AS_SOURCE} if lists.missing == AS_SOURCE else {}),
        "models": {
            one.name: {"folder": one.value.name, "digest": scorer.digest, **one.provenance}
            for scorer, one in zip(run.by_kind.models, run.options.scorers.lm, strict=True)
        },
        "scores": {
            scorer.name: {"file": Path(scorer.source).name, "digest": scorer.digest}
            for scorer in run.by_kind.score_files
        },
    }
    if run.by_kind.plugins:  # scorers of other packages
        entries = zip(run.by_kind.plugins, run.options.scorers.scorer, strict=True)
        made["scorers"] = {
            one.name: {"entry": entry, "digest": one.digest} for one, (_, entry) in entries
        }
    if task.features.alternatives.systems:
        made["start"] = task.features.source
        made["systems"] = values_of_systems(run.systems, task.corpus, task.goal.objective)
        made["indicators"] = {name: label for label, name in run.systems.items()}
    return made


def _scores(
    sums: Sums, metrics: Sequence[Metric], n_references: int, announce: Printer
) -> dict[str, object]:
    """Entries of a weights file about the tuning set: BLEU, which comes first, and the others.

    sums: summed statistics (D, W) of the metrics, side by side. Several are announced as they are
    published, with their signatures.
    """
    import numpy as np

    from rerank.tuning.objective import length_of

    whole, begin, shown = sums.sum(axis=0), 0, list[str]()
    entries: list[dict[str, object]] = []
    for metric in metrics:
        score = metric.shown(float(metric.scores(np.asarray(whole[begin : begin + metric.width]))))
        signature = metric.signature(n_references)
        shown.append(f"{metric.name} {score:.2f} ({signature})")
        entries.append({"score": score, "signature": signature})
        begin += metric.width
    if len(shown) > 1:
        announce(f"decoded: {'; '.join(shown)}")
    bleu, *others = entries
    found = {"bleu": bleu["score"], "length_ratio": length_of(sums), "signature": bleu["signature"]}
    named = {metric.name: one for metric, one in zip(metrics[1:], others, strict=True)}
    return {**found, **({"metrics": named} if named else {})}


def _write(
    out: str,
    result: TuningResult,
    made: Mapping[str, object],
    frame: Sequence[bytes] | None,
    notices: Notices,
) -> None:
    """Write the tuned weights with their provenance."""
    from rerank.corpus.columns import decoder_names
    from rerank.formats.weights import Weights, write_weights
    from rerank.tuning.provenance import by_name

    task = result.task
    written = Weights(
        by_name(task.full(result.weights), task.space.labels),
        task.features.other_sparse(task.space),
        result.scale.alpha if result.scale else None,
        made,
        decoder_names=decoder_names(task.space.labels),
    )
    write_weights(out, written, base=frame, notices=notices)
