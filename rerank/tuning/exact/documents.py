"""Rounds of exact line searches over all paths of documents, from several points.

Where scores look back one sentence at most, no pool stands between search and decoder: the
predicted value is what decoding gives. Coordinate ascent on documents ends in a local optimum, so
it begins at the better of the start weights and the optimum of a pool, and then from kicks, as in
`rerank.tuning.mert.mert`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.mert import kicked
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.pools.pool import Pool
from rerank.tuning.rounds import DecodedWeights, Rounds, TunePool, Value

Climb = Callable[[NDArray[np.float64]], Optimum]
"""From weights (F,) to the local optimum on documents."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactDocuments:
    """Coordinate ascents on documents.

    pool: gives all candidates under the first candidates' path, for a first optimum by `tune`
    decode: summed statistics (D, W) of what weights (F,) choose; spreads: (F,) of the features
    """

    pool: Callable[[], Pool]
    tune: TunePool
    climb: Climb
    decode: Callable[[NDArray[np.float64]], Sums]
    spreads: NDArray[np.float64]
    seed: int
    value: Value
    bounds: Bounds
    patience: int = 3

    def rounds(self, start: NDArray[np.float64]) -> Rounds:
        """The start, the pool's optimum, an ascent from the better one, then from kicks."""
        rng = np.random.default_rng([self.seed, 2])  # a stream that no other part draws from
        given = DecodedWeights(start, self.decode(start))
        yield given
        found = self.tune(self.pool(), start)
        on_pool = DecodedWeights(found.weights, self.decode(found.weights), found)
        yield on_pool
        if not self.spreads.any():
            return "no feature varies"
        best = max((given, on_pool), key=self._rank)
        weights = best.weights
        while True:
            found = self.climb(weights)
            climbed = DecodedWeights(found.weights, self.decode(found.weights), found)
            yield climbed
            best = max((best, climbed), key=self._rank)
            kick = rng.standard_normal(int((self.spreads > 0).sum()))
            weights = self.bounds.clipped(kicked(best.weights, self.spreads, kick))

    def _rank(self, result: DecodedWeights) -> float:
        """The value; all-zero weights, which no kick can move, come last."""
        return self.value(result) if result.weights.any() else -np.inf
