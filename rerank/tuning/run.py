"""Tuning in memory: from documents with features and references to weights, without any file.

`rerank tune-mert` and `rerank.tune` make the tuning set and the decoder for `tune`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rerank.errors import RerankError, UsageError
from rerank.metrics import Metric
from rerank.notices import Notices
from rerank.tuning.features import TunedFeatures
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.mert.mert import report_features
from rerank.tuning.objectives.objective import Sums, bleu_of, length_of
from rerank.tuning.plan import Plan
from rerank.tuning.pools.kinds import best_round
from rerank.tuning.pools.tuning_set import Choices, TuningSet
from rerank.tuning.replicates import Replicates, held_out, resampled
from rerank.tuning.rounds import describe_bleu
from rerank.tuning.saved import SavedSearches
from rerank.tuning.scale import Scale
from rerank.tuning.selection import NONE
from rerank.tuning.selection.cross_validation import PoolTuning, cross_validate
from rerank.tuning.selection.selection import SURE, Selection
from rerank.tuning.system_start import start_of_systems
from rerank.tuning.task import Decode, Task

Announce = Callable[[str], None]
ZEROS = (
    "the result of tuning is all-zero weights, which choose the first candidates; "
    "give start weights with --start"
)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutScores:
    """Scores of documents held out from tuning, by what was decoded: BLEU, and the objective.

    The keys of both are `first candidates`, `start weights` (unless all zero) and `tuned weights`.
    """

    documents: tuple[str, ...]
    bleu: dict[str, float]
    objective: dict[str, float]

    def to_dict(self) -> dict[str, object]:
        """Entry of a weights file."""
        names = list(self.documents)
        return {"documents": names, "bleu": self.bleu, "objective": self.objective}

    def to_text(self) -> str:
        """The gain or loss of the tuned weights, for people."""
        what = "start weights" if "start weights" in self.bleu else "first candidates"
        before, after = self.bleu[what], self.bleu["tuned weights"]
        change = "fell" if after < before else "rose" if after > before else "stayed"
        return f"held-out BLEU {change}: {what} {before:.2f}, tuned weights {after:.2f}"


@dataclass(frozen=True, slots=True, eq=False)
class TuningResult:
    """Tuned weights, and what they decode to on the documents that they were tuned on.

    task: on these documents; weights: (G,) of its tuned columns; path, statistics: of what they
    decode to, (D, W); selection: what cross-validation chose, None without it; scale: of p(path) ∝
    exp(α · score), None where it could not be fitted
    """

    task: Task
    weights: NDArray[np.float64]
    path: Choices
    statistics: Sums
    replicates: Replicates | None
    selection: Selection | None
    held_out: HeldOutScores | None
    scale: Scale | None

    @property
    def full(self) -> NDArray[np.float64]:
        """Weights (F,) of all columns."""
        return self.task.full(self.weights)

    @property
    def baseline(self) -> Sums:
        """Summed statistics (D, W) of the first candidates."""
        return self.task.corpus.sums(self.task.corpus.first)

    @property
    def bleu(self) -> float:
        """BLEU of the tuned weights."""
        return bleu_of(self.statistics)

    @property
    def length_ratio(self) -> float:
        """Length ratio of the tuned weights."""
        return length_of(self.statistics)

    @property
    def baseline_bleu(self) -> float:
        """BLEU of the first candidates."""
        return bleu_of(self.baseline)

    @property
    def baseline_ratio(self) -> float:
        """Length ratio of the first candidates."""
        return length_of(self.baseline)


def tune(
    corpus: TuningSet,
    metrics: Sequence[Metric],
    *,
    decode: Decode,
    features: TunedFeatures | None = None,
    plan: Plan | None = None,
    saved: SavedSearches | None = None,
    notices: Notices | None = None,
    announce: Announce = lambda line: None,
) -> TuningResult:
    """Weights tuned on documents in memory; RerankError where only all-zero weights are found.

    metrics: those whose statistics `corpus` holds, BLEU first; decode: see
    `rerank.tuning.task.Decode`; saved: where finished searches are kept, for a run that continues
    this one; announce: called with a line about each round.

    Features of order 0 are tuned on one pool. With features that depend on context, pools `auto`
    and `conditional` are made anew in each round under the path decoded last; `exact` needs none.
    With `select` of the plan, cross-validation then chooses weights between the start and these.
    Where the features have alternatives and no start weights, one of these is the start.
    The scale of the weights is fitted by likelihood under the path that they decode.
    """
    features, plan, notices = features or TunedFeatures(), plan or Plan(), notices or Notices()
    objective = plan.objective_options.objective(metrics)
    saved = saved or SavedSearches()
    whole = Task(corpus, features, objective, plan, decode, notices, saved)
    task, rest = _divided(whole)
    if features.alternatives.systems and features.given is None:
        started = start_of_systems(task, announce)
        task = replace(task, features=started)
        rest = rest and replace(rest, features=started)
    announce(f"maximised: {task.goal.name}")
    announce(describe_bleu("first candidates", task.corpus.sums(task.corpus.first)))
    selection = None if plan.select == NONE else _selected(task, announce)
    replicates = None
    if selection and (selection.kept or (not task.contextual and plan.replicates == 1)):
        report_features(Axes.of(task.pool(task.corpus.first)), task.names, notices)
        weights = selection.weights(selection.tuned)
    else:
        if plan.replicates == 1:
            weights = _tuned(task, announce)
        else:
            replicates = _replicates(task, announce)
            announce(replicates.to_text(task.names))
            weights = replicates.mean
        weights = selection.weights(weights) if selection else weights
    path, sums = task.decode(weights)
    held = None if rest is None else _held_out_scores(rest, weights, announce)
    scale = task.corpus.scale(path, task.full(weights), notices)
    if scale is not None:
        announce(scale.to_text())
    if saved.found:
        announce(f"kept from a run that was stopped: {saved.found} searches for weights")
    return TuningResult(task, weights, path, sums, replicates, selection, held, scale)


def _selected(task: Task, announce: Announce) -> Selection | None:
    """What cross-validation chooses, if the plan asks for it and the lists allow it.

    Features that depend on context are scored after the path of the start weights.
    """
    start, path = task.start[task.tuned], task.corpus.first
    if task.contextual and task.full(start).any():
        path = task.decode(start)[0]
    tuning = PoolTuning(start, task.plan, task.goal, task.bounds, task.names, saved=task.saved)
    if task.features.alternatives.systems:
        tuning = replace(tuning, start_name=task.features.source, confidence=SURE)
    return cross_validate(task.pool(path), tuning, task.notices, announce)


def _tuned(task: Task, announce: Announce) -> NDArray[np.float64]:
    """Weights (G,) of the best round."""
    start = task.start[task.tuned]
    found = best_round(task, lambda done: announce(done.to_text()))
    announce(f"stopped: {found.reason}")
    announce(f"kept: round {found.best.number}")
    weights = found.best.result.weights
    if not task.full(weights).any():
        raise RerankError(ZEROS)
    return weights if np.array_equal(weights, start) else weights / task.norm(weights)


def _replicates(task: Task, announce: Announce) -> Replicates:
    """Tunings on resampled documents, each with its own seed.

    All weights are divided by one number, so that their mean has norm 1.
    """
    seed, n_documents = task.plan.settings.seed, len(task.corpus.documents)
    rng = np.random.default_rng(seed)
    seeds = np.random.SeedSequence(seed).generate_state(task.plan.replicates)
    found, bleu = [], []
    for r, own in enumerate(seeds.tolist(), 1):
        announce(f"replicate {r} of {task.plan.replicates}")
        found.append(_tuned(task.on(resampled(n_documents, rng), own), announce))
        sums = task.decode(found[-1])[1]
        announce(describe_bleu(f"replicate {r}, all documents:", sums))
        bleu.append(bleu_of(sums))
    weights = np.array([one / task.norm(one) for one in found])
    return Replicates(weights / task.norm(weights.mean(axis=0)), tuple(bleu))


def _divided(task: Task) -> tuple[Task, Task | None]:
    """The task on the documents that are tuned on, and on those held out, if any."""
    share, seed = task.plan.held_out, task.plan.settings.seed
    if not share:
        return task, None
    n_documents = len(task.corpus.documents)
    try:
        kept = held_out(n_documents, share, np.random.default_rng(seed))
    except ValueError as fault:
        raise UsageError(f"--hold-out {share:g}: {fault}") from None
    rest = [d for d in range(n_documents) if d not in kept]
    return task.on(rest, seed), task.on(kept, seed)


def _held_out_scores(task: Task, weights: NDArray[np.float64], announce: Announce) -> HeldOutScores:
    """Scores of the held-out documents under the tuned weights (G,), all of them announced."""
    names = tuple(document.name for document in task.corpus.documents)
    announce(f"held out: {', '.join(names)}")
    sums = {"first candidates": task.corpus.sums(task.corpus.first)}
    if task.start.any():
        sums["start weights"] = task.decode(task.start[task.tuned])[1]
    sums["tuned weights"] = task.decode(weights)[1]
    for what, counts in sums.items():
        announce(describe_bleu(f"held out, {what}:", counts))
    bleu = {what: bleu_of(counts) for what, counts in sums.items()}
    values = {what: task.goal.objective.value(counts) for what, counts in sums.items()}
    if values != bleu:
        listed = ", ".join(f"{what} {value:.3f}" for what, value in values.items())
        announce(f"held out, {task.goal.objective.name}: {listed}")
    return HeldOutScores(names, bleu, values)
