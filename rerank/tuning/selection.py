"""What cross-validation chooses: a share of the way to the tuned weights, by values held out.

A share is good enough if its gain on held-out text is above share · standard error: the further
from the start, the surer it has to be. Of these the smallest within one standard error of the best
is chosen (Breiman, Friedman, Olshen and Stone 1984, Classification and Regression Trees, section
3.4.3): what cannot be told apart is as near to the start as possible. The standard error is that of
a difference on the same documents, whose difficulty cancels out, by a delete-one jackknife over
documents (Efron and Stein 1981, https://doi.org/10.1214/aos/1176345462).

What decides has a price of length in it where the plan holds the length: all documents of a tuning
set may have long references, which cross-validation cannot see (recipes/studies/new-documents).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, length_ratio
from rerank.metrics.significance import Gain
from rerank.tuning.goal import SearchGoal
from rerank.tuning.objective import (
    Objective,
    Sums,
    bleu_of,
    free_length,
    holds_length,
    jackknife,
    length_of,
    standard_error,
)
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.rounds import TuningLists
from rerank.tuning.tuners.ascent import Axes, PoolPoint

CHOICE_FOLDS = 10  # of units, each judged at the share that is chosen on the others
FEWEST_FOR_ERRORS = 5  # units; of fewer, a standard error says nothing
LITTLE = 0.05  # points of the objective that are not worth a word
WORDS = 4  # column of BLEU's statistics
RULE = (
    "a share counts if its gain is above share times its standard error; of those within one "
    "standard error of the best, the smallest is taken; if none counts, the start"
)
NEW = "new"
DOCUMENTS, BLOCKS_OF_LINES = "documents", "blocks of lines"
Floats: TypeAlias = NDArray[np.float64]
Point: TypeAlias = tuple[float, bool]
"""A share of the way, and whether features that begin at 0 have weights that were tuned alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Weights (F,) that tuned weights are shrunk towards.

    spreads: (F,) spread of each feature, 0 for constant ones; settled: whether the scale of weights
    matters, because of fixed scores or ranges; name: what the weights are, for people
    """

    weights: Floats
    spreads: Floats
    settled: bool
    name: str

    @classmethod
    def of(cls, lists: TuningLists, start: Floats, search: PoolSearch, name: str = "") -> Anchor:
        """The start weights, or where there are none the single feature of the best value. O(n F²).

        With either sign; of equal ones the first, without a sign if possible. With indicator
        features of systems this is the best system.
        """
        spreads = Axes.of(lists.pool).scale
        settled = search.bounds.settle_scale(lists.pool)
        if settled or (start * spreads).any():
            return cls(start, spreads, settled, name)
        objective = free_length(search.goal.objective)
        start, name, value = np.zeros(len(search.names)), "no feature", -np.inf
        for sign, how in ((1.0, ""), (-1.0, ", negated")):
            for f, feature in enumerate(search.names):
                weights = np.zeros(len(search.names))
                weights[f] = sign
                weights = search.bounds.clipped(weights)
                decode = lists.decode if f in lists.contextual else lists.pool.decode
                reached = objective.value(decode(weights)) if weights[f] else -np.inf
                if reached > value:
                    start, name, value = weights, f"the feature {feature} alone{how}", reached
        return cls(start, spreads, settled, name)

    def towards(self, tuned: Floats, share: float) -> Floats:
        """Weights (F,) at a share 0..1 of the way from here to `tuned` (F,), which is at 1.

        Where scale is free, both ends first get length 1 in units of the features' spreads, and
        weights on the way get L1 norm 1.
        """
        if share in (0, 1):
            return tuned if share else self.weights
        if self.settled:
            return (1 - share) * self.weights + share * tuned
        return _normalised((1 - share) * self._unit(self.weights) + share * self._unit(tuned))

    def mean(self, weights: Sequence[Floats]) -> Floats:
        """The mean of weights (F,); of their directions, with L1 norm 1, where scale is free."""
        if self.settled:
            return np.asarray(np.mean(weights, axis=0))
        return _normalised(np.mean([self._unit(each) for each in weights], axis=0))

    def _unit(self, weights: Floats) -> Floats:
        length = float(np.linalg.norm(weights * self.spreads))
        return weights / length if length > 0 else weights


def _normalised(weights: Floats) -> Floats:
    return np.asarray(weights / (np.linalg.norm(weights, 1) or 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A share of the way to the tuned weights, and what it gave on held-out units.

    share: of the way to the tuned weights, which are at 1; without `new`, share 0 keeps the start
    weights
    held_out, length_ratio: of all units, each decoded with weights tuned without it, and the
    standard error of the value; difference: in what is maximised, the price of length included, to
    the start weights
    new: see `Point`
    """

    share: float
    held_out: float
    error: float
    difference: float
    difference_error: float
    length_ratio: float
    new: bool = False

    def gain(self, metric: str, n_documents: int) -> Gain:
        """The difference as a gain in a metric, for a verdict."""
        return Gain.of_error(metric, self.difference, self.difference_error, n_documents)


