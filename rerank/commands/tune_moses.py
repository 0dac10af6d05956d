"""`rerank tune-moses`: weights from the files of Moses' extractor, in place of Moses' mert."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rerank.files.paths import display
from rerank.notices import Notices
from rerank.options import Command, option, optional, optional_file, part, record
from rerank.runs.options import Messages, printed
from rerank.tuning.plan import Plan, TunedWeights
from rerank.values import FILE, NameList

if TYPE_CHECKING:
    from rerank.formats.weights import Weights
    from rerank.scorers.features import FeatureSpace
    from rerank.tuning.features import TunedFeatures


@record
class ExtractorFiles:
    """Files of Moses' extractor, and of its mert."""

    features: tuple[str, ...] = option(
        "features.dat of Moses' extractor; repeatable, one for each --scores.", type=FILE, many=True
    )
    scores: tuple[str, ...] = option(
        "scores.dat of the same run of extractor, with BLEU; repeatable.", type=FILE, many=True
    )
    init: str | None = optional_file(
        "init.opt to start from: three lines, start, least, largest values."
    )
    tune: tuple[str, ...] | None = optional(
        "Comma-separated features to tune; the others keep their start weight [default: all].",
        type=NameList(),
        metavar="NAMES",
        rare=True,
    )


@record
class TuneMosesOptions:
    """Options of `rerank tune-moses`."""

    files: ExtractorFiles = part(ExtractorFiles, "Files of the extractor")
    weights: TunedWeights = part(TunedWeights, "Weights")
    plan: Plan = part(
        Plan,
        "How weights are found",
        without={*("metrics", "files", "tokenize", "documents", "worst", "replicates", "held_out")},
    )
    messages: Messages = part(Messages, "Messages", without={"verbose"})


@printed
def tune_moses(options: TuneMosesOptions, notices: Notices) -> str:
    r"""Tune the feature weights on the files of Moses' extractor, in place of Moses' mert.

    Dense features are tuned, all where none is named. They start from --start, from --init, or from
    0. Weights of sparse features in --start count, but are not tuned. With the pairs of all rounds
    of mert-moses.pl, repeated hypotheses count once; the first candidates, whose length can be
    kept, are those of the first pair. The files hold no documents and no metric but BLEU.

    Example:
      rerank tune-moses --features run1.features.dat --scores run1.scores.dat \
        --init run1.init.opt --base moses.ini --out tuned.ini
    """
    from rerank.formats.weights import write_weights
    from rerank.report.figures import plot_surface
    from rerank.tuning.moses import read_extracted, tune_extracted

    read, weights, plan = options.files, options.weights, options.plan
    announce = options.messages.announce
    files = [*read.features, *read.scores, *([] if read.init is None else [read.init])]
    plan.check(ranges=bool(weights.ranges), start=bool(weights.start or read.init))
    inputs = weights.check_files([*files, *weights.inputs])
    frame, start = weights.read(notices)
    data = read_extracted(read.features, read.scores, notices)
    announce(
        f"{len(data.features)} hypotheses of {len(data.sentences)} sentences, "
        f"{data.n_repeated} duplicates left out"
    )
    space = data.space
    features = _features(options, start, space, notices)
    features.check(space, announce)
    if lacking := set(data.sparse.names) - features.other_sparse(space).keys():
        source = display(weights.start or read.features[0])
        notices.add("sparse-feature-without-weight", source=source, count=len(lacking))
    features.check_base(space, frame, weights.base)  # before the work
    result = tune_extracted(data, features, plan, notices, announce)
    inputs.check()
    scale, search = result.scale(notices), result.search
    made: dict[str, object] = {
        **plan.entries(search.goal.name, [*files, *weights.inputs]),
        **result.entries(),
        **features.entries(search.names),
        "verdict": result.verdict(),
    }
    if result.selection:
        made |= result.selection.entries(search.names)
    if scale:
        announce(scale.to_text())
        made |= scale.to_provenance()
    if weights.plot is not None:
        plot_surface(weights.plot, result.pool, result.result.best.weights, search)
    written = features.tuned(space, result.weights, scale.alpha if scale else None, made)
    write_weights(weights.out, written, base=frame, notices=notices)
    return f"verdict: {made['verdict']}\n{result.to_text()}"


COMMAND = Command("tune-moses", TuneMosesOptions, tune_moses)


def _features(
    options: TuneMosesOptions, start: Weights | None, space: FeatureSpace, notices: Notices
) -> TunedFeatures:
    """The tuned features, with the start weights of --start, those of an init.opt, or 0."""
    from rerank.corpus.columns import column_names
    from rerank.formats.weights import Weights, by_name
    from rerank.tuning.features import TunedFeatures
    from rerank.tuning.moses import read_init_opt

    init, source = options.files.init, display(options.weights.start or "")
    if init is not None:
        begin = read_init_opt(init, column_names(space.labels), notices)
        if start is not None:
            line = f"start weights are those of {source}, not of {display(init)}"
            options.messages.announce(line)
        elif begin.any():
            source, start = display(init), Weights(by_name(begin, space.labels))
    ranges = dict(options.weights.ranges)
    return TunedFeatures(options.files.tune or (), start, source, ranges, "--tune")
