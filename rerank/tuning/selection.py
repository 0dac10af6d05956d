"""What cross-validation chooses: a share of the way to the tuned weights, by values held out.

A share is good enough if its gain on held-out text is above share · standard error: the further
from the start, the surer it has to be. Of these the smallest within one standard error of the best
is chosen (Breiman, Friedman, Olshen and Stone 1984, Classification and Regression Trees, section
3.4.3): what cannot be told apart is as near to the start as possible. The standard error is that of
a difference on the same documents, whose difficulty cancels out, by a delete-one jackknife over
documents (Efron and Stein 1981, https://doi.org/10.1214/aos/1176345462).

Values are of the objective alone. What decides has a price of length in it where the plan holds the
length: how long their references are is what all documents of a tuning set have in common, so that
cross-validation cannot see it (`SearchGoal.held`; recipes/studies/new-documents).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.goal import SearchGoal, length_ratios
from rerank.tuning.lists import TuningLists
from rerank.tuning.objective import (
    HeldLength,
    Objective,
    Sums,
    bleu_of,
    free_length,
    jackknife,
    length_of,
    standard_error,
)
from rerank.tuning.pool import Pool
from rerank.tuning.pool_search import PoolSearch
from rerank.tuning.tuners.ascent import Axes, PoolPoint

CHOICE_FOLDS = 10  # of units, each judged at the share that is chosen on the others
FEWEST_FOR_ERRORS = 5  # units; of fewer, a standard error says nothing
LITTLE = 0.05  # points of the objective that are not worth a word
WORDS = 4  # column of BLEU's statistics
RULE = (
    "of the shares that gain more than share · standard error, the smallest within one standard "
    "error of the best; the start if there is none"
)
NEW = "new"
DOCUMENTS, BLOCKS_OF_LINES = "documents", "blocks of lines"


@dataclass(frozen=True, slots=True, eq=False)
class Anchor:
    """Weights (F,) that tuned weights are shrunk towards.

    spreads: (F,) spread of each feature, 0 for constant ones; settled: whether the scale of weights
    matters, because of fixed scores or ranges; name: what the weights are, for people
    """

    weights: NDArray[np.float64]
    spreads: NDArray[np.float64]
    settled: bool
    name: str

    @classmethod
    def of(
        cls,
        lists: TuningLists,
        start: NDArray[np.float64],
        search: PoolSearch,
        name: str = "start weights",
    ) -> Anchor:
        """The start weights, or the best single feature where there are none."""
        spreads = Axes.of(lists.pool).scale
        settled = search.bounds.settle_scale(lists.pool)
        if settled or (start * spreads).any():
            return cls(start, spreads, settled, name)
        feature, name = _best_feature(lists, search)
        return cls(feature, spreads, settled, name)

    def towards(self, tuned: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        """Weights (F,) at a share 0..1 of the way from here to `tuned` (F,), which is at 1.

        Where scale is free, both ends first get length 1 in units of the features' spreads, and
        weights on the way get L1 norm 1.
        """
        if share in (0, 1):
            return tuned if share else self.weights
        if self.settled:
            return (1 - share) * self.weights + share * tuned
        mixed = (1 - share) * self._unit(self.weights) + share * self._unit(tuned)
        return np.asarray(mixed / (np.linalg.norm(mixed, 1) or 1.0))

    def mean(self, several: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """The mean of weights (F,); of their directions, with L1 norm 1, where scale is free."""
        if self.settled:
            return np.asarray(np.mean(several, axis=0))
        mean = np.mean([self._unit(one) for one in several], axis=0)
        return np.asarray(mean / (np.linalg.norm(mean, 1) or 1.0))

    def _unit(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        length = float(np.linalg.norm(weights * self.spreads))
        return weights / length if length > 0 else weights


def _best_feature(lists: TuningLists, search: PoolSearch) -> tuple[NDArray[np.float64], str]:
    """Weights (F,) of the single feature, with either sign, that has the best value, and its name.

    Of equal ones the first, without a sign if possible. With indicator features of systems this is
    the best system. O(n F²).
    """
    names, objective = search.names, free_length(search.goal.objective)
    best, found, value = np.zeros(len(names)), "no feature", -np.inf
    for sign, how in ((1.0, ""), (-1.0, ", negated")):
        for f, name in enumerate(names):
            weights = np.zeros(len(names))
            weights[f] = sign
            weights = search.bounds.clipped(weights)
            searched = lists.decode if f in lists.contextual else lists.pool.decode
            reached = objective.value(searched(weights)) if weights[f] else -np.inf
            if reached > value:
                best, found, value = weights, f"the feature {name} alone{how}", reached
    return best, found


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A share of the way to the tuned weights, and what it gave on held-out units.

    share: of the way to the tuned weights, which are at 1
    new: whether features that begin at 0 have weights that were tuned alone; without, share 0 keeps
    the start weights
    held_out, length_ratio: of all units, each decoded with weights tuned without it, and the
    standard error of the value; difference: in what is maximised, the price of length included, to
    the start weights
    """

    share: float
    held_out: float
    error: float
    difference: float
    difference_error: float
    length_ratio: float
    new: bool = False


