"""The result of a tuning command: weights with their provenance, and lines for people."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rerank.commands.document_run import ListRun
from rerank.commands.search import Search
from rerank.corpus.reading import AS_NFC, AS_SOURCE
from rerank.files.lines import digest
from rerank.files.paths import FilePath
from rerank.formats.weights import Weights
from rerank.metrics import Metric
from rerank.scorers.features import FeatureSpace
from rerank.tuning.goal import SearchGoal
from rerank.tuning.objective import Objective, Sums, length_of
from rerank.tuning.plan import Plan
from rerank.tuning.pool import Pool
from rerank.tuning.run import TuningResult
from rerank.tuning.surface import Section, sections
from rerank.tuning.tuners import MERT
from rerank.tuning.tuners.ascent import Axes
from rerank.version import __version__


@dataclass(frozen=True, slots=True)
class Tuning:
    """The weights that `tune_mert` has written, and the result that they come from."""

    weights: Weights
    result: TuningResult

    def to_text(self) -> str:
        """One line for people: BLEU before and after, on held-out documents too, and the price."""
        return self.result.to_text()


def by_name(weights: NDArray[np.float64], space: FeatureSpace) -> dict[str, tuple[float, ...]]:
    """Weights (F,) by feature, as in a file."""
    widths = np.cumsum([label.width for label in space.labels])[:-1]
    parts = np.split(weights, widths)
    return {
        label.name: tuple(part.tolist()) for label, part in zip(space.labels, parts, strict=True)
    }


def flatness(found: Sequence[Section], names: Sequence[str]) -> dict[str, list[float | None]]:
    """Least and greatest weight of each feature at which little is lost; None: unlimited."""
    ends = {names[section.feature]: section.flat() for section in found}
    return {name: [_finite(end) for end in both] for name, both in ends.items()}


def _finite(end: float) -> float | None:
    return float(end) if math.isfinite(end) else None


def surface(
    pool: Pool,
    weights: NDArray[np.float64],
    objective: Objective,
    names: Sequence[str],
    *,
    plot: str | Path | None,
) -> dict[str, list[float | None]]:
    """Flatness of an objective around weights (G,), drawn to the file `plot` if there is one."""
    around = sections(pool, weights, objective)
    if plot is not None:
        from rerank.report.figures import plot_sections

        spreads = Axes.of(pool).scale.tolist()
        plot_sections(plot, around, names, spreads, objective=objective.name)
    return flatness(around, names)


def provenance(
    source: ListRun, files: Sequence[FilePath], result: TuningResult, search: Search
) -> dict[str, object]:
    """Entries of a weights file about its making: objective, seed, options, digests of inputs."""
    lists, task = source.lists, result.task
    plan = task.plan
    options = {name: value for name, value in search.options.given().items() if value is not None}
    return {
        **plan_entries(plan, task.goal, [*lists.files, *files]),
        **feature_entries(task.names, task.features.ranges),
        "search": {"method": search.method, **options},
        "pools": plan.pools,
        "top": lists.top,
        "diverse": lists.diverse,
        **({"normalize": AS_NFC} if lists.in_nfc else {}),
        **({"missing": AS_SOURCE} if lists.missing == AS_SOURCE else {}),
        "models": {
            one.name: {"folder": one.value.name, "digest": scorer.digest, **one.provenance}
            for scorer, one in zip(source.models, lists.lms, strict=True)
        },
        "scores": {
            scorer.name: {"file": Path(scorer.source).name, "digest": scorer.digest}
            for scorer in source.score_files
        },
        **_plugins(source),
    }


def _plugins(source: ListRun) -> dict[str, object]:
    """Scorers of other packages, if there are any."""
    made = zip(source.plugins, source.lists.scorers, strict=True)
    scorers = {one.name: {"entry": entry, "digest": one.digest} for one, (_, entry) in made}
    return {"scorers": scorers} if scorers else {}


def feature_entries(
    names: Sequence[str], ranges: Mapping[str, tuple[float, float]]
) -> dict[str, object]:
    """Which columns were tuned, and the ranges that were asked for; None: unlimited."""
    ends = {name: [_finite(end) for end in both] for name, both in ranges.items()}
    return {"tuned": list(names), "ranges": ends}


def plan_entries(plan: Plan, goal: SearchGoal, files: Sequence[FilePath]) -> dict[str, object]:
    """Entries of every weights file about its making: tuner, objective, seed, inputs."""
    entries: dict[str, object] = {
        "rerank": __version__,
        "algorithm": plan.algorithm,
        "select": plan.select,
        "objective": goal.name,
        "seed": plan.settings.seed,
    }
    if plan.algorithm == MERT:
        entries["random_starts"] = plan.settings.random_starts
    entries["threads"] = plan.settings.threads
    entries["inputs"] = [  # what is not a file cannot be read a second time
        {"file": Path(f).name, "digest": digest(f)} for f in files if Path(f).is_file()
    ]
    return entries


@dataclass(frozen=True, slots=True)
class TunedScore:
    """The score of a metric on the decoded tuning set, as it is published, and its signature."""

    name: str
    score: float
    signature: str

    def to_text(self) -> str:
        """One line for people."""
        return f"{self.name} {self.score:.2f} ({self.signature})"


def metric_scores(sums: Sums, metrics: Sequence[Metric], n_references: int) -> list[TunedScore]:
    """Scores of the metrics whose statistics stand side by side in summed ones (D, W)."""
    whole, begin, found = sums.sum(axis=0), 0, list[TunedScore]()
    for metric in metrics:
        score = metric.shown(float(metric.scores(np.asarray(whole[begin : begin + metric.width]))))
        found.append(TunedScore(metric.name, score, metric.signature(n_references)))
        begin += metric.width
    return found


def score_entries(sums: Sums, scores: Sequence[TunedScore]) -> dict[str, object]:
    """Entries of a weights file about the tuning set: BLEU, which comes first, and the others."""
    bleu, *others = scores
    more = {one.name: {"score": one.score, "signature": one.signature} for one in others}
    found = {"bleu": bleu.score, "length_ratio": length_of(sums), "signature": bleu.signature}
    return {**found, **({"metrics": more} if more else {})}
