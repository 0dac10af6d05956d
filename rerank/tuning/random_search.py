"""Random search: points drawn at large and around the start, then around the best of them.

The baseline that a tuner has to beat at equal time: it looks at nothing but corpus BLEU. Drawing
directions evenly in units of the features' spread is what Bergstra and Bengio (2012,
https://jmlr.org/papers/v13/bergstra12a.html) ask for; the refinement is the (1, λ) evolution
strategy that keeps the best (Rechenberg, 1973), with a radius that falls where a round gains
nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from rerank.metrics.bleu import WIDTH, corpus_bleu
from rerank.tuning.pool import Pool
from rerank.tuning.standardised import SUMS, Standardised

AT_LARGE = AROUND = 500  # points
ROUNDS, ROUND = 30, 30  # rounds of refinement, points in each
_NEAREST = 0.01  # points around the start are at a distance of 0.01 to 1 · its length
_FALL = 0.8


def random_search(
    pool: Pool, start: NDArray[np.float64], *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The best weights (F,) of about 1,900 drawn; `start` where none have a better BLEU.

    500 directions at large, 500 points around the start, then 30 rounds of 30 points around the
    best so far. O(n F) for each point.
    """
    space = Standardised.of(pool, start)
    if space.silent:
        return space.best()
    given = space.point
    radii = np.exp(rng.uniform(np.log(_NEAREST), 0.0, size=(AROUND, 1)))
    around = given + radii * _directions(space, AROUND, rng)
    points = np.concatenate([_directions(space, AT_LARGE, rng), around])
    best, bleu = _best(space, points)
    radius = 0.5
    for _ in range(ROUNDS):
        steps = radius * np.linalg.norm(best) * _directions(space, ROUND, rng)
        found, value = _best(space, best + steps)
        if value > bleu:
            best, bleu = found, value
        else:
            radius *= _FALL
    return space.best([best])


def _directions(space: Standardised, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Directions (count, H) drawn evenly, of length 1."""
    drawn = rng.standard_normal((count, len(space.spreads)))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def _best(space: Standardised, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The first best of points (B, H), moved within the bounds, and its BLEU."""
    points = np.maximum(points, space.bounds)
    sums = np.zeros((len(points), WIDTH), dtype=np.int64)
    _choose(space.pool.offsets, space.rows, space.pool.statistics, points, sums)
    bleu = corpus_bleu(sums)
    best = int(bleu.argmax())
    return points[best], float(bleu[best])


@njit(cache=True, nogil=True, fastmath=SUMS)
def _choose(
    offsets: NDArray[np.int64],
    rows: NDArray[np.float64],
    statistics: NDArray[np.integer],
    points: NDArray[np.float64],
    sums: NDArray[np.int64],
) -> None:
    """Add to sums (B, 9) the statistics of what each point (B, H) chooses; a list at a time."""
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        if start == end:
            continue
        for b in range(len(points)):
            best, highest = start, -np.inf
            for row in range(start, end):
                score = 0.0
                for h in range(points.shape[1]):
                    score += points[b, h] * rows[row, h]
                if score > highest:
                    best, highest = row, score
            for k in range(WIDTH):
                sums[b, k] += statistics[best, k]
