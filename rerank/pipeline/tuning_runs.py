"""A tuning run on the documents of a task: once, or in replicates whose weights are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.errors import RerankError, UsageError
from rerank.metrics.bleu import corpus_bleu
from rerank.pipeline.sources import Announce
from rerank.pipeline.tuning_outcome import scored
from rerank.pipeline.tuning_plan import Task
from rerank.pipeline.tuning_pools import make_pools
from rerank.tuning.replicates import Replicates, held_out, resampled
from rerank.tuning.rounds import total, tune_in_rounds

Weights = NDArray[np.float64]


def tuned(task: Task, announce: Announce) -> Weights:
    """Weights (G,) of the best round, all of them told; RerankError where none are found."""
    ended = tune_in_rounds(
        make_pools(task),
        task.start[task.tuned],
        fixed=task.fixed,
        report=lambda done: announce(done.to_text()),
        value=task.value,
        smoothed=task.goal.smoothed,
    )
    announce(f"stopped: {ended.reason}")
    announce(f"kept: round {ended.best.number}")
    weights = ended.best.step.weights
    if not task.full(weights).any():
        raise RerankError("tuning found no weights; give some to start from with --start")
    given = np.array_equal(weights, task.start[task.tuned])  # they stay as they are
    return weights if given else weights / task.norm(weights)


@dataclass(frozen=True, slots=True, eq=False)
class Averaged:
    """The mean of replicates, and what each of them reaches on all documents."""

    replicates: Replicates
    bleu: tuple[float, ...]

    def to_provenance(self, names: Sequence[str]) -> dict[str, object]:
        """What a weights file says of them."""
        spread = dict(zip(names, self.replicates.spread.tolist(), strict=True))
        return {"replicates": {"bleu": list(self.bleu), "spread": spread}}

    def to_text(self, names: Sequence[str]) -> str:
        """Means and standard deviations, for people."""
        figures = zip(names, self.replicates.mean, self.replicates.spread, strict=True)
        listed = ", ".join(f"{name} {mean:.4f} ± {spread:.4f}" for name, mean, spread in figures)
        return f"mean of {len(self.bleu)} replicates: {listed}"


def averaged(task: Task, announce: Announce) -> Averaged:
    """Replicates of a tuning, each on as many documents drawn anew, and with a seed of its own.

    All weights are divided by one number, so that their mean has norm 1.
    """
    rng = np.random.default_rng(task.settings.seed)
    n_documents = len(task.corpus.documents)
    found, bleu = [], []
    seeds = np.random.SeedSequence(task.settings.seed).generate_state(task.plan.replicates)
    for r, seed in enumerate(seeds.tolist()):
        announce(f"replicate {r + 1} of {task.plan.replicates}")
        drawn = task.corpus.of(resampled(n_documents, rng))
        found.append(tuned(task.on(drawn, seed), announce))
        sums = task.decode(found[-1])[1]
        announce(scored(f"replicate {r + 1}, all documents:", sums))
        bleu.append(float(corpus_bleu(total(sums))))
    weights = np.array([one / task.norm(one) for one in found])
    return Averaged(Replicates(weights / task.norm(weights.mean(axis=0))), tuple(bleu))


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Documents kept from tuning."""

    task: Task

    def evaluated(self, weights: Weights, announce: Announce) -> dict[str, object]:
        """What a weights file says of them: BLEU of the first candidates, the start, the weights.

        All are decoded and told here; weights: (G,).
        """
        task = self.task
        names = [document.name for document in task.corpus.documents]
        announce(f"held out: {', '.join(names)}")
        paths = {"first candidates": task.corpus.sums(task.corpus.first)}
        if task.start.any():
            paths["start weights"] = task.decode(task.start[task.tuned])[1]
        paths["tuned weights"] = task.decode(weights)[1]
        for what, sums in paths.items():
            announce(scored(f"held out, {what}:", sums))
        bleu = {what: float(corpus_bleu(total(sums))) for what, sums in paths.items()}
        values = {what: task.goal.objective.value(sums) for what, sums in paths.items()}
        if values != bleu:
            told = ", ".join(f"{what} {value:.3f}" for what, value in values.items())
            announce(f"held out, {task.goal.objective.name}: {told}")
        return {"held_out": {"documents": names, "bleu": bleu, "objective": values}}


def divided(task: Task) -> tuple[Task, HeldOut | None]:
    """The task on the documents that are tuned on, and those held out if there are to be any."""
    if not task.plan.held_out:
        return task, None
    n_documents = len(task.corpus.documents)
    rng = np.random.default_rng(task.settings.seed)
    try:
        kept = held_out(n_documents, task.plan.held_out, rng)
    except ValueError as fault:
        raise UsageError(f"--hold-out {task.plan.held_out:g}: {fault}") from None
    rest = [d for d in range(n_documents) if d not in kept]
    seed = task.settings.seed
    return task.on(task.corpus.of(rest), seed), HeldOut(task.on(task.corpus.of(kept), seed))
