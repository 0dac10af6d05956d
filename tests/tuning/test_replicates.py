"""Replicates: means and spreads, documents drawn and held out."""

from __future__ import annotations

import numpy as np
import pytest

from rerank.tuning.replicates import Replicates, held_out, resampled


def test_mean_and_spread_are_those_of_the_statistics_module() -> None:
    from statistics import mean, stdev

    rows = [[0.1, -0.4, 0.5], [0.2, -0.5, 0.3], [0.6, -0.1, 0.3]]
    found = Replicates(np.array(rows), (30.0, 31.0, 32.0))
    columns = list(zip(*rows, strict=True))
    np.testing.assert_allclose(found.mean, [mean(c) for c in columns], rtol=1e-14)
    np.testing.assert_allclose(found.spread, [stdev(c) for c in columns], rtol=1e-14)


def test_one_replicate_has_no_spread() -> None:
    found = Replicates(np.array([[1.0, 2.0]]), (30.0,))
    np.testing.assert_array_equal(found.mean, [1.0, 2.0])
    np.testing.assert_array_equal(found.spread, [0.0, 0.0])


def test_documents_are_drawn_as_a_bootstrap_draws_them() -> None:
    rng = np.random.default_rng(1)
    counts = np.zeros(10)
    for _ in range(2000):
        drawn = resampled(10, rng)
        assert len(drawn) == 10
        assert drawn == sorted(drawn)
        counts += np.bincount(drawn, minlength=10)
    # each is drawn Binomial(20 000, 1/10) times: standard deviation 42
    assert (abs(counts - 2000) < 5 * 42).all()


@pytest.mark.parametrize(("n", "share", "number"), [(10, 0.25, 2), (10, 0.01, 1), (2, 0.5, 1)])
def test_a_share_of_the_documents_is_held_out_at_least_one(
    n: int, share: float, number: int
) -> None:
    kept = held_out(n, share, np.random.default_rng(1))
    assert len(kept) == len(set(kept)) == number
    assert set(kept) <= set(range(n))


@pytest.mark.parametrize(("n", "share"), [(1, 0.5), (4, 0.9)])
def test_something_must_be_left_to_tune_on(n: int, share: float) -> None:
    with pytest.raises(ValueError, match="leave none to tune on"):
        held_out(n, share, np.random.default_rng(1))
