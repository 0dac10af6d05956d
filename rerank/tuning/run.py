"""Tuning in memory: from documents with features and references to weights, without any file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names
from rerank.errors import RerankError, UsageError
from rerank.formats.run_records import FIRST, first_named
from rerank.formats.weights import Weights
from rerank.metrics import Metric
from rerank.metrics.significance import Gain, judged
from rerank.notices import Notices, Printer
from rerank.scorers import TOTAL
from rerank.scorers.agreement import AGREEMENT
from rerank.tuning.cross_validation import cross_validate
from rerank.tuning.features import (
    TunedFeatures,
    start_of_lists,
    start_of_systems,
    sums_of,
    values_of_systems,
)
from rerank.tuning.goal import SearchGoal
from rerank.tuning.objective import CORPUS_BLEU, Objective, Sums, bleu_of, length_of, objective_of
from rerank.tuning.plan import NONE, Plan
from rerank.tuning.pool import Choices, Pool, TuningSet
from rerank.tuning.pool_search import SavedSearches
from rerank.tuning.rounds import (
    PATIENCE,
    Decode,
    DecodedWeights,
    Task,
    describe_bleu,
    tune_in_rounds,
)
from rerank.tuning.scale import Scale, scale_of_path
from rerank.tuning.selection import DOCUMENTS, FEWEST_FOR_ERRORS, Selection, beside
from rerank.tuning.tuners.ascent import Axes, Optimum

FEW = 10  # documents; fewer tell little
ZEROS = (
    "the result of tuning is all-zero weights, which choose the first candidates; "
    "give start weights with --start"
)
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutScores:
    """Scores of documents held out from tuning, by what was decoded: BLEU, and the objective.

    That are `first candidates`, `start weights` (unless all zero) and `tuned weights`.
    gain, error: in BLEU from the last but one to the last, and its standard error
    """

    documents: tuple[str, ...]
    bleu: dict[str, float]
    objective: dict[str, float]
    gain: float
    error: float

    @property
    def baseline(self) -> str:
        """What the tuned weights are compared with."""
        return [*self.bleu][-2]

    def to_text(self) -> str:
        """The gain or loss of the tuned weights, for people."""
        before, after = self.bleu[self.baseline], self.bleu["tuned weights"]
        equal = f"{before:.2f}" == f"{after:.2f}"
        change = "stayed" if equal else "fell" if after < before else "rose"
        return (
            f"held-out BLEU {change}: {self.baseline} {before:.2f}, tuned weights {after:.2f}, "
            f"{self.gain:+.2f} ± {self.error:.2f}"
        )


@dataclass(frozen=True, slots=True)
class BesideSystems:
    """Values of the objective: of the output, of the best system alone, and of agreement alone.

    gain, agreement_gain: over the best system; None where the lists have no such feature
    """

    where: str
    objective: str
    output: float
    system: str
    best: float
    agreement: float | None
    gain: Gain
    agreement_gain: Gain | None

    def to_text(self) -> str:
        """The values, whether the weights are of use, and, where they are not, what is."""
        line = (
            f"{self.objective} on {self.where}: output {self.output:.2f}, best system "
            f"{self.system} {self.best:.2f}"
        )
        if self.agreement is not None:
            line += f", agreement {self.agreement:.2f}"
        line += f"; output against {self.system}: {judged(self.gain)}"
        agreed = self.agreement_gain is not None and self.agreement_gain.significant
        if agreed and (self.agreement or 0.0) > max(self.output, self.best):
            return f"{line}: choose by agreement, with decode without --weights"
        return line if self.gain.shown > 0 else f"{line}: use {self.system} alone"


@dataclass(frozen=True, slots=True, eq=False)
class TuningResult:
    """Tuned weights, and what they decode to on the documents that they were tuned on.

    weights: (G,) of the task's tuned columns, all 0 where the first candidates are kept; path,
    statistics: of what they decode to, (D, W); start: statistics of the start weights; replicates:
    entry of a weights file about several tunings; scale: of p(path) ∝ exp(α · score), None where it
    could not be fitted; rest: the held-out documents
    """

    task: Task
    weights: Floats
    path: Choices
    statistics: Sums
    start: Sums
    replicates: Mapping[str, object] | None
    selection: Selection | None
    held_out: HeldOutScores | None
    scale: Scale | None
    rest: Task | None = None

    @property
    def first_kept(self) -> bool:
        """Whether no weights are better than the first candidates."""
        return not self.task.full(self.weights).any()

    def verdict(self, systems: Mapping[str, str]) -> tuple[str, BesideSystems | None]:
        """Whether the weights gain on held-out documents, in one line of words for people.

        systems: whose outputs the candidates are, the name of each by the label of its feature;
        with them the output is compared with theirs, else with the first candidates.
        """
        if systems and (beside_systems := self._beside_systems(systems)):
            return beside_systems.to_text(), beside_systems
        if (held_out := self.held_out) is not None:
            n_documents = len(held_out.documents)
            gain = Gain.of_error("BLEU", held_out.gain, held_out.error, n_documents)
            return _against(held_out.baseline, gain), None
        name, number = _in_words(self.task.free_objective), len(self.task.corpus.documents)
        if self.selection is not None and self.first_kept:
            return _against(FIRST, Gain(name, 0.0, 1.0)), None
        return beside_first(self.selection, name, number), None

    def _beside_systems(self, systems: Mapping[str, str]) -> BesideSystems | None:
        """The output beside the best system of these; None where the lists lack their features."""
        task, objective = self.rest or self.task, self.task.free_objective
        labels = column_names(self.task.space.labels)
        if not {*systems} <= {*labels}:
            return None
        values = values_of_systems(systems, self.task.corpus, objective)
        best = max(systems, key=lambda label: values[systems[label]])
        where, after = "held-out documents", self.statistics
        if self.rest is not None:
            after = self.rest.decode(self.weights)[1]
        elif self.selection is not None:
            after = self.selection.statistics
        else:
            where = "the tuning documents"
        before, name = sums_of(task.corpus, {best: 1.0}), _in_words(objective)
        output, alone = objective.value(after), objective.value(before)

        def over_best(sums: Sums) -> Gain:
            if len(before) != len(sums):
                return Gain(name, objective.value(sums) - alone, None)
            return beside(before, sums, objective).gain(name, len(task.corpus.documents))

        agreement, gain = None, None
        if AGREEMENT in labels:
            agreed = sums_of(task.corpus, {AGREEMENT: 1.0})
            agreement, gain = objective.value(agreed), over_best(agreed)
        return BesideSystems(
            where, name, output, systems[best], alone, agreement, over_best(after), gain
        )

    def to_text(self) -> str:
        """One line for people: BLEU before and after, on held-out documents too, and the price."""
        task, held_out = self.task, f"; {self.held_out.to_text()}" if self.held_out else ""
        if not (self.selection and self.first_kept):
            before = (FIRST, task.corpus.sums(task.corpus.first))
            return gain_text(self.statistics, before, task.goal, self.selection, held_out)
        best = self.selection.beside_first
        line = (
            f"held out: {task.free_objective.name} {best.held_out - best.difference:.2f} with the "
            f"first candidates, {best.held_out:.2f} with the best weights, difference "
            f"{best.difference:+.2f} ± {best.difference_error:.2f}: the first candidates are kept, "
            "by weights of 0"
        )
        if option := _with_totals(task):
            line += f"; to tune the totals of the lists, too, give {option}"
        return f"{line}{held_out}"

    def written(self, made: Mapping[str, object]) -> Weights:
        """The weights as a file has them, with their provenance `made`."""
        task, alpha = self.task, self.scale.alpha if self.scale else None
        made = {**made, **({"kept": FIRST} if self.first_kept else {})}
        tuned = task.features.tuned(task.space, task.full(self.weights), alpha, made)
        return task.features.with_presets(tuned, task.corpus)

    def entries(self) -> dict[str, object]:
        """Entries of a weights file: length, replicates, selection, held-out documents, scale."""
        names = [document.name for document in self.task.corpus.documents]
        entries: dict[str, object] = {
            "length": {
                what: {
                    "ratio": length_of(sums),
                    "documents": dict(zip(names, map(length_of, sums), strict=False)),
                }
                for what, sums in (("start", self.start), ("tuned", self.statistics))
            }
        }
        if self.replicates:
            entries["replicates"] = self.replicates
        if self.selection:
            entries |= self.selection.entries(self.task.names)
        if self.held_out:
            entries["held_out"] = asdict(self.held_out)
        return entries | (self.scale.to_provenance() if self.scale else {})


def gain_text(
    tuned: Sums,
    before: tuple[str, Sums],
    goal: SearchGoal,
    selection: Selection | None,
    held_out: str = "",
) -> str:
    """BLEU of summed statistics before (and of what) and after tuning; the price of direction."""
    what, sums = before
    line = (
        f"tuning documents: BLEU {bleu_of(tuned):.2f} (length ratio {length_of(tuned):.3f}), "
        f"{what} {bleu_of(sums):.2f} ({length_of(sums):.3f}){held_out}"
    )
    if goal.shrinkage is not None:
        line += (
            f"; weights were kept near the direction of the start weights (--shrink "
            f"{goal.shrinkage.price:g}; --shrink 0 for BLEU alone)"
        )
    return f"{selection.to_text()}; {line}" if selection else line


def beside_first(selection: Selection | None, metric: str, n_documents: int) -> str:
    """Whether what cross-validation chose is better than the first candidates, in words."""
    if selection is None:
        return "not tested: no documents were held out"
    return _against(FIRST, selection.beside_first.gain(metric, n_documents))


def _against(what: str, gain: Gain) -> str:
    return f"output against {what}, held out: {judged(gain)}"


def _in_words(objective: Objective) -> str:
    """The objective's name in a verdict."""
    return objective.name.removeprefix("corpus ")


