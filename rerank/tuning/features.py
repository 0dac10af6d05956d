"""The features that are tuned: their start weights and ranges, and the start with several systems.

The start of a tuning on several systems is the best of them alone, or beside their consensus. On
few documents the system that seems best often is not, and the candidates that the systems agree
on (minimum Bayes risk, all systems as likely to be right) are the safer choice; where one system is
far better than the others, it is the other way round. Cross-validation tells the two cases apart:
the best system is chosen on other documents than it is judged on. Beside the consensus by document
BLEU it still has a weight of 1: its output is preferred to one with which mean ln BLEU of the
document is higher by less than 1 / its number of words. That costs nothing where systems are close,
and little where they are not (recipes/new-documents).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rerank.corpus.columns import column_names, decoder_names
from rerank.errors import UsageError
from rerank.formats.weights import Weights, by_name, fitted_to, vector
from rerank.notices import Printer
from rerank.scorers import TOTAL
from rerank.scorers.features import FeatureSpace
from rerank.tuning.objective import Objective, Sums
from rerank.tuning.pool import TuningSet
from rerank.tuning.tuners.ascent import Bounds

FOLDS = 10
BESIDE = 1.0  # weight of the best system beside the consensus


@dataclass(frozen=True, slots=True)
class TunedFeatures:
    """Which features are tuned, from which start weights, and within which ranges.

    names: of the tuned features, empty for all; given: start weights, 0 for features
    without one, and `source`, where they come from; ranges: least and greatest weight, by the name
    of a feature or of one of its columns; option: of the shell that names them, for messages;
    systems, consensus: where no weights are given, features one of which is the start: of each
    system, by label its name; and of their consensus
    """

    names: Sequence[str] = ()
    given: Weights | None = None
    source: str = "start"
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    option: str = "--features"
    systems: Mapping[str, str] = field(default_factory=dict)
    consensus: str = ""

    @property
    def total(self) -> bool:
        """Whether the list's total is a feature."""
        return TOTAL in self.names or (self.given is not None and TOTAL in self.given.dense)

    @property
    def sparse(self) -> Mapping[str, float]:
        """Weights of sparse features, which are not tuned."""
        return {} if self.given is None else self.given.sparse

    def other_sparse(self, space: FeatureSpace) -> Mapping[str, float]:
        """Those weights of sparse features that are not start weights of dense ones."""
        if self.given is None:
            return {}
        return fitted_to(self.given, space.labels, source=self.source).sparse

    def start(self, space: FeatureSpace) -> NDArray[np.float64]:
        """Start weights (F,)."""
        if self.given is None:
            return np.zeros(space.width)
        return vector(self.given, space.labels, default=0.0, source=self.source)

    def tuned(
        self,
        space: FeatureSpace,
        weights: NDArray[np.float64],
        alpha: float | None,
        made: Mapping[str, object],
    ) -> Weights:
        """Tuned weights (F,) as a file has them, beside those of sparse features."""
        return Weights(
            by_name(weights, space.labels),
            self.other_sparse(space),
            alpha,
            made,
            decoder_names=decoder_names(space.labels),
        )

    def columns(self, space: FeatureSpace) -> NDArray[np.int64]:
        """The tuned columns (G,); UsageError for the name of an unknown feature."""
        known = [label.name for label in space.labels]
        for name in self.names:
            if name not in known:
                raise UsageError(
                    f"{self.option} {name}: no such feature; there are {', '.join(known)}"
                )
        tuned = [name in self.names or not self.names for name in known]
        return np.flatnonzero(np.repeat(tuned, [label.width for label in space.labels]))

    def bounds(self, space: FeatureSpace) -> Bounds:
        """Ranges of all weights (F,); UsageError for an unknown name or a start weight outside."""
        names, start = column_names(space.labels), self.start(space)
        owners = [label.name for label in space.labels for _ in range(label.width)]
        bounds = Bounds.none(space.width)
        tuned = set(self.columns(space).tolist())
        for name, (low, high) in self.ranges.items():
            columns = [f for f, both in enumerate(zip(names, owners, strict=True)) if name in both]
            if not columns:
                raise UsageError(f"--range {name}=…: no such feature; there are {', '.join(names)}")
            if not tuned.intersection(columns):
                raise UsageError(
                    f"--range {name}=…: this weight is not tuned; name its feature in {self.option}"
                )
            if not (np.isinf(bounds.low[columns]) & np.isinf(bounds.high[columns])).all():
                raise UsageError(f"--range {name}=…: a second range of one weight")
            bounds.low[columns], bounds.high[columns] = low, high
            for f in columns:
                if not low <= start[f] <= high:
                    raise UsageError(
                        f"--range {name}={low:g}:{high:g}: the start weight of {names[f]} is "
                        f"{start[f]:g}; give one within by --start"
                    )
        return bounds

    def check(self, space: FeatureSpace, announce: Printer) -> None:
        """Refuse unknown names, bad ranges and start weights; report features that begin at 0."""
        self.bounds(space)
        start = self.start(space)
        for f in np.flatnonzero(~np.isfinite(start))[:1]:
            name = column_names(space.labels)[f]
            raise UsageError(f"start weight of {name}: expected a finite number, found {start[f]}")
        if self.given is None:
            return
        known = fitted_to(self.given, space.labels, source=self.source).dense
        missing = [label.name for label in space.labels if label.name not in known]
        if missing:
            announce(f"features without a weight in {self.source} begin at 0: {', '.join(missing)}")


