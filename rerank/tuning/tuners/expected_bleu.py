"""Expected BLEU: gradient ascent on the BLEU of expected statistics.

Rosti, Zhang, Matsoukas and Schwartz (2011), https://aclanthology.org/W11-2119: with p(k) ∝
exp(w · x_k) in each list, the expected statistics E_j = Σ_lists Σ_k p(k) s_kj have a BLEU B(E) that
is smooth in w. Maximised is

    log B(E) − L2 / 2 · |w|²,    ∂ log B / ∂w = Σ_lists Σ_k p(k) (g_k − Σ_i p(i) g_i) x_k,

g_k = Σ_j ∂ log B / ∂E_j · s_kj, by L-BFGS. Without L2 the scale of w would run away and p harden to
the choice of the best. So the penalty falls by factors of 100, each maximum being the start of the
next (annealing: Smith and Eisner, 2006, https://aclanthology.org/P06-2101): the first maximum is
much the same from any start, the last ones have nearly the BLEU of the choice itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.metrics.bleu import WIDTH
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.standardised import StandardisedPool

PENALTIES = (1e-3, 1e-5, 1e-7)  # L2, for features in units of spread
SHARP = 1000.0  # at the kink of the brevity penalty log BLEU is lower by log 2 ÷ SHARP
_FLOOR = 1e-6  # of an n-gram, added to expected statistics: their logarithms stay finite


def expected_bleu(
    pool: Pool, start: NDArray[np.float64], *, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Weights (F,) of the best expected BLEU; `start` where none have a better BLEU on the pool.

    Of the maxima under falling penalties, the one whose choices have the best BLEU is taken.
    Nothing is random: `rng` is not used. O(n F) for each of some 150 gradients; 8 bytes a candidate
    and feature, and 8 a candidate.
    """
    space = StandardisedPool.of(pool, start)
    if space.silent:
        return space.best()
    return space.best(_maxima(space, space.point))


def _maxima(space: StandardisedPool, point: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """The maxima (H,) under falling penalties, each reached from the one before."""
    from scipy.optimize import minimize

    pool, rows = space.pool, space.rows
    probabilities = pool.store.working(pool.fixed.shape, np.float64)
    bounds = [(least, np.inf) for least in space.bounds]

    def loss(point: NDArray[np.float64], l2: float) -> tuple[float, NDArray[np.float64]]:
        """L2 / 2 · |w|² − log B(E) at a point (H,), and its gradient (H,). O(n H)."""
        sums, slopes, gradient = np.full(WIDTH, _FLOOR), np.empty(WIDTH), np.zeros_like(point)
        _expect(pool.offsets, rows, pool.statistics, point, (probabilities, sums))
        value = float(log_bleu(sums, slopes))
        _differentiate(pool.offsets, rows, pool.statistics, (probabilities, slopes), gradient)
        return l2 / 2 * float((point**2).sum()) - value, l2 * point - gradient

    for l2 in PENALTIES:
        point = minimize(loss, point, args=(l2,), jac=True, method="L-BFGS-B", bounds=bounds).x
        yield point


@njit(cache=True, nogil=True, error_model="numpy")
def _expect(
    offsets: NDArray[np.int64],
    rows: NDArray[np.float64],
    statistics: NDArray[np.integer],
    point: NDArray[np.float64],
    expected: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    """Fill in `expected` = (probabilities (n,), sums (9,)); expected statistics add to the sums."""
    probabilities, sums = expected
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        if start == end:
            continue
        p = probabilities[start:end]
        for i in range(end - start):
            score = 0.0
            for h in range(len(point)):
                score += point[h] * rows[start + i, h]
            p[i] = score
        most, total = p.max(), 0.0
        for i in range(end - start):
            p[i] = math.exp(p[i] - most)
            total += p[i]
        for i in range(end - start):
            p[i] /= total
            for k in range(WIDTH):
                sums[k] += p[i] * statistics[start + i, k]


@njit(cache=True, nogil=True, error_model="numpy")
def _differentiate(
    offsets: NDArray[np.int64],
    rows: NDArray[np.float64],
    statistics: NDArray[np.integer],
    found: tuple[NDArray[np.float64], NDArray[np.float64]],
    gradient: NDArray[np.float64],
) -> None:
    """Add to a gradient (H,); `found` = (probabilities (n,), derivatives by the sums (9,))."""
    probabilities, slopes = found
    pull = np.empty((offsets[1:] - offsets[:-1]).max())
    for s in range(len(offsets) - 1):
        start, end = offsets[s], offsets[s + 1]
        mean = 0.0
        for i in range(end - start):
            gain = 0.0
            for k in range(WIDTH):
                gain += slopes[k] * statistics[start + i, k]
            pull[i] = gain
            mean += probabilities[start + i] * gain
        for i in range(end - start):
            weight = probabilities[start + i] * (pull[i] - mean)
            for h in range(len(gradient)):
                gradient[h] += weight * rows[start + i, h]


@njit(cache=True, nogil=True, error_model="numpy")
def log_bleu(sums: NDArray[np.float64], gradient: NDArray[np.float64]) -> float:
    """Natural logarithm of BLEU (0..1) of positive sums (9,); fills in its gradient (9,).

    The logarithm of the brevity penalty, min(0, x) with x = 1 − reference length ÷ length, is
    replaced by −log(1 + exp(−SHARP · x)) ÷ SHARP, which has a derivative everywhere: optima often
    lie on the kink. Precisions are not smoothed.
    """
    value = 0.0
    for n in range(4):
        value += (math.log(sums[n]) - math.log(sums[4 + n])) / 4
        gradient[n], gradient[4 + n] = 0.25 / sums[n], -0.25 / sums[4 + n]
    excess = 1 - sums[8] / sums[4]
    power = math.exp(-SHARP * abs(excess))
    value += min(excess, 0.0) - math.log1p(power) / SHARP
    slope = (power if excess > 0 else 1.0) / (1 + power)
    gradient[4] += slope * sums[8] / sums[4] ** 2
    gradient[8] = -slope / sums[4]
    return float(value)
