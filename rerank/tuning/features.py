"""The features that are tuned: their start weights and ranges, and the start where there is none.

The start of a tuning on several systems is the best of them alone, or beside their consensus by
document BLEU, or beside their agreement. On few documents the system that seems best often is not,
and the candidates that the systems agree on are the safer choice, above all by agreement, in which
outliers have no vote. So agreement is the start unless cross-validation shows that another start is
surely better: the best system is chosen on other documents than it is judged on. Beside the others
it has a weight of 1, which costs nothing where systems are close, and little where they are not
(recipes/studies/new-documents).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from decoders.reversal import own_scores
from rerank.corpus.columns import column_names, decoder_names
from rerank.errors import UsageError
from rerank.files.paths import display
from rerank.formats.moses_ini import merged
from rerank.formats.weights import BY_PRESET, Weights, by_name, fitted_to, vector
from rerank.notices import Notices, Printer
from rerank.scorers import TOTAL
from rerank.scorers.agreement import is_rewarded, starting_features
from rerank.scorers.features import FeatureSpace
from rerank.tuning.objective import Objective, Sums, jackknife, standard_error
from rerank.tuning.pool import TuningSet
from rerank.tuning.tuners.ascent import Bounds

FOLDS = 10
_SURE = 0.5  # standard errors
_ROUNDING = 1e-9  # a gain on a single document is one standard error exactly
BESIDE = 1.0  # weight of the best system beside what the systems agree on
_SAMPLE = 20_000  # candidates, about, that start weights are fitted to
_FITS = 20
_EXACT = 0.99  # of the lists; totals are rounded
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TunedFeatures:
    """Which features are tuned, from which start weights, and within which ranges.

    names: of the tuned features, empty for all; initial: start weights, 0 for features without one,
    and `source`, where they come from; derived: whether they were made from the lists; exact:
    whether these weights choose the candidates of largest total
    ranges: least and greatest weight, by the name of a feature or of one of its columns
    option: of the shell that names features, for messages
    systems: without start weights, of which one is the start, beside what they agree on: the name
    of each by the label of its feature
    """

    names: Sequence[str] = ()
    initial: Weights | None = None
    source: str = "start"
    derived: bool = field(default=False, kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    option: str = "--features"
    systems: Mapping[str, str] = field(default_factory=dict)

    @property
    def total(self) -> bool:
        """Whether the list's total is a feature."""
        return TOTAL in self.names or (self.initial is not None and TOTAL in self.initial.dense)

    @property
    def sparse(self) -> Mapping[str, float]:
        """Weights of sparse features, which are not tuned."""
        return {} if self.initial is None else self.initial.sparse

    def other_sparse(self, space: FeatureSpace) -> Mapping[str, float]:
        """Those weights of sparse features that are not start weights of dense ones."""
        if self.initial is None:
            return {}
        return fitted_to(self.initial, space.labels, source=self.source).sparse

    def start(self, space: FeatureSpace) -> Floats:
        """Start weights (F,)."""
        if self.initial is None:
            return np.zeros(space.width)
        return vector(self.initial, space.labels, default=0.0, source=self.source)

    def columns(self, space: FeatureSpace) -> Indices:
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
                        f"--range {name}=…: expected a start weight of {names[f]} from {low:g} to "
                        f"{high:g}, found {start[f]:g}; give another by --start"
                    )
        return bounds

    def check(self, space: FeatureSpace, announce: Printer) -> None:
        """Refuse unknown names, bad ranges and start weights; report features that begin at 0."""
        self.bounds(space)
        start = self.start(space)
        for f in np.flatnonzero(~np.isfinite(start))[:1]:
            name = column_names(space.labels)[f]
            raise UsageError(f"start weight of {name}: expected a finite number, found {start[f]}")
        if self.initial is None:
            return
        known = fitted_to(self.initial, space.labels, source=self.source).dense
        missing = [label.name for label in space.labels if label.name not in known]
        if missing:
            announce(f"features without a weight in {self.source} begin at 0: {', '.join(missing)}")

    def check_base(
        self, space: FeatureSpace, lines: Sequence[bytes] | None, base: str | None
    ) -> None:
        """InputError for a moses.ini, if these lines are one, that cannot have the weights."""
        if lines is not None:
            dense, sparse = by_name(self.start(space), space.labels), self.other_sparse(space)
            merged(lines, dense, sparse, None, Notices(), source=display(base or ""))

    def derive(self, start: Mapping[str, tuple[float, ...]], source: str) -> TunedFeatures:
        """These features with start weights that were made from the lists."""
        return replace(self, initial=Weights(start), source=source, derived=True)

    def tuned(
        self, space: FeatureSpace, weights: Floats, alpha: float | None, made: Mapping[str, object]
    ) -> Weights:
        """Tuned weights (F,) as a file has them, beside those of sparse features."""
        dense, sparse = by_name(weights, space.labels), self.other_sparse(space)
        return Weights(dense, sparse, alpha, made, decoder_names=decoder_names(space.labels))

    def with_presets(self, weights: Weights, corpus: TuningSet) -> Weights:
        """Tuned weights with those that features have of themselves, where tuning gave none.

        Such a feature has no start weight, and tells no candidates of any list apart.
        """
        space, dense = corpus.space, dict(weights.dense)
        started = () if self.initial is None or self.derived else self.initial.dense
        names = column_names(space.labels)
        for place, column in enumerate(space.contextual):
            name = names[column]
            if name not in space.presets or name in started or dense[name] != (0.0,):
                continue
            lists = (
                scores
                for document in corpus.documents
                for scores in own_scores(document.problems[place], document.first())
            )
            if not any(np.ptp(scores) > 0 for scores in lists):
                dense[name] = (space.presets[name],)
        added = [name for name in dense if dense[name] != weights.dense[name]]
        made = {**weights.provenance, **({BY_PRESET: added} if added else {})}
        return replace(weights, dense=dense, provenance=made)

    def entries(self, columns: Sequence[str]) -> dict[str, object]:
        """Entries of a weights file: the tuned columns, and the ranges asked for; None: no end."""
        ranges = {
            name: [float(end) if math.isfinite(end) else None for end in ends]
            for name, ends in self.ranges.items()
        }
        return {"tuned": list(columns), "ranges": ranges}


