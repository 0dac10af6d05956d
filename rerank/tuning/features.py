"""The features that are tuned: their start weights and ranges, and the start where none is given.

The start of a tuning on several systems is the best of them alone, or beside their consensus by
document BLEU, or beside their agreement. On few documents the system that seems best often is not,
and the candidates that the systems agree on are the safer choice, above all by agreement, in which
outliers have no vote; where one system is far better than the others, it is the other way round.
So agreement is the start unless cross-validation shows that another one is surely better: the best
system is chosen on other documents than it is judged on. Beside the others it has a weight of 1:
its output is preferred to one with which mean ln BLEU of the document is higher by less than 1 /
its number of words, or agreement by less than 1. That costs nothing where systems are close, and
little where they are not (recipes/studies/new-documents).

The totals of a decoder's list are weights · features: least squares finds these weights from the
differences to the best candidate of each list, where a penalty of unknown words mostly cancels out.
Candidates with another penalty fit badly and get small weights (iteratively reweighted least
squares). The order of lists without totals is fitted by least squares to −ln(rank).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from decoders.reversal import own_scores
from rerank.corpus.columns import column_names, decoder_names
from rerank.errors import UsageError
from rerank.formats.weights import BY_PRESET, Weights, by_name, fitted_to, vector
from rerank.notices import Printer
from rerank.scorers import TOTAL
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


@dataclass(frozen=True, slots=True)
class TunedFeatures:
    """Which features are tuned, from which start weights, and within which ranges.

    names: of the tuned features, empty for all; given: start weights, 0 for features
    without one, and `source`, where they come from; derived: whether they were made from
    the lists; exact: whether these weights choose the candidates of largest total
    ranges: least and greatest weight, by the name of a feature or of one of its columns
    option: of the shell that names features, for messages
    systems, consensus: where no weights are given, features one of which is the start: of each
    system, by label its name; and of what the systems agree on, by label what it is called
    """

    names: Sequence[str] = ()
    given: Weights | None = None
    source: str = "start"
    derived: bool = field(default=False, kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    option: str = "--features"
    systems: Mapping[str, str] = field(default_factory=dict)
    consensus: Mapping[str, str] = field(default_factory=dict)

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

    def with_presets(self, weights: Weights, corpus: TuningSet) -> Weights:
        """Tuned weights with those that features have of themselves, where tuning found none.

        Such a feature has no start weight, and tells no candidates of any list apart; it depends
        on no other sentence.
        """
        space, dense = corpus.space, dict(weights.dense)
        started = () if self.given is None or self.derived else self.given.dense
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
    *,
    alone: bool,
) -> TunedFeatures:
    """The features with the start weights that held-out documents favour.

    The last way of agreement is taken unless another is better by more than half a standard error,
    or the system alone by more than one; `alone`: the system, unless a way of agreement is better
    by more than one.
    The values of all systems, and the held-out ones of all starts, are announced. O(M (n + D))
    time for M systems and D documents.
    """
    names, added = features.systems, {called: label for label, called in features.consensus.items()}
    starts = {  # by what stands beside a system
        called: {label: shared | {label: BESIDE} for label in names}
        for called, shared in [*((x, {label: 1.0}) for x, label in added.items()), ("", {})]
    }
    sums: NDArray[Any] = np.array(
        [[sums_of(corpus, weights) for weights in own.values()] for own in starts.values()]
    )
    values = {label: objective.value(own) for label, own in zip(names, sums[-1], strict=True)}
    ranked = sorted(names, key=lambda label: -values[label])
    listed = ", ".join(f"{names[label]} {values[label]:.2f}" for label in ranked)
    announce(f"{objective.name} of each system on these documents: {listed}")
    best = _best_on_others(objective, sums[-1])
    found, without = jackknife(objective, sums[:, best, np.arange(len(best))])
    held = dict(zip(starts, found.tolist(), strict=True))
    safe = max(len(starts) - (1 if alone else 2), 0)
    errors = np.array([standard_error(one - without[safe]) for one in without])
    if not alone:
        errors[:safe] *= (
            _SURE  # of another way of agreement; the system was chosen on few documents
        )
    surely = found - found[safe] > errors * (1 + _ROUNDING)
    chosen = int(np.where(surely, found, -np.inf).argmax()) if surely.any() else safe
    called, source = [*starts][chosen], f"the system {names[ranked[0]]}"
    start = starts[called][ranked[0]]
    if called:
        source = f"the {called} of the systems together with {source}"
    together = "".join(f", together with the {one} {held[one]:.2f}" for one in added)
    announce(
        f"start: {source}; held-out {objective.name} of the system that is best on other documents "
        f"{held['']:.2f}{together}"
    )
    return _derived(features, {label: (weight,) for label, weight in start.items()}, source)


def start_of_lists(features: TunedFeatures, corpus: TuningSet, announce: Printer) -> TunedFeatures:
    """The features with start weights that give the totals of the lists, or else their order.

    Where the lists have no totals, or equal ones, a candidate's total is −ln(its rank). The
    features stay as they are if the weights choose the best total in at most half of the lists.
    O(n F²) for the n candidates of a sample of lists.
    """
    space, kind, best = corpus.space, "totals", "largest total"
    if features.total:
        return _derived(features, {TOTAL: (1.0,)}, "the totals of the lists")
    columns = features.columns(space)
    columns = columns[columns < space.list_width]
    lists = _sample(corpus, columns, corpus.totals)
    if not lists:
        kind, best, lists = "order", "first candidate", _sample(corpus, columns, None)
    if not lists or not len(columns):
        return features
    start = np.zeros(space.width)
    x, y = map(np.concatenate, zip(*lists, strict=True))
    start[columns] = _linear(x, y, 1 if kind == "order" else _FITS)
    start = features.bounds(space).shrunk(start)
    right = np.mean([y[(x @ start[columns]).argmax()] == y.max() for x, y in lists])
    if right <= 0.5 or not start.any():
        return features
    source = f"weights fitted to the {kind} of the lists"
    announce(f"start: {source}; they choose the {best} in {right:.1%} of the lists")
    found = _derived(features, by_name(start, space.labels), source)
    return replace(found, exact=kind == "totals" and bool(right >= _EXACT))


def _derived(
    features: TunedFeatures, start: Mapping[str, tuple[float, ...]], source: str
) -> TunedFeatures:
    return replace(features, given=Weights(start), source=source, derived=True)


def _sample(
    corpus: TuningSet, columns: NDArray[np.int64], totals: Sequence[NDArray[np.float64]] | None
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Features (k, F) and totals (k,) of evenly spread lists, less those of the best candidate.

    Without totals −ln(rank), and all less their means. Lists with equal totals are left out.
    """
    n, found = sum(len(one.static) for one in corpus.documents), []
    for d, document in enumerate(corpus.documents):
        for a, b in list(pairwise(document.offsets.tolist()))[:: 1 + n // _SAMPLE]:
            x = document.static[a:b, columns]
            y = -np.log(np.arange(1, b - a + 1)) if totals is None else totals[d][a:b]
            if 0 < np.ptp(y) < np.inf and np.isfinite(x).all():
                means = x.mean(axis=0), y.mean()
                best = means if totals is None else (x[y.argmax()], y.max())
                found.append((x - best[0], y - best[1]))
    return found


def _linear(x: NDArray[np.float64], y: NDArray[np.float64], n_fits: int) -> NDArray[np.float64]:
    """Weights (F,) of least squares for x (n, F), y (n,); 0 for constant features.

    After more fits, each with smaller weights for rows that fit badly, the sum of |y − x · weights|
    is least.
    """
    size = np.linalg.norm(x, axis=0)
    size[size == 0] = 1
    own = np.ones(len(y))
    for _ in range(n_fits):
        found = np.linalg.lstsq(x / size * own[:, None], y * own, rcond=1e-10)[0] / size
        own = 1 / np.sqrt(np.maximum(np.abs(y - x @ found), 1e-9 * np.abs(y).max()))
    return np.asarray(found)


def values_of_systems(
    systems: Mapping[str, str], corpus: TuningSet, objective: Objective
) -> dict[str, float]:
    """The value of each system by name; systems: by label of its feature."""
    return {n: objective.value(sums_of(corpus, {label: 1.0})) for label, n in systems.items()}


def _best_on_others(objective: Objective, sums: NDArray[Any]) -> NDArray[np.int64]:
    """For each document, the system (D,) that is best on the other folds; sums: (M, D, W)."""
    n_documents = sums.shape[1]
    fold = np.arange(n_documents) % FOLDS
    found = np.zeros(n_documents, np.int64)
    for held in range(fold.max() + 1):
        others = fold != held if n_documents > 1 else fold == held
        found[fold == held] = np.argmax([objective.value(one[others]) for one in sums])
    return found


def sums_of(corpus: TuningSet, weights: Mapping[str, float]) -> Sums:
    """Summed statistics (D, W) of the candidates that weights choose."""
    columns, vector = column_names(corpus.space.labels), np.zeros(corpus.space.width)
    vector[[columns.index(label) for label in weights]] = [*weights.values()]
    path = tuple(
        tuple(int(own.argmax()) for own in own_scores(one.problem(vector), one.first()))
        for one in corpus.documents
    )
    return corpus.sums(path)
