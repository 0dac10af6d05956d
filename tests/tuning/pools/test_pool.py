"""Pools: lists of candidates as arrays, with the rule of first among equals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rerank.files.arrays import ArrayStore
from rerank.metrics.bleu import WIDTH
from rerank.tuning.mert.ascent import Axes
from rerank.tuning.pools.pool import Pool, narrow
from rerank.tuning.saved import content_digest


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
    np.testing.assert_array_equal(pool.sums(np.array([1, -1, 4])).sum(axis=0), np.full(WIDTH, 5))
    np.testing.assert_array_equal(pool.first, np.full(WIDTH, 0 + 2))


def test_narrow_statistics_do_not_overflow_in_a_sum() -> None:
    statistics = np.full((2, WIDTH), 30_000, dtype=np.int16)
    pool = Pool(np.array([0, 1, 2]), np.zeros((2, 1)), statistics, np.zeros(2))
    np.testing.assert_array_equal(pool.first, np.full(WIDTH, 60_000))
    np.testing.assert_array_equal(pool.sums(np.array([0, 1])).sum(axis=0), np.full(WIDTH, 60_000))


def test_a_pool_without_lists_sums_to_zero() -> None:
    pool = Pool(np.array([0]), np.zeros((0, 3)), np.zeros((0, WIDTH), dtype=int), np.zeros(0))
    choices = pool.choices(pool.scores(np.zeros(3)))
    assert choices.shape == (0,)
    np.testing.assert_array_equal(pool.sums(choices).sum(axis=0), np.zeros(WIDTH))
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


def of_documents(documents: list[int] | None) -> Pool:
    """The small pool, its lists belonging to these documents."""
    pool = small_pool()
    given = None if documents is None else np.array(documents, dtype=np.int64)
    return replace(pool, documents=given)


@pytest.mark.parametrize(
    ("documents", "sums"),
    [
        pytest.param(None, [1 + 3], id="none given"),
        pytest.param([0, 0, 0], [1 + 3], id="one"),
        pytest.param([0, 0, 1], [1, 3], id="in order"),
        pytest.param([1, 1, 0], [3, 1], id="out of order"),
        pytest.param([0, 1, 2], [1, 3], id="one of them without candidates"),
        pytest.param([0, 2, 1], [1, 3], id="the last one without candidates"),
        pytest.param([40, 7, -3], [3, 1], id="any numbers"),
    ],
)
def test_sums_are_those_of_documents_with_candidates(
    documents: list[int] | None, sums: list[int]
) -> None:
    pool = of_documents(documents)
    choices = np.array([1, -1, 3])
    expected = np.repeat(np.array(sums)[:, None], WIDTH, axis=1)
    np.testing.assert_array_equal(pool.sums(choices), expected)
    np.testing.assert_array_equal(pool.sums(choices).sum(axis=0), expected.sum(axis=0))
    assert pool.n_documents == len(sums)
    of_rows = pool.documents_of(pool.offsets)
    assert of_rows[0] == of_rows[1] != of_rows[2] or len(sums) == 1
    for row in range(5):
        alone = np.full(3, -1)
        alone[0 if row < 2 else 2] = row
        assert pool.sums(alone)[of_rows[row]].sum() == row * WIDTH


def test_documents_stay_where_a_pool_is_changed() -> None:
    pool = of_documents([9, 5, 2])
    again = replace(pool, fixed=np.ones(5))
    assert again.n_documents == 2
    np.testing.assert_array_equal(again.documents_of(again.offsets), [1, 1, 0, 0, 0])


def test_documents_that_are_not_one_for_each_list_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one for each list"):
        of_documents([0, 1])


def test_a_pool_without_lists_has_one_document_of_nothing() -> None:
    nothing = np.zeros((0, WIDTH), dtype=np.int64)
    no_lists = np.zeros(0, dtype=np.int64)
    pool = Pool(np.array([0]), np.zeros((0, 1)), nothing, np.zeros(0), no_lists)
    assert pool.n_documents == 1
    np.testing.assert_array_equal(pool.sums(no_lists), np.zeros((1, WIDTH)))


def test_statistics_that_are_no_counts_are_summed_as_they_are() -> None:
    pool = small_pool()
    wide = np.hstack([pool.statistics, np.full((5, 1), 0.25)])
    floats = Pool(pool.offsets, pool.features, wide, pool.fixed, np.array([0, 0, 1]))
    np.testing.assert_array_equal(
        floats.sums(np.array([1, -1, 4])), [[1.0] * WIDTH + [0.25], [4.0] * WIDTH + [0.25]]
    )


def test_counts_take_32_bits_where_they_fit() -> None:
    small, large = np.array([[3, 2**31 - 1]]), np.array([[3, 2**31]])
    assert narrow(small).dtype == np.int32
    assert narrow(small).tolist() == small.tolist()
    assert narrow(large) is large
    shares = np.array([[0.5]])
    assert narrow(shares) is shares


def test_searches_share_features_that_are_stored_by_columns() -> None:
    rng = np.random.default_rng(0)
    columns, rows = rng.normal(size=(2, 6)), np.ones((6, WIDTH), np.int64)
    pool = Pool(np.array([0, 3, 6]), columns.T, rows, np.zeros(6))
    assert np.shares_memory(Axes.of(pool).columns, columns)
    part = pool.take(np.array([False, True]))
    assert np.shares_memory(Axes.of(part).columns, part.features)
    assert part.features.tolist() == columns.T[3:].tolist()


def test_where_a_pool_lies_is_no_part_of_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rerank.files.arrays.SMALL", 0)
    inside, store = small_pool(), ArrayStore(0)
    outside = replace(inside, store=store)
    lists = np.array([True, False, True])
    assert content_digest(outside.take(lists)) == content_digest(inside.take(lists))
    assert content_digest(outside) == content_digest(inside)
    weights = np.array([1.0, -0.5])
    assert outside.scores(weights).tolist() == inside.scores(weights).tolist()
    assert Axes.of(outside).columns.tolist() == Axes.of(inside).columns.tolist()
    assert store.on_disk > 0


def test_some_lists_are_taken_with_their_rows() -> None:
    pool = replace(small_pool(), documents=np.array([4, 5, 6]))
    taken = pool.take(np.array([False, True, True]))
    assert taken.offsets.tolist() == [0, 0, 3]
    assert taken.features.tolist() == pool.features[2:].tolist()
    assert taken.statistics.tolist() == pool.statistics[2:].tolist()
    assert taken.documents is not None
    assert taken.documents.tolist() == [5, 6]
