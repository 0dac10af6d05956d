"""Pairwise ranking optimisation: a linear classifier of pairs of candidates, better from worse.

Hopkins and May (2011), https://aclanthology.org/D11-1125. From each list 5,000 pairs are drawn;
those are kept whose BLEU+1 differs by more than 0.05, at most the 50 that differ most. Their
differences of features Δx (better − worse) are classified by logistic regression without intercept:

    minimise  mean of log(1 + exp(−w · Δx)) + L2 / 2 · |w|².

The start, at the length of w, is mixed in with the share 0, 0.1, … or 0.9 that gives the best BLEU,
as rounds of PRO mix in the weights before with a fixed share.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.standardised import StandardisedPool

L2 = 1e-4  # weights for features in units of their spread
_DRAWN, _KEPT = 5000, 50
_DIFFERENCE = 0.05
_SHARES = tuple(tenths / 10 for tenths in range(10))


def pro(pool: Pool, start: NDArray[np.float64], *, rng: np.random.Generator) -> NDArray[np.float64]:
    """Weights (F,) by PRO; `start` (F,) where they have no better BLEU on the pool.

    The regression is convex, and does not depend on the start. `rng` draws the pairs. O(n F), and
    for each list 5,000 draws, and 50 F numbers for each of some 25 gradients.
    """
    from scipy.optimize import minimize

    space = StandardisedPool.of(pool, start)
    if space.silent:
        return space.best()
    better, worse = _pairs(pool.offsets, bleu_plus_one(pool.statistics), rng)
    if len(better) == 0:
        return space.best()
    differences = space.rows[better] - space.rows[worse]

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        gradient = L2 * point
        return _logistic(differences, point, gradient) + L2 / 2 * (point**2).sum(), gradient

    first = np.maximum(np.zeros(len(space.spreads)), space.bounds)
    bounds = [(least, np.inf) for least in space.bounds]
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds)
    given = np.linalg.norm(found.x) * space.point
    return space.best((1 - share) * found.x + share * given for share in _SHARES)


def _pairs(
    offsets: NDArray[np.int64], quality: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the better and of the worse candidates of all pairs kept, by quality (n,)."""
    pairs = [np.empty((2, 0), dtype=np.int64)]
    for start, end in pairwise(offsets.tolist()):
        if end - start > 1:
            drawn = rng.integers(start, end, size=(2, _DRAWN))
            difference = quality[drawn[0]] - quality[drawn[1]]
            kept = np.flatnonzero(np.abs(difference) > _DIFFERENCE)
            if len(kept) > _KEPT:
                kept = kept[np.argpartition(-np.abs(difference[kept]), _KEPT)[:_KEPT]]
            pairs.append(np.where(difference[kept] > 0, drawn[:, kept], drawn[::-1, kept]))
    better, worse = np.concatenate(pairs, axis=1)
    return better, worse


@njit(cache=True, nogil=True, error_model="numpy")
def _logistic(
    differences: NDArray[np.float64],
    point: NDArray[np.float64],
    gradient: NDArray[np.float64],
) -> float:
    """Mean of log(1 + exp(−difference · point)) over rows (m, H); adds its gradient to (H,)."""
    total = 0.0
    for i in range(len(differences)):
        margin = 0.0
        for h in range(len(point)):
            margin += point[h] * differences[i, h]
        power = math.exp(-abs(margin))
        total += math.log1p(power) - min(margin, 0.0)
        slope = (power if margin > 0 else 1.0) / (1 + power) / len(differences)
        for h in range(len(point)):
            gradient[h] -= slope * differences[i, h]
    return total / len(differences)


@njit(cache=True, nogil=True, error_model="numpy")
def bleu_plus_one(rows: NDArray[np.integer]) -> NDArray[np.float64]:
    """BLEU+1 (0..1) of each sentence (n, 9): one more match and n-gram of the orders 2, 3 and 4.

    Lin and Och (2004), https://aclanthology.org/C04-1072. 0 without a matching word.
    """
    values = np.zeros(len(rows))
    for i in range(len(rows)):
        if rows[i, 0] > 0:
            precisions = rows[i, 0] / rows[i, 4]
            for n in range(1, 4):
                precisions *= (rows[i, n] + 1.0) / (rows[i, 4 + n] + 1.0)
            brevity = math.exp(min(0.0, 1 - rows[i, 8] / rows[i, 4]))
            values[i] = math.sqrt(math.sqrt(precisions)) * brevity
    return values
