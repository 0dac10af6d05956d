"""Pools: lists of candidates as arrays, with the rule of first among equals."""

from __future__ import annotations

import numpy as np
import pytest

from rerank.bleu import WIDTH
from rerank.tuning.pool import Pool


def small_pool() -> Pool:
    """Lists of 2, 0 and 3 candidates; the statistics of row r are all r."""
    features = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [1.0, 1.0], [1.0, 1.0]])
    statistics = np.repeat(np.arange(5)[:, None], WIDTH, axis=1)
    return Pool(np.array([0, 2, 2, 5]), features, statistics, np.zeros(5))


def test_scores_are_fixed_scores_plus_weighted_features() -> None:
    pool = small_pool()
    fixed = np.array([0.0, 0.0, 10.0, 0.0, 0.0])
    with_fixed = Pool(pool.offsets, pool.features, pool.statistics, fixed)
    weights = np.array([2.0, -1.0])
    expected = fixed + pool.features @ weights
    np.testing.assert_array_equal(with_fixed.scores(weights), expected)
    np.testing.assert_array_equal(fixed, [0.0, 0.0, 10.0, 0.0, 0.0])


def test_of_equal_scores_the_first_candidate_is_chosen_and_an_empty_list_chooses_none() -> None:
    pool = small_pool()
    choices = pool.choices(pool.scores(np.array([1.0, 1.0])))
    np.testing.assert_array_equal(choices, [0, -1, 3])


def test_totals_sum_the_chosen_rows_and_first_sums_the_first_of_each_list() -> None:
    pool = small_pool()
    np.testing.assert_array_equal(pool.total(np.array([1, -1, 4])), np.full(WIDTH, 5))
    np.testing.assert_array_equal(pool.first, np.full(WIDTH, 0 + 2))


def test_narrow_statistics_do_not_overflow_in_a_sum() -> None:
    statistics = np.full((2, WIDTH), 30_000, dtype=np.int16)
    pool = Pool(np.array([0, 1, 2]), np.zeros((2, 1)), statistics, np.zeros(2))
    np.testing.assert_array_equal(pool.first, np.full(WIDTH, 60_000))
    np.testing.assert_array_equal(pool.total(np.array([0, 1])), np.full(WIDTH, 60_000))


def test_a_pool_without_lists_sums_to_zero() -> None:
    pool = Pool(np.array([0]), np.zeros((0, 3)), np.zeros((0, WIDTH), dtype=int), np.zeros(0))
    choices = pool.choices(pool.scores(np.zeros(3)))
    assert choices.shape == (0,)
    np.testing.assert_array_equal(pool.total(choices), np.zeros(WIDTH))
    np.testing.assert_array_equal(pool.first, np.zeros(WIDTH))


@pytest.mark.parametrize(
    ("offsets", "features", "statistics", "fixed", "message"),
    [
        pytest.param([0, 1], (2, 1), (2, WIDTH), 2, "offsets", id="offsets end early"),
        pytest.param([0, 2, 1, 2], (2, 1), (2, WIDTH), 2, "offsets", id="offsets descend"),
        pytest.param([], (2, 1), (2, WIDTH), 2, "offsets", id="no offsets"),
        pytest.param([0, 2], (2, 1), (2, 8), 2, "statistics", id="eight statistics"),
        pytest.param([0, 2], (2, 1), (2, WIDTH), 3, "fixed", id="one fixed score too many"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    offsets: list[int],
    features: tuple[int, int],
    statistics: tuple[int, int],
    fixed: int,
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message):
        Pool(
            np.array(offsets, dtype=np.int64),
            np.zeros(features),
            np.zeros(statistics, dtype=np.int64),
            np.zeros(fixed),
        )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", ["features", "fixed"])
def test_scores_that_are_not_finite_are_refused_by_row(value: float, place: str) -> None:
    features, fixed = np.zeros((3, 2)), np.zeros(3)
    if place == "features":
        features[1, 1] = value
    else:
        fixed[1] = value
    with pytest.raises(ValueError, match="candidate 1 "):
        Pool(np.array([0, 3]), features, np.zeros((3, WIDTH), dtype=np.int64), fixed)