def _with_totals(task: Task) -> str:
    """The option that makes the totals of the lists a feature; empty if it is one or has no use."""
    features = task.features
    if features.total or not any(np.ptp(totals) > 0 for totals in task.corpus.totals):
        return ""
    names = features.names or (label.name for label in task.space.labels)
    return f"{features.option} {','.join([TOTAL, *names])}"


def tune(
    corpus: TuningSet,
    metrics: Sequence[Metric],
    *,
    decode: Decode,
    features: TunedFeatures,
    plan: Plan,
    notices: Notices,
    saved: SavedSearches | None = None,
    announce: Printer = lambda line: None,
) -> TuningResult:
    """Weights tuned on documents in memory; RerankError where only all-zero weights are reached.

    metrics: those whose statistics `corpus` holds, BLEU first; saved: where finished searches are
    kept, for a run that continues this one; announce: called with a line about each round.

    Without start weights, one system or the consensus is the start where the features are of
    systems, else weights that give the totals or the order of the lists. The scale of the weights
    is fitted by likelihood under the path that they decode.
    """
    saved, objective = saved or SavedSearches(), objective_of(plan.objective_options, metrics)
    task, rest = _divided(Task(corpus, features, objective, plan, decode, notices, saved))
    if features.initial is None:
        if features.systems:
            named = dict(plan.objective.metrics)
            started = start_of_systems(
                features, task.corpus, task.free_objective, announce, metrics=named
            )
        else:
            started = start_of_lists(features, task.corpus, announce)
        task = replace(task, features=started)
        rest = rest and replace(rest, features=started)
    announce(f"maximised: {task.goal.name}")
    systems = [*features.systems.values()]
    first = f"{FIRST}, of {first_named(systems[0])}:" if systems else FIRST
    announce(describe_bleu(first, task.corpus.sums(task.corpus.first)))
    selection = None if plan.select == NONE else _selected(task, announce)
    replicates: Mapping[str, object] | None = None
    if features.initial is None and selection and _below_first(selection, task.features):
        weights = np.zeros_like(task.start)
    elif selection and (plan.replicates == 1 or not selection.chosen.share):
        task.search.report(task.pool(task.corpus.first), notices)
        weights = selection.tuned
    elif plan.replicates == 1:
        weights = _tuned(task, announce)
    else:
        weights, replicates = _replicates(task, announce)
    if selection and weights.any():
        weights = selection.weights(weights)
        if plan.replicates == 1 and not selection.kept and task.lists.at_hand:
            replicates = _spread_of_folds(task, selection, announce)
    start = task.corpus.sums(task.corpus.first)
    if task.full_start.any():
        start = task.decode(task.start)[1]
    path, sums = task.decode(weights)
    scores = None if rest is None else _held_out_scores(rest, weights, announce)
    full = task.full(weights)
    scale = scale_of_path(task.corpus, path, full, notices) if full.any() else None
    if scale is not None:
        announce(scale.to_text())
    if saved.found:
        announce(f"kept from a run that was stopped: {saved.found} searches for weights")
    return TuningResult(
        task, weights, path, sums, start, replicates, selection, scores, scale, rest
    )


