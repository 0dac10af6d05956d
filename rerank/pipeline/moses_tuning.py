"""`rerank tune-moses`: weights from the files of Moses' extractor, in place of Moses' mert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.errors import RerankError
from rerank.files.lines import InputFiles
from rerank.files.paths import display
from rerank.formats.moses_ini import merged
from rerank.formats.weights import Weights, read_base, read_start_weights, write_weights
from rerank.notices import Notices, Printer
from rerank.pipeline.tuning import TunedWeights
from rerank.pipeline.tuning_outcome import by_name, feature_entries, plan_entries, surface
from rerank.scorers.features import FeatureSpace
from rerank.tuning.features import TunedFeatures
from rerank.tuning.goal import SearchGoal, goal_of, objective_of
from rerank.tuning.moses import read_extracted, read_init_opt
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.run import ZEROS, price_note
from rerank.tuning.scale import bleu_quality, fit_scale
from rerank.tuning.selection import Selection, cross_validate
from rerank.tuning.tuners.ascent import Axes, Bounds, Optimum
from rerank.tuning.tuners.mert import PoolResult, report_features


@dataclass(frozen=True, slots=True)
class MosesTuning:
    """The weights that `tune_moses` has written, and where they come from.

    result: the weights on the pool; selection: what cross-validation chose, None without it
    """

    weights: Weights
    goal: SearchGoal
    result: PoolResult
    selection: Selection | None

    def to_text(self) -> str:
        """One line for people."""
        best, start = self.result.best, self.result.start
        line = (
            f"tuned BLEU {best.bleu:.2f} (length ratio {best.ratio:.3f}); start "
            f"{start.bleu:.2f} ({start.ratio:.3f}){price_note(self.goal)}"
        )
        return f"{self.selection.to_text()}; on the tuning set, {line}" if self.selection else line


def tune_moses(
    features: Sequence[str | Path],
    scores: Sequence[str | Path],
    weights: TunedWeights,
    *,
    init: str | Path | None = None,
    plan: Plan | None = None,
    notices: Notices,
    announce: Printer = lambda line: None,
) -> MosesTuning:
    """Tune weights on pairs of features.dat and scores.dat.

    Dense features are tuned, all where none is named. They start from `weights.start`, any file of
    weights, or from `init`, an init.opt, or from 0. Weights of sparse features in `weights.start`
    count, but are not tuned. With the pairs of all rounds of mert-moses.pl, repeated hypotheses
    count once; the first candidates, whose length can be kept, are those of the first pair. The
    files hold no documents and no metric but BLEU, for which alone a plan may ask. O(n F) memory.
    """
    plan = plan or Plan()
    files = [*features, *scores, *([] if init is None else [init])]
    plan.check(ranges=bool(weights.ranges), start=bool(weights.start or init))
    inputs = InputFiles([*files, *weights.inputs])
    weights.check(files)
    given = None if weights.start is None else read_start_weights(weights.start, notices)
    frame = None if weights.base is None else read_base(weights.base, notices)
    data = read_extracted(features, scores, notices)
    announce(
        f"{len(data.features)} hypotheses of {len(data.sentences)} sentences, "
        f"{data.n_repeated} duplicates left out"
    )
    space = FeatureSpace.of(data.labels, (), total=False)
    tuned = _features(weights, given, init, space, notices=notices, announce=announce)
    tuned.check(space, announce)
    sparse = tuned.other_sparse(space)
    if lacking := set(data.sparse.names) - sparse.keys():
        kind = "sparse feature without weight, counted as 0"
        notices.add(kind, source=display(weights.start or features[0]), count=len(lacking))
    if frame is not None:  # a fault is reported before the work
        zeros = by_name(np.zeros(space.width), space)
        merged(frame, zeros, sparse, None, Notices(), source=display(weights.base or ""))
    columns, full = tuned.columns(space), tuned.start(space)
    pool = _held(data.pool(sparse), columns, full)
    names = [column_names(space.labels)[column] for column in columns]
    options, bounds = plan.objective_options, tuned.bounds(space)
    goal = goal_of(
        options,
        objective_of(options, ()),
        pool.first,
        full[columns],
        settled=bool(pool.fixed.any()),
        scale=lambda: Axes.of(pool).scale,
    )
    announce(f"maximised: {goal.name}")
    bounds = Bounds(bounds.low[columns], bounds.high[columns])
    search, start = PoolSearch(plan, goal, bounds, names), full[columns]
    selection = cross_validate(pool, start, search, notices, announce)
    if selection:
        report_features(Axes.of(pool), names, notices)
        chosen = Optimum.at(pool, selection.weights(selection.tuned), goal)
        found = PoolResult(chosen, Optimum.at(pool, start, goal))
    else:
        found = search.result(pool, start, notices)
    best = found.best
    full[columns] = best.weights
    if not full.any():
        raise RerankError(ZEROS)
    inputs.check()
    quality = bleu_quality(pool.statistics)
    scale = fit_scale(pool.scores(best.weights), quality, pool.offsets, notices)
    made: dict[str, object] = {
        **plan_entries(plan, goal, [*files, *weights.inputs]),
        **_result_entries(found),
        **feature_entries(names, tuned.ranges),
        "flat": surface(pool, best.weights, goal.objective, names, plot=weights.plot),
    }
    if selection:
        made["selection"] = selection.to_dict()
    if scale:
        announce(scale.to_text())
        made |= scale.to_provenance()
    result = Weights(by_name(full, space), sparse, scale.alpha if scale else None, made)
    write_weights(weights.out, result, base=frame, notices=notices)
    return MosesTuning(result, goal, found, selection)


def _features(
    weights: TunedWeights,
    given: Weights | None,
    init: str | Path | None,
    space: FeatureSpace,
    *,
    notices: Notices,
    announce: Printer,
) -> TunedFeatures:
    """The tuned features, with start weights that are given, those of an init.opt, or 0."""
    source = display(weights.start or "")
    if init is not None:
        values = read_init_opt(init, column_names(space.labels), notices)
        if not values.usual:
            notices.add(
                "ranges other than 0 to 1, which weights may leave, as they may in Moses' mert; "
                "--range keeps weights within a range",
                source=display(init),
            )
        if given is not None:
            announce(f"start weights are those of {source}, not of {display(init)}")
        elif values.weights.any():
            source, given = display(init), Weights(by_name(values.weights, space))
            return TunedFeatures(weights.features, given, source, weights.ranges, "--tune")
    return TunedFeatures(weights.features, given, source, weights.ranges, "--tune")


def _held(pool: Pool, tuned: NDArray[np.int64], start: NDArray[np.float64]) -> Pool:
    """The pool of the tuned columns (G,); the others go into the fixed scores."""
    held = np.setdiff1d(np.arange(len(start)), tuned)
    if not len(held):
        return pool
    fixed = pool.fixed + pool.features[:, held] @ start[held]
    return replace(pool, features=pool.features[:, tuned], fixed=fixed)


def _result_entries(found: PoolResult) -> Mapping[str, object]:
    """Entries of the weights file about the best optimum, and the spread of all optima."""
    optima = np.array([optimum.bleu for optimum in found.optima])
    spread = np.quantile(optima, [0, 0.5, 1]).tolist() if len(optima) else []
    return {
        "statistics": "Moses' extractor",
        "bleu": found.best.bleu,
        "length_ratio": found.best.ratio,
        "optima": {"found": len(optima), "bleu": spread},
    }
