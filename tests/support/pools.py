"""Pools of candidates whose features say how well they match the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rerank.tuning.pools.pool import Pool


def planted_pool(
    seed: int,
    weights: Sequence[float],
    *,
    lists: int = 12,
    size: int = 15,
    noise: float = 1.0,
    fixed: float = 0.0,
) -> Pool:
    """Lists whose candidates match the reference the better, the larger features · weights is.

    noise: standard deviation of what is added to features · weights; fixed: that of fixed scores.
    """
    rng = np.random.default_rng(seed)
    n = lists * size
    features = rng.standard_normal((n, len(weights)))
    quality = 1 / (1 + np.exp(-features @ weights - noise * rng.standard_normal(n)))
    length = rng.integers(8, 14, size=n)
    totals = length[:, None] - np.arange(4)
    matches = (totals * quality[:, None] ** np.arange(1, 5)).astype(np.int64)
    reference = np.repeat(rng.integers(8, 14, size=lists), size)[:, None]
    statistics = np.hstack([matches, totals, reference])
    offsets = np.arange(0, n + 1, size)
    return Pool(offsets, features, statistics, fixed * rng.standard_normal(n))


def random_pool(
    seed: int, *, lists: int = 12, size: int = 15, features: int = 3, fixed: float = 0.0
) -> Pool:
    """A planted pool in which every feature has weight 1."""
    return planted_pool(seed, [1.0] * features, lists=lists, size=size, fixed=fixed)


def empty_pool(features: int) -> Pool:
    """A pool without lists."""
    statistics = np.zeros((0, 9), dtype=np.int64)
    return Pool(np.array([0]), np.zeros((0, features)), statistics, np.zeros(0))