def _divided(task: Task) -> tuple[Task, Task | None]:
    """The task on the documents that are tuned on, and on those held out: a share, if any."""
    share, seed = task.plan.held_out, task.plan.settings.seed
    if not share:
        return task, None
    n_documents = len(task.corpus.documents)
    number = max(1, round(share * n_documents))
    if number >= n_documents:
        raise UsageError(
            f"--hold-out {share:g}: {number} of {n_documents} documents held out leave none to "
            "tune on"
        )
    held = sorted(np.random.default_rng(seed).permutation(n_documents)[:number].tolist())
    rest = [d for d in range(n_documents) if d not in held]
    return task.on(rest, seed), task.on(held, seed)


def _selected(task: Task, announce: Printer) -> Selection | None:
    """What cross-validation chooses, if the lists allow it."""
    features, number = task.features, len(task.corpus.documents)
    name = "start weights" if task.full_start.any() else FIRST
    name = features.source if features.derived else name
    selection = cross_validate(
        task.lists, task.start, task.search, task.notices, announce, start_name=name
    )
    if selection and number < FEW:
        announce(f"few documents, {number}: {_advice(selection)}")
    return selection


def _advice(selection: Selection) -> str:
    """What a tuning on few documents tells, and what people may do about it."""
    best = max(selection.candidates[1:], key=lambda candidate: candidate.held_out)
    cure = f"tune on {FEW} or more"
    if selection.unit != DOCUMENTS:
        return (
            f"{selection.unit} were held out, {selection.n_units} of them, which share their "
            "document with those that were tuned on, so that held-out values are too good; "
            f"{cure}, or give scenes or sections as documents in --docs"
        )
    if selection.n_units >= FEWEST_FOR_ERRORS and best.difference_error:
        error = best.difference_error
        return f"held-out differences have a standard error of about {error:.2f}; {cure}"
    return cure


