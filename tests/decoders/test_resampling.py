"""Resampling: the laws that each scheme keeps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import SEEDS

from decoders.resampling import (
    RESAMPLING,
    Resampling,
    multinomial,
    residual,
    stratified,
    systematic,
)

SCHEMES = pytest.mark.parametrize("scheme", RESAMPLING.values(), ids=RESAMPLING)
WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any)


def shares_of(weights: list[int]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    shares = np.array(weights) / sum(weights)
    shares.flags.writeable = False
    return shares


@SCHEMES
@given(weights=WEIGHTS, n=st.integers(1, 40), seed=SEEDS)
def test_offspring_number_n_and_none_come_from_a_share_of_0(
    scheme: Resampling, weights: list[int], n: int, seed: int
) -> None:
    counts = scheme(shares_of(weights), n, np.random.default_rng(seed))
    assert counts.shape == (len(weights),)
    assert counts.sum() == n
    assert counts.min() >= 0
    assert not counts[np.array(weights) == 0].any()


@SCHEMES
def test_offspring_number_n_times_the_share_on_average(scheme: Resampling) -> None:
    shares, n, runs = np.array([0.05, 0.3, 0.0, 0.425, 0.225]), 7, 8_000
    rng = np.random.default_rng(3)
    counts = np.array([scheme(shares, n, rng) for _ in range(runs)])
    # four standard errors of the mean; no scheme varies more than the multinomial
    errors = 4 * np.sqrt(n * shares * (1 - shares) / runs)
    assert (abs(counts.mean(axis=0) - n * shares) <= errors).all()


@SCHEMES
def test_the_order_of_the_particles_does_not_leak(scheme: Resampling) -> None:
    # of equal particles each has as many offspring on average, wherever it stands
    rng, runs = np.random.default_rng(4), 5_000
    means = np.mean([scheme(np.full(5, 0.2), 3, rng) for _ in range(runs)], axis=0)
    assert (abs(means - 0.6) <= 4 * math.sqrt(3 * 0.2 * 0.8 / runs)).all()


@given(weights=WEIGHTS, n=st.integers(1, 40), seed=SEEDS)
def test_counts_keep_the_bounds_of_their_scheme(weights: list[int], n: int, seed: int) -> None:
    shares = shares_of(weights)
    floors = np.array([n * w // sum(weights) for w in weights])  # exact: integers
    ceilings = np.array([-(-n * w // sum(weights)) for w in weights])
    # where N W is an integer, rounding of the shares may move a place to the neighbour
    slack = (floors == ceilings).astype(int)
    counts = systematic(shares, n, np.random.default_rng(seed))
    assert (floors - slack <= counts).all()
    assert (counts <= ceilings + slack).all()
    counts = residual(shares, n, np.random.default_rng(seed))
    assert (floors - slack <= counts).all()
    counts = stratified(shares, n, np.random.default_rng(seed))
    assert (floors - 1 - slack <= counts).all()
    assert (counts <= ceilings + 1 + slack).all()


def test_stratified_and_residual_counts_vary_less_than_multinomial_ones() -> None:
    shares, rng = np.array([0.15, 0.5, 0.35]), np.random.default_rng(5)
    spread = {
        name: np.var([scheme(shares, 10, rng) for _ in range(4000)], axis=0).sum()
        for name, scheme in RESAMPLING.items()
    }
    assert spread["stratified"] < spread["multinomial"]
    assert spread["residual"] < spread["multinomial"]


class Highest:
    """Random numbers as high as they come."""

    def random(self, n: int | None = None) -> object:
        value = 1 - 2**-53
        return value if n is None else np.full(n, value)


@SCHEMES
def test_a_cumulative_sum_that_ends_below_1_names_no_particle_beyond_the_last(
    scheme: Resampling,
) -> None:
    shares = np.array([0.1] * 10 + [0.0])
    assert shares.cumsum()[-1] < 1  # 1 − 2^-53: as high as the random numbers
    counts = scheme(shares, 4, Highest())  # type: ignore[arg-type]
    assert counts.shape == (11,)
    assert counts.sum() == 4
    assert counts[10] == 0


def test_float32_shares_lose_no_offspring() -> None:
    shares = np.full(1000, 1 / 1000, dtype=np.float32)
    for scheme in RESAMPLING.values():
        assert scheme(shares, 5000, np.random.default_rng(6)).sum() == 5000  # type: ignore[arg-type]


def test_one_particle_has_all_offspring() -> None:
    for scheme in (multinomial, stratified, systematic, residual):
        assert scheme(np.array([1.0]), 9, np.random.default_rng(1)).tolist() == [9]
