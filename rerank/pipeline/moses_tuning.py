"""`rerank tune-moses`: weights from the files of Moses' extractor, in place of its mert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.labels import column_names
from rerank.errors import InputError, RerankError, UsageError
from rerank.files.lines import display, read_lines
from rerank.formats.moses_ini import merged
from rerank.formats.weights import Weights, read_weights, write_weights
from rerank.notices import Notices
from rerank.pipeline.criteria import Aims
from rerank.pipeline.sources import Announce
from rerank.pipeline.tuning import TunedWeights
from rerank.pipeline.tuning_outcome import asked, by_name, how_made, surface
from rerank.pipeline.tuning_plan import USUAL, Plan
from rerank.pipeline.wanted import Wanted
from rerank.scorers.features import FeatureSpace
from rerank.tuning.ascent import Axes, Optimum
from rerank.tuning.bounds import Bounds
from rerank.tuning.extracted import Extracted, read_extracted
from rerank.tuning.mert import Tuned
from rerank.tuning.pool import Pool
from rerank.tuning.pool_tuner import PoolTuner
from rerank.tuning.scale import Scale, fit_scale_to_bleu
from rerank.tuning.start import read_init_opt


@dataclass(frozen=True, slots=True)
class MosesTuning:
    """What `tune_moses` found, on its pool: BLEU and length ratio, the start weights' too."""

    weights: Weights
    bleu: float
    length_ratio: float
    start_bleu: float
    start_ratio: float

    def to_text(self) -> str:
        """One line for people."""
        return (
            f"tuned BLEU {self.bleu:.2f} (length ratio {self.length_ratio:.3f}); start "
            f"{self.start_bleu:.2f} ({self.start_ratio:.3f})"
        )


def tune_moses(
    features: Sequence[str | Path],
    scores: Sequence[str | Path],
    weights: TunedWeights,
    *,
    init: str | Path | None = None,
    plan: Plan = USUAL,
    notices: Notices,
    announce: Announce = lambda line: None,
) -> MosesTuning:
    """Tune weights on pairs of features.dat and scores.dat.

    Dense features are tuned, all where none is named. They start from `weights.start`, any file of
    weights, or from `init`, an init.opt, or from 0; what the former says of sparse features counts,
    but is not tuned. Of the pairs of all rounds of mert-moses.pl, hypotheses that come again count
    once; the first candidates, whose length is kept to, are those of the first pair. The files know
    neither documents nor metrics but BLEU, and are one pool: UsageError for a plan with others.
    O(n F) memory.
    """
    given_files = [*features, *scores, *([] if init is None else [init])]
    _check(plan, ranges=bool(weights.ranges), start=bool(weights.start or init))
    weights.check(given_files)
    given = None if weights.start is None else read_weights(weights.start, notices)
    frame = None if weights.base is None else list(read_lines(weights.base, notices))
    data = read_extracted(features, scores, notices)
    announce(
        f"{len(data.features)} hypotheses of {len(data.sentences)} sentences, "
        f"{data.n_repeated} that came again left out"
    )
    space = FeatureSpace.of(data.labels, (), total=False)
    wanted = _wanted(weights, given, init, space, notices=notices, announce=announce)
    wanted.check(space, announce)
    sparse = given.sparse if given else {}
    if lacking := set(data.sparse.names) - sparse.keys():
        kind = "sparse feature without weight, counted as 0"
        notices.add(kind, source=display(weights.start or features[0]), count=len(lacking))
    if frame is not None:  # refused before the work, not after it
        zeros = by_name(np.zeros(space.width), space)
        merged(frame, zeros, sparse, None, Notices(), source=display(weights.base or ""))
    task = _Task.of(data, space, wanted, sparse, plan)
    announce(f"maximised: {task.tuner.goal.name}")
    found = task.tuner.tune(task.pool, task.start[task.tuned], notices)
    full = task.full(found.best)
    if not full.any():
        raise RerankError("tuning found no weights; give some to start from with --start")
    made = _provenance([*given_files, *weights.read], plan, task, found)
    made |= asked(task.tuner.names, wanted.ranges)
    made |= {"flat": task.flatness(found.best, weights.plot)}
    scale = task.scale(found.best, notices)
    if scale:
        announce(scale.to_text())
        made |= scale.to_provenance()
    result = Weights(by_name(full, space), sparse, scale.alpha if scale else None, made)
    write_weights(weights.out, result, base=frame, notices=notices)
    best = found.best
    return MosesTuning(result, best.bleu, best.ratio, found.start.bleu, found.start.ratio)