def _below_first(selection: Selection, features: TunedFeatures) -> bool:
    """Whether the first candidates are better than the chosen weights on held-out documents.

    Of equal totals any candidate may be first, so weights that choose the largest are no worse;
    and for several systems, whose order says nothing, the first candidates are no baseline.
    """
    if features.systems or (selection.kept and features.exact):
        return False
    return selection.beside_first.difference < 0


def _spread_of_folds(task: Task, selection: Selection, announce: Printer) -> Mapping[str, object]:
    """`replicates` of a weights file, of the weights of each fold of cross-validation."""
    lists = task.lists
    bleu = [bleu_of(lists.decode(weights)) for weights in selection.of_folds]
    announce(
        f"spread of tuning: BLEU {np.mean(bleu):.2f} ± {np.std(bleu, ddof=1):.2f} "
        f"({min(bleu):.2f} to {max(bleu):.2f}) of {len(bleu)} tunings, each without one of "
        f"{selection.n_folds} parts of the documents"
    )
    return _entry(task, bleu, np.array(selection.of_folds))


def _tuned(task: Task, announce: Printer) -> Floats:
    """Weights (G,) of the best round; notices are of the first pool alone."""
    lists, search, path = task.lists, task.search, task.lists.choose(task.start)

    def optimise(pool: Pool, weights: Floats, history: Sequence[Floats]) -> Optimum:
        if not history:
            search.report(pool, task.notices)
        return search.best(pool, weights, history)

    best, reason = tune_in_rounds(
        lists,
        DecodedWeights(task.start, lists.sums(path), path),
        optimise,
        PATIENCE,
        settled=task.fixed,
        value=task.goal.value,
        report=lambda done: announce(done.to_text()),
    )
    announce(f"stopped: {reason}")
    announce(f"kept: round {best.number}")
    weights = best.result.weights
    if not task.full(weights).any():
        if len(Axes.of(task.pool(task.corpus.first)).features):
            raise RerankError(ZEROS)
        option = _with_totals(task)
        raise RerankError(
            "no tuned feature varies within a list, so there is nothing to tune; give "
            f"{option or '--agreement, --lm, --scores or another option that adds features'}"
            f"{', which tunes the totals of the lists' if option else ''}"
        )
    return weights if np.array_equal(weights, task.start) else weights / task.norm(weights)