def compared(
    points: Sequence[Point], sums: Sums, objective: Objective
) -> tuple[tuple[Candidate, ...], int]:
    """The candidates at points of the way, start first, and which one is chosen.

    sums: (C, U, W) statistics. Values are without a price of length; an objective that holds the
    length has that of the start on the same units.
    """
    decisive, without = jackknife(objective, sums)
    values, values_without = jackknife(free_length(objective), sums)
    candidates = tuple(
        Candidate(
            share,
            float(values[c]),
            standard_error(values_without[c]),
            float(decisive[c] - decisive[0]),
            standard_error(without[c] - without[0]),
            length_of(sums[c]),
            new,
        )
        for c, (share, new) in enumerate(points)
    )
    good = [
        c
        for c, candidate in enumerate(candidates)
        if candidate.difference > candidate.share * candidate.difference_error
    ]
    best = max(good, key=lambda c: decisive[c], default=0)
    near = (
        c
        for c in good
        if decisive[c] >= decisive[best] - standard_error(without[best] - without[c])
    )
    return candidates, next(near, 0)


def nested(points: Sequence[Point], sums: Sums, objective: Objective) -> Sums:
    """Statistics (U, W) of units, each at the point that is chosen on the units of other folds.

    On the units that it was chosen on, the value of the best point is too good. O(C G U W) for each
    of ten folds.
    """
    folds = np.arange(sums.shape[1]) % CHOICE_FOLDS
    held: Sums = np.zeros_like(sums[0])
    for fold in np.unique(folds):
        _, chosen = compared(points, sums[:, folds != fold], objective)
        held[folds == fold] = sums[chosen, folds == fold]
    return held


def beside(
    before: Sums, after: Sums, objective: Objective, point: Point = (1.0, False)
) -> Candidate:
    """The value of statistics (U, W), and its difference to that of others of the same units."""
    return compared([(0.0, False), point], np.stack([before, after]), objective)[0][1]


