"""Resampling of particles: how many offspring each has, N · W on average.

Four schemes: R. Douc, O. Cappé, E. Moulines, "Comparison of resampling schemes for particle
filtering", 2005, https://arxiv.org/abs/cs/0507025. Each takes `shares: (M,)`, W >= 0 that sum to 1,
and N, the number of offspring, and returns counts (M,) that sum to N. O(M + N). A particle of
share 0 has no offspring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from decoders.problem import Array, Indices

Resampling = Callable[[Array, int, np.random.Generator], Indices]


def multinomial(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """N independent draws."""
    return _counts(shares, np.sort(rng.random(n)))


def stratified(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """A draw from each of N equal parts of [0, 1): less variance than `multinomial`, always."""
    return _counts(shares, (np.arange(n) + rng.random(n)) / n)


def systematic(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """One random offset, used in each of N equal parts of [0, 1): counts are ⌊N W⌋ or ⌈N W⌉."""
    return _counts(shares, (np.arange(n) + rng.random()) / n)


def residual(shares: Array, n: int, rng: np.random.Generator) -> Indices:
    """⌊N W⌋ deterministically, the others drawn independently from the remainders."""
    certain = np.floor(n * shares).astype(np.intp)
    left = n - int(certain.sum())
    if not left:
        return certain
    rest = np.maximum(n * shares - certain, 0.0)
    return certain + multinomial(rest / rest.sum(), left, rng)


RESAMPLING: Mapping[str, Resampling] = {
    "systematic": systematic,
    "stratified": stratified,
    "residual": residual,
    "multinomial": multinomial,
}


def _counts(shares: Array, points: Array) -> Indices:
    """The number of ascending points of [0, 1) that fall into the interval of each share."""
    edges = np.cumsum(shares)
    # a cumulative sum may end below 1, and a point lie beyond it: it belongs to the last share > 0
    edges[int(np.flatnonzero(shares)[-1]) :] = np.inf
    chosen = np.searchsorted(edges, points, side="right")
    return np.bincount(chosen, minlength=shares.size)