def _replicates(task: Task, announce: Printer) -> tuple[Floats, Mapping[str, object]]:
    """The mean (G,) of tunings on documents drawn with replacement, each with its own seed.

    It is steadier than any of them (Clark et al. 2011, https://aclanthology.org/P11-2031). All
    weights are divided by one number, so that their mean has norm 1.
    """
    seed, n_documents = task.plan.settings.seed, len(task.corpus.documents)
    rng = np.random.default_rng(seed)
    seeds = np.random.SeedSequence(seed).generate_state(task.plan.replicates).tolist()
    tunings, bleu = list[Floats](), list[float]()
    for r, seed in enumerate(seeds, 1):
        announce(f"replicate {r} of {task.plan.replicates}")
        drawn = sorted(rng.integers(n_documents, size=n_documents).tolist())
        tunings.append(_tuned(task.on(drawn, seed), announce))
        sums = task.decode(tunings[-1])[1]
        announce(describe_bleu(f"replicate {r}, all documents:", sums))
        bleu.append(bleu_of(sums))
    weights = np.array([tuned / task.norm(tuned) for tuned in tunings])
    weights /= task.norm(weights.mean(axis=0))
    mean, spread = weights.mean(axis=0), weights.std(axis=0, ddof=1).tolist()
    figures = zip(task.names, mean, spread, strict=True)
    listed = ", ".join(f"{name} {value:.4f} ± {around:.4f}" for name, value, around in figures)
    announce(f"mean of {len(bleu)} replicates: {listed}")
    return mean, _entry(task, bleu, weights)


def _entry(task: Task, bleu: Sequence[float], weights: NDArray[np.float64]) -> Mapping[str, object]:
    """BLEU of each tuning on all documents, and standard deviation of weights (R, G) by name."""
    spread = weights.std(axis=0, ddof=1).tolist()
    return {"bleu": [*bleu], "spread": dict(zip(task.names, spread, strict=True))}


def _held_out_scores(task: Task, weights: Floats, announce: Printer) -> HeldOutScores:
    """Scores of the held-out documents under the tuned weights (G,), all of them announced."""
    names = tuple(document.name for document in task.corpus.documents)
    announce(f"held out: {', '.join(names)}")
    sums = {FIRST: task.corpus.sums(task.corpus.first)}
    if task.full_start.any():
        sums["start weights"] = task.decode(task.start)[1]
    sums["tuned weights"] = task.decode(weights)[1]
    for what, counts in sums.items():
        announce(describe_bleu(f"held out, {what}:", counts))
    objective = task.goal.objective
    bleu = {what: bleu_of(counts) for what, counts in sums.items()}
    values = {what: objective.value(counts) for what, counts in sums.items()}
    if values != bleu:
        listed = ", ".join(f"{what} {value:.3f}" for what, value in values.items())
        announce(f"held out, {objective.name}: {listed}")
    before, after = [*sums.values()][-2:]
    gain = beside(before, after, CORPUS_BLEU)
    return HeldOutScores(names, bleu, values, gain.difference, gain.difference_error)