def start_of_systems(
    features: TunedFeatures,
    corpus: TuningSet,
    objective: Objective,
    announce: Printer,
) -> TunedFeatures:
    """The features with the start weights that are best on held-out documents.

    The values of all systems, and the held-out ones of both starts, are announced. O(M (n + D))
    time for M systems and D documents.
    """
    names, consensus = features.systems, {features.consensus: 1.0}
    beside = {label: consensus | {label: BESIDE} for label in names}
    alone = {label: {label: 1.0} for label in names}
    sums: NDArray[Any] = np.array(
        [[_sums(corpus, kind[label]) for label in names] for kind in (beside, alone)]
    )
    values = {label: objective.value(own) for label, own in zip(names, sums[1], strict=True)}
    ranked = sorted(names, key=lambda label: -values[label])
    listed = ", ".join(f"{names[label]} {values[label]:.2f}" for label in ranked)
    announce(f"{objective.name} of each system on these documents: {listed}")
    best = _best_on_others(objective, sums[1])
    agreed, single = (objective.value(own[best, np.arange(len(best))]) for own in sums)
    source, start = f"the system {names[ranked[0]]}", alone[ranked[0]]
    if agreed >= single:
        source, start = f"the consensus of the systems together with {source}", beside[ranked[0]]
    announce(
        f"start: {source}; held-out {objective.name} of the system that is best on other documents "
        f"{single:.2f}, together with the consensus {agreed:.2f}"
    )
    given = {label: (weight,) for label, weight in start.items()}
    return replace(features, given=Weights(given), source=source)


def values_of_systems(
    systems: Mapping[str, str], corpus: TuningSet, objective: Objective
) -> dict[str, float]:
    """The value of each system by name; systems: by label of its feature."""
    return {n: objective.value(_sums(corpus, {label: 1.0})) for label, n in systems.items()}


def _best_on_others(objective: Objective, sums: NDArray[Any]) -> NDArray[np.int64]:
    """For each document, the system (D,) that is best on the other folds; sums: (M, D, W)."""
    n_documents = sums.shape[1]
    fold = np.arange(n_documents) % FOLDS
    found = np.zeros(n_documents, np.int64)
    for held in range(fold.max() + 1):
        others = fold != held if n_documents > 1 else fold == held
        found[fold == held] = np.argmax([objective.value(one[others]) for one in sums])
    return found


def _sums(corpus: TuningSet, weights: Mapping[str, float]) -> Sums:
    """Summed statistics (D, W) of the candidates that weights choose."""
    columns = column_names(corpus.space.labels)
    places, values = [columns.index(label) for label in weights], [*weights.values()]
    path = tuple(
        tuple(
            int((one.static[a:b][:, places] @ values).argmax())
            for a, b in pairwise(one.offsets.tolist())
        )
        for one in corpus.documents
    )
    return corpus.sums(path)
