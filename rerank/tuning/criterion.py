"""What to tune for: an objective, a length to keep to, and how steady it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, length_ratio
from rerank.tuning.goals import SearchGoal, goal_of
from rerank.tuning.objectives import Corpus, LengthPriced, Objective, Sums
from rerank.tuning.regularisation import Shrinkage, Window

Length: TypeAlias = Literal["keep", "free"] | float
CORPUS = Corpus()
PRICE = 5.0  # BLEU that a length ratio off by 1 costs: .02 for 4 words in a thousand


@dataclass(frozen=True, slots=True)
class Criterion:
    """What tuning maximises, before the lists are known.

    length: the length ratio to keep to: that of the first candidates, a number, or any
    price: of a length ratio off by 1, in units of the objective
    shrinkage: price of leaving the start weights' direction altogether (`regularisation`); features
    with a start weight of 0 are free
    """

    objective: Objective = CORPUS
    length: Length = "free"
    price: float = PRICE
    window: Window | None = None
    shrinkage: float = 0.0

    def goal(
        self, first: Sums, start: NDArray[np.float64], scale: NDArray[np.float64]
    ) -> SearchGoal:
        """The goal on given lists.

        first: (W,) summed statistics of the first candidates; start: (F,) weights; scale: (F,)
        spread of each feature. There is no shrinkage towards zeros.
        """
        objective = self.objective
        if self.length != "free" and self.price > 0:
            ratio = float(length_ratio(first[:WIDTH])) if self.length == "keep" else self.length
            objective = LengthPriced(objective, float(ratio), self.price)
        pull = self.shrinkage > 0 and bool((start * scale).any())
        known = np.where(start != 0, scale, 0.0)  # a new feature leaves no direction
        shrinkage = Shrinkage(start, known, self.shrinkage) if pull else None
        return goal_of(objective, self.window, shrinkage)


BLEU_ALONE = Criterion()
"""Corpus BLEU and nothing else."""