@dataclass(frozen=True, slots=True)
class Length:
    """What the start weights' output says about length, and what another would be worth.

    ratio: length ÷ length of the references; documents, spread: see `length_ratios`; price: of a
    length ratio that is off by 1, where tuning holds the length; best_ratio: of the outputs with
    the best value if candidates are longer or shorter by a price per word, all else equal; worth:
    this value, less that of the start, both of the objective without a held length
    """

    ratio: float
    documents: tuple[float, ...]
    spread: float
    price: float
    best_ratio: float
    worth: float

    @classmethod
    def of(cls, pool: Pool, start: NDArray[np.float64], objective: Objective) -> Length:
        """The length of what weights `start` (F,) choose. One line search: O(n)."""
        price = objective.price if isinstance(objective, HeldLength) else 0.0
        words = pool.statistics[:, WORDS].astype(np.float64)[:, None]
        priced = replace(pool, features=words, fixed=pool.scores(start))
        point = PoolPoint(Axes.of(priced), np.zeros(1), SearchGoal(free_length(objective)))
        before, (ratios, spread) = point.value, length_ratios(point.sums)
        ratio = length_of(point.sums)
        if len(point.features):
            point.take(0, point.search(0))
        best, worth = length_of(point.sums), point.value - before
        return cls(ratio, tuple(ratios.tolist()), spread, price, best, worth)

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
        line += (
            f"holds the length of the start by a price of {self.price:g} for a ratio that is off "
            "by 1"
        )
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
    anchor: the start weights; ways: where each way to tuned weights begins, and where it ends, the
    mean of the weights (F,) tuned in the folds, by whether new features have weights on it
    of_folds: weights (F,) of each fold at the chosen share
    unit: what was held out, documents or blocks of lines, U of them in `n_folds` folds
    objective: name of the objective that values are of; maximised: of that which decides, with the
    price of length if there is one; length: what the documents say about it
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
    ways: Mapping[bool, tuple[Anchor, NDArray[np.float64]]]
    of_folds: tuple[NDArray[np.float64], ...]
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
    def tuned(self) -> NDArray[np.float64]:
        """(F,) Mean of the weights tuned in the folds, on the way of the chosen candidate."""
        return self.ways.get(self.chosen.new, next(iter(self.ways.values())))[1]

    @property
    def without_new(self) -> bool:
        """Whether features that begin at 0 are better left out."""
        return len(self.ways) > 1 and not self.chosen.new

    def weights(self, tuned: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights (F,) at the chosen share of the way to tuned ones (F,)."""
        if self.kept:
            return self.anchor.weights
        begin = self.ways[self.chosen.new][0]
        if self.without_new:
            tuned = np.where(begin.weights == 0, 0.0, tuned)
        return begin.towards(tuned, self.chosen.share)

    def entries(self, names: Sequence[str]) -> dict[str, object]:
        """Entries of a weights file, with those of the tuned features (G,) that vary in lists."""
        both = zip(names, self.anchor.spreads, strict=True)
        found = {
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
        return {"selection": found, "judged": [name for name, spread in both if spread]}

    def table(self) -> list[str]:
        """The value of the first candidates, the start weights and each share, for people."""
        new = "; new: features that begin at 0 tuned alone"
        tried = ", which is no gain: shares are tried with and without them"
        ways = (new + tried * (len(self.ways) > 1)) * (True in self.ways)
        priced = ", length priced" * bool(self.length.price)
        rows = [("", self.objective, "length", f"difference{priced}", "")]
        rows.append(("first candidates", self._value(self.first), _ratio(self.first), "", ""))
        for candidate in self.candidates:
            name = f"{candidate.share:g}" if candidate.share or not candidate.new else NEW
            if candidate.new and candidate.share and len(self.ways) > 1:
                name = f"{NEW} {name}"
            start = candidate is self.candidates[0]
            rows.append(
                (
                    "start weights" if start else name,
                    self._value(candidate),
                    _ratio(candidate),
                    "" if start else self._difference(candidate),
                    "← chosen" if candidate is self.chosen else "",
                )
            )
        if not self.kept:
            values = self._value(self.choice), _ratio(self.choice), self._difference(self.choice)
            rows.append(("chosen on others", *values, ""))
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ["  ".join(["", *map(str.ljust, cells, widths)]).rstrip() for cells in rows]
        head = f"held out, {self._how()}: shares of the way from {self.anchor.name}{ways}"
        return [head, *lines, f"rule: {RULE}", self.length.to_text(self.unit)]

    def to_text(self) -> str:
        """The chosen candidate and its held-out value, in one line for people."""
        start, chosen = self.candidates[0], self.chosen
        first = f"first candidates {self.first.held_out:.2f}"
        if self.kept:
            return (
                f"held out: {self.objective} {self._value(start)} with {self.anchor.name}, "
                f"{first}: no tuned weights are surely better, so these are kept"
            )
        share = f"{chosen.share:g} of the way to the tuned weights"
        return (
            f"held out: {self.objective} {self._value(self.choice)}, {self.anchor.name} "
            f"{self._value(start)}, {first} "
            f"({share if chosen.share else 'features that begin at 0 tuned alone'})"
        )

    def _how(self) -> str:
        """`12 documents, 2 × 5-fold cross-validation`."""
        rounds = len(self.of_folds) // self.n_folds
        times = f"{rounds} × " if rounds > 1 else ""
        return f"{self.n_units} {self.unit}, {times}{self.n_folds}-fold cross-validation"

    def _value(self, candidate: Candidate) -> str:
        """A value, with its standard error where there are enough units for one."""
        error = f" ± {candidate.error:.2f}" if self.n_units >= FEWEST_FOR_ERRORS else ""
        return f"{candidate.held_out:.2f}{error}"

    def _difference(self, candidate: Candidate) -> str:
        """A difference, with its standard error where there are enough units for one."""
        enough = self.n_units >= FEWEST_FOR_ERRORS
        error = f" ± {candidate.difference_error:.2f}" if enough else ""
        return f"{candidate.difference:+.2f}{error}"


def _ratio(candidate: Candidate) -> str:
    return f"{candidate.length_ratio:.3f}"


def compared(
    points: Sequence[tuple[float, bool]], sums: Sums, objective: Objective
) -> tuple[tuple[Candidate, ...], int]:
    """The candidates at points of the way, start first, and which one is chosen.

    points: share, and whether new features have weights; sums: (C, U, W) statistics. Values are
    without a price of length; an objective that holds the length has that of the start on the same
    units.
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


def nested(points: Sequence[tuple[float, bool]], sums: Sums, objective: Objective) -> Sums:
    """Statistics (U, W) of units, each at the point that is chosen on the units of other folds.

    The value of the best of several points is too good on the units that it was chosen on, by what
    chance gave it. O(C G U W) for each of ten folds. points, sums: as of `compared`
    """
    folds = np.arange(sums.shape[1]) % CHOICE_FOLDS
    held: Sums = np.zeros_like(sums[0])
    for fold in np.unique(folds):
        _, chosen = compared(points, sums[:, folds != fold], objective)
        held[folds == fold] = sums[chosen, folds == fold]
    return held


def beside(
    before: Sums, after: Sums, objective: Objective, point: tuple[float, bool] = (1.0, False)
) -> Candidate:
    """The value of statistics (U, W), and its difference to that of others of the same units."""
    return compared([(0.0, False), point], np.stack([before, after]), objective)[0][1]