@dataclass(frozen=True, slots=True)
class Length:
    """What the start weights' output says about length, and what another would be worth.

    ratio: length ÷ length of the references; documents: that of each with words in its references;
    spread: their standard deviation, weighted by these words; price: of a length ratio that is off
    by 1, where tuning holds the length; best_ratio: of the outputs with the best value if
    candidates are longer or shorter by a price per word, all else equal; worth: this value, less
    that of the start, both of the objective without a held length
    """

    ratio: float
    documents: tuple[float, ...]
    spread: float
    price: float
    best_ratio: float
    worth: float

    @classmethod
    def of(cls, pool: Pool, start: Floats, objective: Objective) -> Length:
        """The length of what weights `start` (F,) choose. One line search: O(n)."""
        price = objective.price if holds_length(objective) else 0.0
        words = pool.statistics[:, WORDS].astype(np.float64)[:, None]
        priced = replace(pool, features=words, fixed=pool.scores(start))
        point = PoolPoint(Axes.of(priced), np.zeros(1), SearchGoal(free_length(objective)))
        before, ratio = point.value, length_of(point.sums)
        filled = point.sums[point.sums[:, WIDTH - 1] > 0, :WIDTH]
        ratios, sizes = length_ratio(filled), filled[:, WIDTH - 1]
        variance = float(sizes @ (ratios - length_of(point.sums)) ** 2) / max(
            float(sizes.sum()), 1.0
        )
        if len(point.features):
            point.take(0, point.search(0))
        best, worth = length_of(point.sums), point.value - before
        return cls(ratio, tuple(ratios.tolist()), math.sqrt(variance), price, best, worth)

    def to_text(self, unit: str) -> str:
        """What is held, why, and what it costs, in one line for people; unit: as of `Selection`."""
        percent = 100 * abs(1 / self.ratio - 1) if self.ratio else 0.0
        line = (
            f"length: the references are {percent:.0f} % "
            f"{'longer' if self.ratio < 1 else 'shorter'} than the output of the start weights "
            f"(length ratio {self.ratio:.3f} ± {self.spread:.3f} between {unit}); tuning "
        )
        if not self.price:
            return f"{line}may change the length of the output"
        line += f"keeps it: a ratio that is off by 0.1 costs {self.price / 10:g}"
        if self.worth < LITTLE:
            return line
        return (
            f"{line}: outputs as {'short' if self.best_ratio < self.ratio else 'long'} as "
            f"{self.best_ratio:.3f} would have {self.worth:+.2f} on these documents and lose on "
            "documents that are not like them; --length-ratio free if yours are"
        )


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """All candidates, start first, and the chosen one.

    held_out: (C, U, W) statistics of each held-out unit for each candidate, of all rounds of folds
    first: the first candidates of the same units; choice: what the rule gives on units that it did
    not choose on, beside the start, or the start where that is kept, and its summed statistics
    (U, W); beside_first: the choice beside the first candidates
    ways: where each way to tuned weights begins, and where it ends, the mean of the weights (F,)
    tuned in the folds, by whether new features have weights on it
    of_folds: weights (F,) of each fold at the chosen share
    objective: name of the objective that values are of; maximised: of that which decides, with the
    price of length if there is one
    """

    candidates: tuple[Candidate, ...]
    chosen: Candidate
    held_out: Sums
    first: Candidate
    choice: Candidate
    statistics: Sums
    beside_first: Candidate
    objective: str
    maximised: str
    anchor: Anchor
    ways: Mapping[bool, tuple[Anchor, Floats]]
    of_folds: tuple[Floats, ...]
    unit: str
    n_folds: int
    length: Length

    @property
    def kept(self) -> bool:
        """Whether the start weights are kept."""
        return self.chosen is self.candidates[0]

    @property
    def n_units(self) -> int:
        """U, how many units were held out."""
        return int(self.held_out.shape[1])

    @property
    def tuned(self) -> Floats:
        """(F,) Mean of the weights tuned in the folds, on the way of the chosen candidate."""
        return self.ways.get(self.chosen.new, next(iter(self.ways.values())))[1]

    def weights(self, tuned: Floats) -> Floats:
        """The weights (F,) at the chosen share of the way to tuned ones (F,)."""
        if self.kept:
            return self.anchor.weights
        begin, _ = self.ways[self.chosen.new]
        if len(self.ways) > 1 and not self.chosen.new:  # features that begin at 0 gain nothing
            tuned = np.where(begin.weights == 0, 0.0, tuned)
        return begin.towards(tuned, self.chosen.share)

    def entries(self, names: Sequence[str]) -> dict[str, object]:
        """Entries of a weights file, with those of the tuned features (G,) that vary in lists."""
        selection = {
            "folds": self.n_folds,
            "tunings": len(self.of_folds),
            "held_out": {"unit": self.unit, "number": self.n_units},
            "objective": self.objective,
            "maximised": self.maximised,
            "rule": RULE,
            "start": self.anchor.name,
            "first_candidates": asdict(self.first),
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "chosen": asdict(self.chosen),
            "choice": asdict(self.choice),
            "beside_first_candidates": asdict(self.beside_first),
            "held_out_bleu": bleu_of(self.statistics),
            "length": asdict(self.length),
        }
        varying = zip(names, self.anchor.spreads, strict=True)
        return {"selection": selection, "judged": [name for name, spread in varying if spread]}

    def table(self) -> list[str]:
        """The value of the first candidates, the start weights and each share, for people."""
        new = "; new: features that begin at 0 tuned alone" * (True in self.ways)
        new += ", which is no gain: shares are tried with and without them" * (len(self.ways) > 1)
        priced = ", length priced" * bool(self.length.price)
        rows: list[tuple[str, ...]] = [("", self.objective, "length", f"difference{priced}", "")]
        rows.append(self._row("first candidates", self.first, difference=False))
        for candidate in self.candidates:
            name = f"{candidate.share:g}" if candidate.share or not candidate.new else NEW
            if candidate.new and candidate.share and len(self.ways) > 1:
                name = f"{NEW} {name}"
            start = candidate is self.candidates[0]
            mark = "← chosen" if candidate is self.chosen else ""
            name = "start weights" if start else name
            rows.append(self._row(name, candidate, difference=not start, mark=mark))
        if not self.kept:
            rows.append(self._row("chosen on others", self.choice))
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ["  ".join(["", *map(str.ljust, cells, widths)]).rstrip() for cells in rows]
        rounds = len(self.of_folds) // self.n_folds
        times = f"{rounds} × " if rounds > 1 else ""
        how = f"{self.n_units} {self.unit}, {times}{self.n_folds}-fold cross-validation"
        head = f"held out, {how}: how far from {self.anchor.name} to the tuned weights{new}"
        return [head, *lines, f"rule: {RULE}", self.length.to_text(self.unit)]

    def to_text(self) -> str:
        """The chosen candidate and its held-out value, in one line for people."""
        start = f"{self.anchor.name} {self._value(self.candidates[0])}"
        first = f"first candidates {self.first.held_out:.2f}"
        if self.kept:
            return (
                f"held out: {self.objective} {self._value(self.chosen)} with {self.anchor.name}, "
                f"{first}: no tuned weights are surely better, so these are kept"
            )
        share = f"{self.chosen.share:g} of the way to the tuned weights"
        share = share if self.chosen.share else "features that begin at 0 tuned alone"
        return f"held out: {self.objective} {self._value(self.choice)}, {start}, {first} ({share})"

    def _row(
        self, name: str, candidate: Candidate, *, difference: bool = True, mark: str = ""
    ) -> tuple[str, ...]:
        gain = self._with_error(f"{candidate.difference:+.2f}", candidate.difference_error)
        ratio = f"{candidate.length_ratio:.3f}"
        return name, self._value(candidate), ratio, gain if difference else "", mark

    def _value(self, candidate: Candidate) -> str:
        return self._with_error(f"{candidate.held_out:.2f}", candidate.error)

    def _with_error(self, value: str, error: float) -> str:
        """A value, with its standard error where there are enough units for one."""
        return f"{value} ± {error:.2f}" if self.n_units >= FEWEST_FOR_ERRORS else value
