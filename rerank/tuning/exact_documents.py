"""Tuning on the documents themselves: exact line searches over all paths, from several points.

Where scores look one sentence back at most, no pool stands between the search and the decoder: what
a round predicts is what is decoded. A climb on documents is local, so it begins at the better of
the start and the optimum of a pool, and goes on from kicks, as in `rerank.tuning.mert`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.ascent import Optimum
from rerank.tuning.bounds import Bounds
from rerank.tuning.mert import kicked
from rerank.tuning.objectives import Sums
from rerank.tuning.pool import Pool
from rerank.tuning.rounds import Find, Step, Steps, Value

Climb = Callable[[NDArray[np.float64]], Optimum]
"""From weights (F,) to the local optimum on documents."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactDocuments:
    """Climbs on documents.

    pool: all candidates under the first candidates' path, for a first guess by `find`; decode:
    summed statistics (D, W) of what weights (F,) choose; spreads: (F,) of the features
    """

    pool: Callable[[], Pool]
    find: Find
    climb: Climb
    decode: Callable[[NDArray[np.float64]], Sums]
    spreads: NDArray[np.float64]
    seed: int
    value: Value
    bounds: Bounds
    patience: int = 3

    def steps(self, start: NDArray[np.float64]) -> Steps:
        """The start, the optimum of the pool, a climb from the better of both, then from kicks."""
        rng = np.random.default_rng([self.seed, 2])  # not that of `find`, nor of `climb`
        begun = Step(start, self.decode(start))
        yield begun
        guess = self.find(self.pool(), start)
        guessed = Step(guess.weights, self.decode(guess.weights), guess)
        yield guessed
        if not self.spreads.any():
            return "no feature varies"
        best = max((begun, guessed), key=self._promise)
        weights = best.weights
        while True:
            found = self.climb(weights)
            step = Step(found.weights, self.decode(found.weights), found)
            yield step
            best = max((best, step), key=self._promise)
            kick = rng.standard_normal(int((self.spreads > 0).sum()))
            weights = self.bounds.clipped(kicked(best.weights, self.spreads, kick))

    def _promise(self, step: Step) -> float:
        """What a climb from there may start with; zeros, which no kick moves, come last."""
        return self.value(step) if step.weights.any() else -np.inf