# Several systems


def start_of_systems(
    features: TunedFeatures,
    corpus: TuningSet,
    objective: Objective,
    announce: Printer,
    *,
    metrics: Collection[str],
) -> TunedFeatures:
    """The features with the start weights that held-out documents favour.

    The last way of agreement is taken unless another is better by more than half a standard error,
    or the system alone by more than one; or the system alone, unless a way of agreement is better
    by more than one, where the metrics do not reward agreement. metrics: names of those that are
    maximised. O(M (n + D)) time for M systems and D documents.
    """
    names, alone = features.systems, not is_rewarded(metrics)
    # what stands beside a system, by what it is called
    starts = {name: {label: 1.0} for label, name in starting_features(metrics).items()}
    starts[""] = {}
    sums: NDArray[Any] = np.array(
        [
            [sums_of(corpus, shared | {label: BESIDE}) for label in names]
            for shared in starts.values()
        ]
    )
    values = dict(zip(names, map(objective.value, sums[-1]), strict=True))
    ranked = sorted(names, key=lambda label: -values[label])
    listed = ", ".join(f"{names[label]} {values[label]:.2f}" for label in ranked)
    announce(f"{objective.name} of each system on these documents: {listed}")
    best = _best_on_others(objective, sums[-1])
    held_out, without = jackknife(objective, sums[:, best, np.arange(len(best))])
    safe = max(len(starts) - (1 if alone else 2), 0)
    errors = np.array([standard_error(start - without[safe]) for start in without])
    if not alone:
        errors[:safe] *= _SURE  # another way of agreement; systems are chosen on few documents
    surely = held_out - held_out[safe] > errors * (1 + _ROUNDING)
    chosen = int(np.where(surely, held_out, -np.inf).argmax()) if surely.any() else safe
    called, source = [*starts][chosen], f"the system {names[ranked[0]]}"
    if called:
        source = f"the {called} of the systems together with {source}"
    *together, value = zip(starts, held_out.tolist(), strict=True)
    announce(
        f"start: {source}; held-out {objective.name} of the system that is best on other documents "
        f"{value[1]:.2f}" + "".join(f", together with the {name} {v:.2f}" for name, v in together)
    )
    start = starts[called] | {ranked[0]: BESIDE}
    return features.derive({label: (weight,) for label, weight in start.items()}, source)


