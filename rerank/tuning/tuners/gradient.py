"""Tuners by gradient: the maximum of expected BLEU, and pairwise ranking optimisation (PRO).

A line search does not depend on the units of features; a step or a penalty of size does. Here every
feature has spread 1 (root mean square distance from the mean of its list), so that multiplying a
feature by a number divides its weight by it and changes nothing else. BLEU does not change if all
scores double, so weights have no scale unless there are fixed scores: these are one more feature,
the last, whose weight is positive, and results are scaled so that it is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rerank.files.compilation import njit
from rerank.metrics.bleu import WIDTH
from rerank.tuning.pool import Pool
from rerank.tuning.tuners.ascent import Optimum
from rerank.tuning.tuners.envelope import SearchDirection

LEAST = 1e-3  # weight of fixed scores, in spreads; points have a length of about 1
PENALTIES = (1e-3, 1e-5, 1e-7)  # L2 of expected BLEU, for features in units of spread
SHARP = 1000.0  # at the kink of the brevity penalty log BLEU is lower by log 2 ÷ SHARP
_FLOOR = 1e-6  # of an n-gram, added to expected statistics: their logarithms stay finite
_L2 = 1e-4  # of PRO
_DRAWN, _KEPT = 5000, 50  # pairs of a list
_DIFFERENCE = 0.05  # of BLEU+1 in a pair
_SHARES = tuple(tenths / 10 for tenths in range(10))
Floats: TypeAlias = NDArray[np.float64]
Loss: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Value to be minimised at a point (H,), and its gradient (H,)."""


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedPool:
    """Features of a pool that vary within some list, in units of their spread; and a start.

    start: (F,) weights, finite
    features: (G,) int64, the varying ones among the F features
    rows: (n, H) float64, distance from the first candidate of the list ÷ spread; H is G, or G + 1
    with fixed scores as the last column
    spreads: (H,)

    A point (H,) holds weights · spreads, up to a positive factor.
    """

    pool: Pool
    start: Floats
    features: NDArray[np.int64]
    rows: Floats
    spreads: Floats

    @classmethod
    def of(cls, pool: Pool, start: Floats) -> StandardisedPool:
        """Features of a pool, standardised. O(n F) time, 8 bytes a candidate and feature."""
        columns = (*pool.features.T, pool.fixed)
        distances = pool.store.working(pool.fixed.shape, np.float64)
        spreads = np.zeros(len(columns))
        for number, column in enumerate(columns):
            _subtract_first(pool.offsets, column, distances)
            if distances.any():
                spreads[number] = SearchDirection.of(pool, distances).spread
        varying = np.flatnonzero(spreads)
        rows = pool.store.large((len(distances), len(varying)), np.float64)
        for place, f in enumerate(varying):
            _subtract_first(pool.offsets, columns[f], distances)
            np.divide(distances, spreads[f], out=rows[:, place])
        features = varying[varying < pool.features.shape[1]]
        return cls(pool, start.astype(np.float64), features, rows, spreads[varying])

    @property
    def anchored(self) -> bool:
        """Whether the last coordinate is that of fixed scores."""
        return len(self.spreads) > len(self.features)

    @property
    def silent(self) -> bool:
        """Whether BLEU does not depend on the weights: no 4-gram match, or no varying feature."""
        return len(self.features) == 0 or not self.pool.statistics[:, 3].any()

    @property
    def least(self) -> Floats:
        """Lower bounds (H,) of a point's coordinates: −∞, but `LEAST` for fixed scores."""
        least = np.full(len(self.spreads), -np.inf)
        if self.anchored:
            least[-1] = LEAST
        return least

    @property
    def point(self) -> Floats:
        """The point (H,) of the start, of length 1 but for bounds; zeros where no score differs."""
        point = self.spreads.copy()
        point[: len(self.features)] *= self.start[self.features]
        largest = np.abs(point).max(initial=0.0)  # first, for squares may be beyond float64
        if largest == 0:
            return point
        point /= largest
        return np.maximum(point / np.linalg.norm(point), self.least)

    def weights(self, point: Floats) -> Floats:
        """Weights (F,) of a point (H,); features that vary in no list keep their start weight."""
        weights = self.start.copy()
        varying = point[: len(self.features)]
        with np.errstate(over="ignore", invalid="ignore"):
            if self.anchored:
                varying = varying / point[-1] * self.spreads[-1]
            weights[self.features] = varying / self.spreads[: len(self.features)]
        return weights

    def minimum(self, loss: Loss, point: Floats) -> Floats:
        """The minimum (H,) that L-BFGS reaches from a point (H,) within bounds."""
        from scipy.optimize import minimize

        bounds = [(least, np.inf) for least in self.least]
        result = minimize(loss, point, jac=True, method="L-BFGS-B", bounds=bounds)
        return np.asarray(result.x)

    def best(self, points: Iterable[Floats] = ()) -> Floats:
        """The weights (F,) with the best corpus BLEU on the pool, of the start and of all points.

        Of equal ones the first. An all-zero start without fixed scores is replaced by any other
        weights; weights beyond float64 are ignored. O(n F) for each point.
        """
        best, bleu = self.start, -1.0
        if self.anchored or self.start.any():
            bleu = Optimum.at(self.pool, self.start).bleu
        for weights in map(self.weights, points):
            if np.isfinite(weights).all() and (self.anchored or weights[self.features].any()):
                reached = Optimum.at(self.pool, weights).bleu
                if reached > bleu:
                    best, bleu = weights, reached
        return best.copy()


