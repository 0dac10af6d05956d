"""What a tuning run found: weights with their provenance, the figures for people, flatness."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import rerank
from rerank.files.lines import digest
from rerank.formats.weights import Weights
from rerank.metrics import Metric
from rerank.metrics.bleu import corpus_bleu, length_ratio
from rerank.pipeline.lists import KBestSource
from rerank.pipeline.tuning_plan import Task
from rerank.scorers.features import FeatureSpace
from rerank.tuning.ascent import Axes
from rerank.tuning.mert import Settings
from rerank.tuning.objectives import Objective, Sums
from rerank.tuning.pool import Pool
from rerank.tuning.pool_tuner import MERT
from rerank.tuning.rounds import total
from rerank.tuning.surface import Section, sections


@dataclass(frozen=True, slots=True)
class Tuning:
    """What `tune_mert` found, on the tuning set: BLEU and length ratio, first candidates' too."""

    weights: Weights
    bleu: float
    length_ratio: float
    baseline_bleu: float
    baseline_ratio: float

    def to_text(self) -> str:
        """One line for people."""
        return (
            f"tuned BLEU {self.bleu:.2f} (length ratio {self.length_ratio:.3f}); first candidates "
            f"{self.baseline_bleu:.2f} ({self.baseline_ratio:.3f})"
        )


def scored(what: str, sums: Sums) -> str:
    """BLEU and length of decoded documents, for people."""
    counts = total(sums)
    return f"{what} BLEU {corpus_bleu(counts):.2f}, length ratio {length_ratio(counts):.3f}"


def by_name(weights: NDArray[np.float64], space: FeatureSpace) -> dict[str, tuple[float, ...]]:
    """Weights (F,) as a file has them."""
    widths = np.cumsum([label.width for label in space.labels])[:-1]
    parts = np.split(weights, widths)
    return {
        label.name: tuple(part.tolist()) for label, part in zip(space.labels, parts, strict=True)
    }


def flatness(found: Sequence[Section], names: Sequence[str]) -> dict[str, list[float | None]]:
    """Least and greatest weight of each feature at which little is lost; None: no end."""
    ends = {names[section.feature]: section.flat() for section in found}
    return {
        name: [end if math.isfinite(end) else None for end in both] for name, both in ends.items()
    }


def surface(
    pool: Pool,
    weights: NDArray[np.float64],
    objective: Objective,
    names: Sequence[str],
    *,
    plot: str | Path | None,
) -> dict[str, list[float | None]]:
    """Flatness of an objective around weights (F,), drawn to `plot` where it is asked for."""
    around = sections(pool, weights, objective)
    if plot is not None:
        from rerank.report.figures import plot_sections

        spreads = Axes.of(pool).scale.tolist()
        plot_sections(plot, around, names, spreads, title=objective.name)
    return flatness(around, names)


def made_by(opened: KBestSource, texts: Sequence[str | Path], task: Task) -> dict[str, object]:
    """What a weights file says of its making: objective, seed, options, digests of the inputs."""
    lists, plan = opened.lists, task.plan
    objective = task.goal.name if plan.algorithm == MERT else "corpus BLEU"
    return {
        **how_made(plan.algorithm, objective, plan.settings, [*lists.files, *texts]),
        **asked(task.names, task.wanted.ranges),
        "search": {"method": task.search.method, **_given(task.search.options.given())},
        "pools": plan.pools,
        "n_best": plan.n_best,
        "top": lists.top,
        "diverse": lists.diverse,
        "models": {
            scorer.name: {"folder": folder.name, "digest": scorer.digest}
            for scorer, (_, folder) in zip(opened.models, lists.lms, strict=True)
        },
        "scores": {
            scorer.name: {"file": Path(scorer.source).name, "digest": scorer.digest}
            for scorer in opened.outside
        },
    }


def _given(options: Mapping[str, object]) -> dict[str, object]:
    """Options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def asked(names: Sequence[str], ranges: Mapping[str, tuple[float, float]]) -> dict[str, object]:
    """Which columns were tuned, and the ranges that were given; None: no end."""
    ends = {
        name: [float(e) if math.isfinite(e) else None for e in ends]
        for name, ends in ranges.items()
    }
    return {"tuned": list(names), "ranges": ends}


def how_made(
    algorithm: str, objective: str, settings: Settings, files: Sequence[str | Path]
) -> dict[str, object]:
    """What every weights file says of its making: by which tuner, from which files."""
    return {
        "rerank": rerank.__version__,
        "algorithm": algorithm,
        "objective": objective,
        **_options(algorithm, settings),
        "inputs": [  # what is no file cannot be read again
            {"file": Path(f).name, "digest": digest(f)} for f in files if Path(f).is_file()
        ],
    }


def _options(algorithm: str, settings: Settings) -> dict[str, object]:
    """The seed, and what else the search for weights was told."""
    if algorithm != MERT:
        return {"seed": settings.seed}
    return {
        "seed": settings.seed,
        "random_starts": settings.random_starts,
        "directions": settings.directions,
        "norm": settings.norm,
    }


@dataclass(frozen=True, slots=True)
class Reached:
    """A metric of the decoded tuning set: name, score as people know it, signature."""

    name: str
    score: float
    signature: str

    def to_text(self) -> str:
        """One line for people."""
        return f"{self.name} {self.score:.2f} ({self.signature})"


def reached(sums: Sums, metrics: Sequence[Metric], n_references: int) -> list[Reached]:
    """Every metric counted, of summed statistics (D, W) that hold them side by side."""
    whole, begin, found = sums.sum(axis=0), 0, list[Reached]()
    for metric in metrics:
        score = metric.shown(float(metric.scores(np.asarray(whole[begin : begin + metric.width]))))
        found.append(Reached(metric.name, score, metric.signature(n_references)))
        begin += metric.width
    return found


def figures(sums: Sums, reached: Sequence[Reached]) -> dict[str, object]:
    """What a weights file says of the tuning set: BLEU, which comes first, and other metrics."""
    bleu, *others = reached
    more = {one.name: {"score": one.score, "signature": one.signature} for one in others}
    ratio = float(length_ratio(total(sums)))
    found = {"bleu": bleu.score, "length_ratio": ratio, "signature": bleu.signature}
    return {**found, **({"metrics": more} if more else {})}