def _best_on_others(objective: Objective, sums: NDArray[Any]) -> Indices:
    """For each document, the system (D,) that is best on the other folds; sums: (M, D, W)."""
    n_documents = sums.shape[1]
    fold = np.arange(n_documents) % FOLDS
    best = np.zeros(n_documents, np.int64)
    for held in range(fold.max() + 1):
        others = fold != held if n_documents > 1 else fold == held
        best[fold == held] = np.argmax([objective.value(system[others]) for system in sums])
    return best


def values_of_systems(
    systems: Mapping[str, str], corpus: TuningSet, objective: Objective
) -> dict[str, float]:
    """The value of each system by name; systems: by label of its feature."""
    return {n: objective.value(sums_of(corpus, {label: 1.0})) for label, n in systems.items()}


def sums_of(corpus: TuningSet, weights: Mapping[str, float]) -> Sums:
    """Summed statistics (D, W) of the candidates that weights choose."""
    columns, full = column_names(corpus.space.labels), np.zeros(corpus.space.width)
    full[[columns.index(label) for label in weights]] = [*weights.values()]
    path = tuple(
        tuple(
            int(scores.argmax()) for scores in own_scores(document.problem(full), document.first())
        )
        for document in corpus.documents
    )
    return corpus.sums(path)


# Lists of a decoder


def start_of_lists(features: TunedFeatures, corpus: TuningSet, announce: Printer) -> TunedFeatures:
    """The features with start weights that give the totals of the lists, or else their order.

    The totals of a decoder's list are weights · features: least squares of the differences to the
    best candidate of each list, where a penalty of unknown words mostly cancels out. Candidates
    with another penalty fit badly and get small weights (iteratively reweighted least squares).
    Where the lists have no totals, or equal ones, a candidate's total is −ln(its rank). The
    features stay as they are if the weights choose the best total in at most half of the lists.
    O(n F²) for the n candidates of a sample of lists.
    """
    space, kind, best = corpus.space, "totals", "largest total"
    if features.total:
        return features.derive({TOTAL: (1.0,)}, "the totals of the lists")
    columns = features.columns(space)
    columns = columns[columns < space.list_width]
    lists = _sample(corpus, columns, corpus.totals)
    if not lists:
        kind, best, lists = "order", "first candidate", _sample(corpus, columns, None)
    if not lists or not len(columns):
        return features
    start = np.zeros(space.width)
    x, y = map(np.concatenate, zip(*lists, strict=True))
    start[columns] = _least_squares(x, y, 1 if kind == "order" else _FITS)
    start = features.bounds(space).shrunk(start)
    right = np.mean([y[(x @ start[columns]).argmax()] == y.max() for x, y in lists])
    if right <= 0.5 or not start.any():
        return features
    source = f"weights fitted to the {kind} of the lists"
    announce(f"start: {source}; they choose the {best} in {right:.1%} of the lists")
    exact = kind == "totals" and bool(right >= _EXACT)
    return replace(features.derive(by_name(start, space.labels), source), exact=exact)


def _sample(
    corpus: TuningSet, columns: Indices, totals: Sequence[Floats] | None
) -> list[tuple[Floats, Floats]]:
    """Features (k, F) and totals (k,) of evenly spread lists, less those of the best candidate.

    Without totals −ln(rank), and all less their means.
    """
    n, lists = sum(len(document.static) for document in corpus.documents), []
    for d, document in enumerate(corpus.documents):
        for a, b in list(pairwise(document.offsets.tolist()))[:: 1 + n // _SAMPLE]:
            x = document.static[a:b, columns]
            y = -np.log(np.arange(1, b - a + 1)) if totals is None else totals[d][a:b]
            if 0 < np.ptp(y) < np.inf and np.isfinite(x).all():
                means = x.mean(axis=0), y.mean()
                best = means if totals is None else (x[y.argmax()], y.max())
                lists.append((x - best[0], y - best[1]))
    return lists


def _least_squares(x: Floats, y: Floats, n_fits: int) -> Floats:
    """Weights (F,) of least squares, or, after more fits, of the least Σ |y − x · weights|."""
    size = np.linalg.norm(x, axis=0)
    size[size == 0] = 1
    trust = np.ones(len(y))
    for _ in range(n_fits):
        fit = np.linalg.lstsq(x / size * trust[:, None], y * trust, rcond=1e-10)[0] / size
        trust = 1 / np.sqrt(np.maximum(np.abs(y - x @ fit), 1e-9 * np.abs(y).max()))
    return np.asarray(fit)