def _check(plan: Plan, *, ranges: bool, start: bool) -> None:
    """UsageError for what does not go together, and for what the files know nothing of."""
    plan.check(ranges=ranges, start=start)
    aims = plan.aims
    possible = Aims(
        length=aims.length,
        price=aims.price,
        window=aims.window,
        window_of=aims.window_of,
        shrinkage=aims.shrinkage,
    )
    if plan != Plan(algorithm=plan.algorithm, aims=possible, settings=plan.settings):
        raise UsageError(
            "files of Moses' extractor know neither documents nor other metrics: objectives, "
            "pools, replicates and documents held out are for tune-mert"
        )


def _wanted(
    weights: TunedWeights,
    given: Weights | None,
    init: str | Path | None,
    space: FeatureSpace,
    *,
    notices: Notices,
    announce: Announce,
) -> Wanted:
    """Which features are tuned, from the weights given, from those of an init.opt, or from 0."""
    source = display(weights.start or "")
    if init is not None:
        ranges = read_init_opt(init, column_names(space.labels), notices)
        if not ranges.usual:
            notices.add(
                "ranges other than 0 to 1, not kept to: weights may leave them, as those of "
                "Moses' mert may; --range holds them",
                source=display(init),
            )
        if given is not None:
            announce(f"start weights are those of {source}, not of {display(init)}")
        elif ranges.weights.any():
            source, begin = display(init), Weights(by_name(ranges.weights, space))
            return Wanted(weights.features, begin, source, weights.ranges)
    if given is not None:
        _refuse_columns(given, space, source)
    return Wanted(weights.features, given, source, weights.ranges)


def _refuse_columns(given: Weights, space: FeatureSpace, source: str) -> None:
    """`InputError` for weights of `LM0_0`, which would be those of a sparse feature."""
    columns = {f"{label.name}_{i}" for label in space.labels for i in range(label.width)}
    if wrong := sorted(columns & given.sparse.keys()):
        name = wrong[0].rpartition("_")[0]
        raise InputError(
            f"expected weights of features as a line '{name}= w w', found one of {wrong[0]!r}",
            source=source,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """The pool of the G columns that are tuned, all F weights to start from, and the tuner."""

    pool: Pool
    tuned: NDArray[np.int64]
    start: NDArray[np.float64]
    tuner: PoolTuner

    @classmethod
    def of(
        cls,
        data: Extracted,
        space: FeatureSpace,
        wanted: Wanted,
        sparse: Mapping[str, float],
        plan: Plan,
    ) -> _Task:
        """The task; columns that are not tuned count with their start weight."""
        tuned, start, bounds = wanted.columns(space), wanted.start(space), wanted.bounds(space)
        pool = data.pool(sparse)
        held = np.setdiff1d(np.arange(space.width), tuned)
        if len(held):
            fixed = pool.fixed + pool.features[:, held] @ start[held]
            pool = replace(pool, features=pool.features[:, tuned], fixed=fixed)
        settled = bool(pool.fixed.any())
        criterion = plan.kept_to(plan.criterion(()), start[tuned], settled=settled)
        scale = Axes.of(pool).scale if criterion.shrinkage > 0 else np.zeros(len(tuned))
        names = column_names(space.labels)
        tuner = PoolTuner(
            plan.algorithm,
            replace(plan.settings, criterion=criterion),
            [names[column] for column in tuned],
            Bounds(bounds.low[tuned], bounds.high[tuned]),
            criterion.goal(pool.first, start[tuned], scale),
        )
        return cls(pool, tuned, start, tuner)

    def full(self, best: Optimum) -> NDArray[np.float64]:
        """All weights (F,) from the best ones (G,)."""
        full = self.start.copy()
        full[self.tuned] = best.weights
        return full

    def scale(self, best: Optimum, notices: Notices) -> Scale | None:
        """The scale of the best weights; None, with a notice, where there is none."""
        scores = self.pool.scores(best.weights)
        return fit_scale_to_bleu(scores, self.pool.statistics, self.pool.offsets, notices)

    def flatness(self, best: Optimum, plot: str | Path | None) -> dict[str, list[float | None]]:
        """Flatness around the best weights, drawn where it is asked for."""
        objective, names = self.tuner.goal.objective, self.tuner.names
        return surface(self.pool, best.weights, objective, names, plot=plot)


def _provenance(
    files: Sequence[str | Path], plan: Plan, task: _Task, found: Tuned
) -> dict[str, object]:
    """What a weights file says of its making, and of the optima that were found."""
    optima = np.array([optimum.bleu for optimum in found.optima])
    spread = np.quantile(optima, [0, 0.5, 1]).tolist() if len(optima) else []
    return {
        **how_made(plan.algorithm, task.tuner.goal.name, plan.settings, files),
        "statistics": "Moses' extractor",
        "bleu": found.best.bleu,
        "length_ratio": found.best.ratio,
        "optima": {"found": len(optima), "bleu": spread},
    }
