"""The choice between shares of the way to the tuned weights, by what they give on held-out text.

Only shares that are better than the start weights on held-out text are taken, and only those within
one standard error of the best (Breiman, Friedman, Olshen and Stone 1984, Classification and
Regression Trees, section 3.4.3). The differences between these are noise, so their median is
chosen, of two the smaller share. The standard error is that of the difference to the best
candidate, on the same documents, whose difficulty cancels out, by a delete-one jackknife over
documents (Efron and Stein 1981, https://doi.org/10.1214/aos/1176345462).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.objectives.objective import Objective, Sums, bleu_of
from rerank.tuning.selection.shrunk import Anchor

GROUPS = 50  # of units in a jackknife, at most
EVEN, SURE = 0.5, 0.975  # confidence that tuned weights are better than the start


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A share of the way to the tuned weights, and what it gave on held-out units.

    share: 0 keeps the start weights, 1 takes the tuned ones
    statistics: (U, W) summed statistics of each unit, decoded with weights tuned without it
    """

    share: float
    statistics: Sums


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """A candidate with its held-out value, and the difference to that of the start weights.

    error: standard error of `value`; difference_error: of `difference`
    """

    candidate: Candidate
    value: float
    error: float
    difference: float
    difference_error: float

    def to_dict(self) -> dict[str, object]:
        """Entry of a weights file."""
        return {
            "share": self.candidate.share,
            "held_out": self.value,
            "error": self.error,
            "difference": self.difference,
            "difference_error": self.difference_error,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """All candidates, start first, and the chosen one.

    anchor: the start weights; tuned: (F,) mean of the weights tuned in the folds
    unit: what was held out, documents or blocks of lines, U of them in `n_folds` folds
    objective: name of the objective that all values are of
    """

    compared: tuple[Comparison, ...]
    chosen: Comparison
    objective: str
    anchor: Anchor
    tuned: NDArray[np.float64]
    unit: str
    n_folds: int

    @property
    def kept(self) -> bool:
        """Whether the start weights are kept."""
        return self.chosen.candidate.share == 0

    def weights(self, tuned: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights (F,) at the chosen share of the way to tuned ones (F,)."""
        return self.anchor.towards(tuned, self.chosen.candidate.share)

    def to_dict(self) -> Mapping[str, object]:
        """Entry of a weights file."""
        start = self.compared[0].candidate.statistics
        return {
            "folds": self.n_folds,
            "held_out": {"unit": self.unit, "number": len(start)},
            "objective": self.objective,
            "start": self.anchor.name,
            "candidates": [one.to_dict() for one in self.compared],
            "chosen": self.chosen.to_dict(),
            "held_out_bleu": bleu_of(self.chosen.candidate.statistics),
        }

    def table(self) -> list[str]:
        """The value at each share, for people."""
        lines = [f"held-out {self.objective} at shares of the way from {self.anchor.name}:"]
        for one in self.compared:
            mark = "  ← chosen" if one is self.chosen else ""
            difference = f"  {_difference(one)}" if one.candidate.share else ""
            lines.append(f"  {one.candidate.share:<4g} {_with_error(one)}{difference}{mark}")
        return lines

    def to_text(self) -> str:
        """The chosen candidate and its held-out value, in one line for people."""
        start, chosen = self.compared[0], self.chosen
        how = f"{self.n_folds}-fold cross-validation over {len(start.candidate.statistics)} "
        how += self.unit
        if self.kept:
            return (
                f"held-out {self.objective} {_with_error(start)} with {self.anchor.name}: no tuned "
                f"weights are surely better on held-out text, so these are kept ({how})"
            )
        return (
            f"held-out {self.objective} {_with_error(chosen)}; {self.anchor.name} "
            f"{start.value:.2f}, difference {_difference(chosen)} ({how}; "
            f"{chosen.candidate.share:g} of the way to the tuned weights)"
        )


def choose(
    candidates: Sequence[Candidate],
    objective: Objective,
    *,
    anchor: Anchor,
    tuned: NDArray[np.float64],
    unit: str,
    n_folds: int,
    confidence: float = EVEN,
) -> Selection:
    """The start where no candidate is better, else the one chosen within one standard error.

    candidates: by share, the start first; confidence: that one is better than the start, to be
    chosen, by a one-sided t-test; for the other arguments see `Selection`. O(C G U W) for C
    candidates and G ≤ 50 groups of the jackknife.
    """
    values = np.array([objective.value(one.statistics) for one in candidates])
    without = np.array([_jackknife(objective, one.statistics) for one in candidates])
    compared = tuple(
        Comparison(
            one,
            float(values[c]),
            _error(without[c]),
            float(values[c] - values[0]),
            _error(without[c] - without[0]),
        )
        for c, one in enumerate(candidates)
    )
    errors = _quantile(confidence, without.shape[1] - 1)
    best = int(values.argmax())
    near = [
        c
        for c in range(1, len(candidates))
        if values[c] - values[0] > errors * _error(without[c] - without[0])
        and values[c] >= values[best] - _error(without[best] - without[c])
    ]
    chosen = near[(len(near) - 1) // 2] if near else 0
    return Selection(compared, compared[chosen], objective.name, anchor, tuned, unit, n_folds)


def _jackknife(objective: Objective, statistics: Sums) -> NDArray[np.float64]:
    """Values (G,) without each of G groups of units."""
    group = np.arange(len(statistics)) % min(len(statistics), GROUPS)
    return np.array([objective.value(statistics[group != g]) for g in range(group.max() + 1)])


def _error(values: NDArray[np.float64]) -> float:
    """Standard error of a statistic whose values without each of G groups are given (G,)."""
    spread = float(((values - values.mean()) ** 2).sum())
    return math.sqrt(spread * (len(values) - 1) / len(values))


def _quantile(confidence: float, freedom: int) -> float:
    """Standard errors that a difference of no worth stays below with this confidence."""
    if confidence == EVEN:
        return 0.0
    from scipy.special import stdtrit  # 0.2 s

    return float(stdtrit(freedom, confidence))


def _with_error(one: Comparison) -> str:
    return f"{one.value:.2f} ± {one.error:.2f}"


def _difference(one: Comparison) -> str:
    return f"{one.difference:+.2f} ± {one.difference_error:.2f}"
