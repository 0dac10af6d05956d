"""Rounds of tuning where features depend on context: score under a path, search, decode again.

The features of a candidate are known only given the choices around it. Each round scores all
candidates under the path decoded last, finds the best weights for that pool, and decodes with them.
No row of an earlier pool is kept: its context is one that no neighbour chooses any more. BLEU
predicted by the pool and BLEU of the decoded path differ, and only the second is real.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rerank.bleu import corpus_bleu, length_ratio
from rerank.notices import Notices
from rerank.tuning.ascent import Optimum
from rerank.tuning.mert import Settings, optimise
from rerank.tuning.pool import Pool

P = TypeVar("P")

STILL = 1e-5
PATIENCE = 2
MOST_ROUNDS = 15


@dataclass(frozen=True, slots=True)
class ContextTask(Generic[P]):
    """What a tuning set can do; a path of type P holds the choices for all of its documents.

    first: the path of the first candidates
    pool_under: the pool of all candidates, each scored in the context that the path gives it
    decode: the path that weights (F,) choose, and its summed statistics (9,)
    """

    first: P
    pool_under: Callable[[P], Pool]
    decode: Callable[[NDArray[np.float64]], tuple[P, NDArray[np.int64]]]


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One round: weights found, what their pool predicts, and what decoding with them gives.

    Round 0 is decoding with the start weights; nothing was predicted for it. `moved` is the largest
    change of a weight since the round before.
    """

    number: int
    weights: NDArray[np.float64]
    predicted: Optimum | None
    statistics: NDArray[np.int64]
    moved: float

    @property
    def bleu(self) -> float:
        """BLEU of the decoded path, 0..100."""
        return float(corpus_bleu(self.statistics))

    @property
    def ratio(self) -> float:
        """Length of the decoded path ÷ length of the references."""
        return float(length_ratio(self.statistics))


def tune_in_rounds(
    task: ContextTask[P],
    start: NDArray[np.float64],
    notices: Notices,
    *,
    names: Sequence[str],
    settings: Settings,
    report: Callable[[Round], None],
) -> Round:
    """The round with the best decoded BLEU, of equal ones the first; `report` sees each round.

    A start of zeros is no result, unless fixed scores make up for it.

    Stops when no weight moves by 1e-5, when two rounds running do not raise decoded BLEU, or after
    15 rounds. The first pool is scored under the first candidates, the next ones under the path
    that the newest weights decode.
    """
    _, statistics = task.decode(start)
    best = last = Round(0, start, None, statistics, 0.0)
    report(last)
    path = task.first
    for number in range(1, MOST_ROUNDS + 1):
        pool = task.pool_under(path)
        found = optimise(pool, last.weights, notices, names=names, settings=settings).best
        path, statistics = task.decode(found.weights)
        moved = float(np.abs(found.weights - last.weights).max(initial=0.0))
        last = Round(number, found.weights, found, statistics, moved)
        report(last)
        no_weights = not (best.weights.any() or pool.fixed.any())  # zeros choose, but say nothing
        if last.bleu > best.bleu or no_weights:
            best = last
        if moved < STILL or number - best.number >= PATIENCE:
            break
    return best
