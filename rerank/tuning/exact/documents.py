"""Rounds of exact line searches over all paths of documents, from several points.

Where scores look back one sentence at most, no pool stands between search and decoder: the
predicted value is what decoding gives. Coordinate ascent on documents ends in a local optimum, so
it begins at the better of the start weights and the optimum of a pool, and then from kicks, as in
`rerank.tuning.mert.mert`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rerank.tuning.bounds import Bounds
from rerank.tuning.mert.mert import kicked
from rerank.tuning.mert.optimum import Optimum
from rerank.tuning.objectives.objective import Sums
from rerank.tuning.rounds import DecodedWeights, Rounds, Value


def document_rounds(
    start: NDArray[np.float64],
    on_pool: Callable[[NDArray[np.float64]], Optimum],
    climb: Callable[[NDArray[np.float64]], Optimum],
    decode: Callable[[NDArray[np.float64]], Sums],
    *,
    spreads: NDArray[np.float64],
    seed: int,
    value: Value,
    bounds: Bounds,
) -> Rounds:
    """The start weights (F,), the pool's optimum, an ascent from the better one, then from kicks.

    on_pool: from weights (F,) to the optimum on the pool under the first candidates' path; climb:
    to the local optimum on documents; decode: to the summed statistics (D, W) of what they choose;
    spreads: (F,) of the features
    """

    def rank(result: DecodedWeights) -> float:
        """The value; all-zero weights, which no kick can move, come last."""
        return value(result.statistics, result.weights) if result.weights.any() else -np.inf

    rng = np.random.default_rng([seed, 2])  # a stream that no other part draws from
    best = DecodedWeights(start, decode(start))
    yield best
    weights, search = start, on_pool
    while True:
        found = search(weights)
        reached = DecodedWeights(found.weights, decode(found.weights), found)
        yield reached
        if not spreads.any():
            return "no feature varies"
        best = max(best, reached, key=rank)
        weights = best.weights
        if search is climb:
            kick = rng.standard_normal(int((spreads > 0).sum()))
            weights = bounds.clipped(kicked(weights, spreads, kick))
        search = climb
