"""Resampling, draws and sums in logarithms: the laws that they keep."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.problems import SEEDS, chi2, rng

from decoders.marginals import draw, rng_for
from decoders.problem import Array
from decoders.smc import RESAMPLING, Resampling, residual, stratified, systematic

every_scheme = pytest.mark.parametrize("scheme", RESAMPLING.values(), ids=RESAMPLING)
WEIGHTS = st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any)


def shares_of(weights: list[int]) -> Array:
    shares = np.array(weights) / sum(weights)
    shares.flags.writeable = False
    return shares


@every_scheme
@given(weights=WEIGHTS, n=st.integers(1, 40), seed=SEEDS)
def test_offspring_number_n_and_none_come_from_a_share_of_0(
    scheme: Resampling, weights: list[int], n: int, seed: int
) -> None:
    counts = scheme(shares_of(weights), n, rng(seed))
    assert counts.shape == (len(weights),)
    assert counts.sum() == n
    assert counts.min() >= 0
    assert not counts[np.array(weights) == 0].any()


@every_scheme
def test_offspring_number_n_times_the_share_on_average(scheme: Resampling) -> None:
    draws, n, runs, expected = rng(3), 7, 4_000, np.array([0.05, 0.3, 0.0, 0.425, 0.225])
    means = np.mean([scheme(expected, n, draws) for _ in range(runs)], axis=0)
    # four standard errors of the mean; no scheme varies more than the multinomial
    errors = 4 * np.sqrt(n * expected * (1 - expected) / runs)
    assert (abs(means - n * expected) <= errors).all()


@given(weights=WEIGHTS, n=st.integers(1, 40), seed=SEEDS)
def test_counts_keep_the_bounds_of_their_scheme(weights: list[int], n: int, seed: int) -> None:
    shares = shares_of(weights)
    floors = np.array([n * w // sum(weights) for w in weights])  # exact: integers
    ceilings = np.array([-(-n * w // sum(weights)) for w in weights])
    # where N W is an integer, rounding of the shares may move a place to the neighbour
    slack = (floors == ceilings).astype(int)
    counts = systematic(shares, n, rng(seed))
    assert (floors - slack <= counts).all()
    assert (counts <= ceilings + slack).all()
    assert (floors - slack <= residual(shares, n, rng(seed))).all()
    counts = stratified(shares, n, rng(seed))
    assert (floors - 1 - slack <= counts).all()
    assert (counts <= ceilings + 1 + slack).all()


class Highest:
    """Random numbers as high as they come."""

    def random(self, n: int | None = None) -> object:
        value = 1 - 2**-53
        return value if n is None else np.full(n, value)


@every_scheme
def test_rounding_of_the_shares_neither_loses_nor_adds_offspring(scheme: Resampling) -> None:
    shares = np.array([0.1] * 10 + [0.0])
    assert shares.cumsum()[-1] < 1  # 1 − 2^-53: as high as the random numbers
    counts = scheme(shares, 4, Highest())  # type: ignore[arg-type]
    assert (counts.shape, counts.sum(), counts[10]) == ((11,), 4, 0)
    narrow = np.full(1000, 1 / 1000, dtype=np.float32)
    assert scheme(narrow, 5000, rng(6)).sum() == 5000  # type: ignore[arg-type]
    assert scheme(np.array([1.0]), 9, rng(1)).tolist() == [9]


# Draws
def test_draws_follow_their_shares_and_avoid_the_impossible() -> None:
    logs = np.insert(np.log(np.array([0.1, 0.2, 0.7])) + 5, 1, -np.inf)
    result = draw(np.tile(logs, (20_000, 1)), rng(1))
    # χ² with 2 degrees of freedom exceeds 13.8 once in a thousand seeds
    assert chi2(result[:, None].tolist(), {(0,): 0.1, (2,): 0.2, (3,): 0.7}) < 13.8
    assert draw(np.full((2, 3), -np.inf), rng(1)).tolist() == [0, 0]


def test_random_numbers_belong_to_the_document_and_the_seed_in_every_process() -> None:
    draws = {(s, d): rng_for(s, d).random() for s in (0, 1) for d in ("", "a", "b", "ä")}
    assert len({*draws.values()}) == 8
    assert draws[1, "a"] == 0.9100457731080284  # no hash of this process
