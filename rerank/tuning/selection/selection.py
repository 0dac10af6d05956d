"""The choice between candidates by their held-out statistics: the one-standard-error rule.

Breiman, Friedman, Olshen and Stone (1984), Classification and Regression Trees, section 3.4.3: of
all candidates whose held-out value is within one standard error of the best, the simplest is
chosen. Here the simplest is the one nearest to the start weights, and the standard error is that of
the difference to the best candidate: both are measured on the same documents, whose difficulty
cancels out. It is a delete-one jackknife over the documents (Efron and Stein 1981,
https://doi.org/10.1214/aos/1176345462).
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


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A way of tuning and what it gave on held-out units.

    share: of the way from the start weights to those tuned by `algorithm`; 0 keeps the start
    statistics: (U, W) summed statistics of each unit, decoded with weights tuned without it
    """

    algorithm: str
    share: float
    statistics: Sums

    @property
    def name(self) -> str:
        """The candidate, for people."""
        return f"{self.algorithm} {self.share:g}" if self.share else "start"


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
            "algorithm": self.candidate.algorithm if self.candidate.share else None,
            "share": self.candidate.share,
            "held_out": self.value,
            "error": self.error,
            "difference": self.difference,
            "difference_error": self.difference_error,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """All candidates, start first, and the chosen one; `anchor` are the start weights.

    unit: what was held out, documents or blocks of lines, U of them in `n_folds` folds
    objective: name of the objective that all values are of
    """

    compared: tuple[Comparison, ...]
    chosen: Comparison
    objective: str
    anchor: Anchor
    unit: str
    n_folds: int

    @property
    def kept(self) -> bool:
        """Whether the start weights are kept."""
        return self.chosen.candidate.share == 0

    def weights(self, tuned: NDArray[np.float64]) -> NDArray[np.float64]:
        """The chosen weights (F,), given those tuned on the whole set."""
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
        """A line for each algorithm with the differences to the start weights, for people."""
        start = _with_error(self.compared[0])
        lines = [f"held-out {self.objective} of {self.anchor.name}: {start}"]
        for name in dict.fromkeys(one.candidate.algorithm for one in self.compared[1:]):
            own = [one for one in self.compared[1:] if one.candidate.algorithm == name]
            shares = ", ".join(f"{one.candidate.share:g}: {_difference(one)}" for one in own)
            lines.append(f"{name}, difference at each share of the way: {shares}")
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
            f"{chosen.candidate.algorithm}, {chosen.candidate.share:g} of the way from the start)"
        )


def one_standard_error(
    candidates: Sequence[Candidate],
    objective: Objective,
    *,
    anchor: Anchor,
    unit: str,
    n_folds: int,
) -> Selection:
    """The candidate of the smallest share within one standard error of the best.

    The first candidate is the start. Of candidates with an equal share the better one counts, of
    equally good ones the first. O(C G U W) for C candidates, G ≤ 50 groups of the jackknife.
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
    best = int(values.argmax())
    near = [
        c
        for c in range(len(candidates))
        if values[c] >= values[best] - _error(without[best] - without[c])
    ]
    chosen = min(near, key=lambda c: (candidates[c].share, -values[c]))
    return Selection(compared, compared[chosen], objective.name, anchor, unit, n_folds)


def _jackknife(objective: Objective, statistics: Sums) -> NDArray[np.float64]:
    """Values (G,) without each of G groups of units."""
    group = np.arange(len(statistics)) % min(len(statistics), GROUPS)
    return np.array([objective.value(statistics[group != g]) for g in range(group.max() + 1)])


def _error(values: NDArray[np.float64]) -> float:
    """Standard error of a statistic whose values without each of G groups are given (G,)."""
    spread = float(((values - values.mean()) ** 2).sum())
    return math.sqrt(spread * (len(values) - 1) / len(values))


def _with_error(one: Comparison) -> str:
    return f"{one.value:.2f} ± {one.error:.2f}"


def _difference(one: Comparison) -> str:
    return f"{one.difference:+.2f} ± {one.difference_error:.2f}"