@njit(cache=True, nogil=True)
def _subtract_first(offsets: NDArray[np.int64], column: Floats, distances: Floats) -> None:
    """Fill in the distances (n,) of a column from the first candidate of each list."""
    for s in range(len(offsets) - 1):
        for row in range(offsets[s], offsets[s + 1]):
            distances[row] = column[row] - column[offsets[s]]


# Expected BLEU


def expected_bleu(pool: Pool, start: Floats, *, rng: np.random.Generator) -> Floats:
    """Weights (F,) of the best expected BLEU; `start` where none have a better BLEU on the pool.

    Rosti, Zhang, Matsoukas and Schwartz (2011), https://aclanthology.org/W11-2119: with p(k) ∝
    exp(w · x_k) in each list, the expected statistics E_j = Σ_lists Σ_k p(k) s_kj have a BLEU B(E)
    that is smooth in w. Maximised is

        log B(E) − L2 / 2 · |w|²,    ∂ log B / ∂w = Σ_lists Σ_k p(k) (g_k − Σ_i p(i) g_i) x_k,

    g_k = Σ_j ∂ log B / ∂E_j · s_kj, by L-BFGS. Without L2 the scale of w would run away and p
    harden to the choice of the best. So the penalty falls by factors of 100, each maximum being the
    start of the next (annealing: Smith and Eisner, 2006, https://aclanthology.org/P06-2101): the
    first maximum is much the same from any start, the last ones have nearly the BLEU of the choice
    itself. Of these maxima the one whose choices have the best BLEU is taken.

    Nothing is random: `rng` is not used. O(n F) for each of some 150 gradients; 8 bytes a candidate
    and feature, and 8 a candidate.
    """
    space = StandardisedPool.of(pool, start)
    return space.best(() if space.silent else _maxima(space))


def _maxima(space: StandardisedPool) -> Iterator[Floats]:
    """The maxima (H,) under falling penalties, each reached from the one before."""
    pool, rows, point = space.pool, space.rows, space.point
    probabilities = pool.store.working(pool.fixed.shape, np.float64)

    def loss(l2: float, point: Floats) -> tuple[float, Floats]:
        """L2 / 2 · |w|² − log B(E) at a point (H,), and its gradient (H,). O(n H)."""
        sums, slopes, gradient = np.full(WIDTH, _FLOOR), np.empty(WIDTH), np.zeros_like(point)
        _expect(pool.offsets, rows, pool.statistics, point, (probabilities, sums))
        value = float(log_bleu(sums, slopes))
        _differentiate(pool.offsets, rows, pool.statistics, (probabilities, slopes), gradient)
        return l2 / 2 * float((point**2).sum()) - value, l2 * point - gradient

    for l2 in PENALTIES:
        point = space.minimum(partial(loss, l2), point)
        yield point


@njit(cache=True, nogil=True, error_model="numpy")
def _expect(
    offsets: NDArray[np.int64],
    rows: Floats,
    statistics: NDArray[np.integer],
    point: Floats,
    expected: tuple[Floats, Floats],
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
    rows: Floats,
    statistics: NDArray[np.integer],
    expected: tuple[Floats, Floats],
    gradient: Floats,
) -> None:
    """Add to a gradient (H,); `expected` = (probabilities (n,), derivatives by the sums (9,))."""
    probabilities, slopes = expected
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
def log_bleu(sums: Floats, gradient: Floats) -> float:
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


# Pairwise ranking optimisation


def pro(pool: Pool, start: Floats, *, rng: np.random.Generator) -> Floats:
    """Weights (F,) by PRO; `start` (F,) where they have no better BLEU on the pool.

    Hopkins and May (2011), https://aclanthology.org/D11-1125. From each list 5,000 pairs are drawn
    by `rng`; those are kept whose BLEU+1 differs by more than 0.05, at most the 50 that differ
    most. Their differences of features Δx (better − worse) are classified by logistic regression
    without intercept, which is convex and does not depend on the start:

        minimise  mean of log(1 + exp(−w · Δx)) + L2 / 2 · |w|².

    The start, at the length of w, is mixed in with the share 0, 0.1, … or 0.9 that gives the best
    BLEU, as rounds of PRO mix in the weights before with a fixed share. O(n F), and for each list
    5,000 draws, and 50 F numbers for each of some 25 gradients.
    """
    space = StandardisedPool.of(pool, start)
    if space.silent:
        return space.best()
    better, worse = _pairs(pool.offsets, bleu_plus_one(pool.statistics), rng)
    if len(better) == 0:
        return space.best()
    differences = space.rows[better] - space.rows[worse]

    def loss(point: Floats) -> tuple[float, Floats]:
        gradient = _L2 * point
        return _logistic(differences, point, gradient) + _L2 / 2 * (point**2).sum(), gradient

    ranked = space.minimum(loss, np.maximum(np.zeros(len(space.spreads)), space.least))
    before = np.linalg.norm(ranked) * space.point
    return space.best((1 - share) * ranked + share * before for share in _SHARES)


def _pairs(
    offsets: NDArray[np.int64], quality: Floats, rng: np.random.Generator
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
def _logistic(differences: Floats, point: Floats, gradient: Floats) -> float:
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
def bleu_plus_one(rows: NDArray[np.integer]) -> Floats:
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
