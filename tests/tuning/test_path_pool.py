"""Pools of paths against all paths of small documents, written out."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rerank.tuning.path_pool import PathPool, Paths

GAPS = np.zeros((3, 9), np.int64)  # of two documents, and of those without any candidate
GAPS[:, 8] = 7, 0, 5


def numbered(choices: NDArray[np.intp]) -> Paths:
    """Paths (N, T) whose figures are made of their choices: equal paths have equal ones."""
    code = choices @ 10 ** np.arange(choices.shape[1])
    features = np.stack([code, -code], axis=1).astype(np.float64)
    statistics = np.repeat(code[:, None], 9, axis=1).astype(np.int64)
    return Paths(choices, features, statistics, code / 2)


some_paths = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=1, max_size=12)


@given(some_paths, some_paths)
def test_each_path_is_held_once_in_the_order_of_arrival(
    first: list[tuple[int, ...]], second: list[tuple[int, ...]]
) -> None:
    joined = numbered(np.array(first)).joined(numbered(np.array(second)))
    expected = numbered(np.array(list(dict.fromkeys([*first, *second]))))
    assert len(joined) == len(expected)
    np.testing.assert_array_equal(joined.choices, expected.choices)
    np.testing.assert_array_equal(joined.features, expected.features)
    np.testing.assert_array_equal(joined.statistics, expected.statistics)
    np.testing.assert_array_equal(joined.fixed, expected.fixed)


def test_a_pool_has_a_list_for_each_document_and_one_for_the_gaps_of_each() -> None:
    every = np.array(list(product(range(2), repeat=3)))
    documents = (numbered(every), numbered(every[:3]))
    paths = PathPool(documents, GAPS)
    pool = paths.pool()
    assert pool.offsets.tolist() == [0, 8, 11, 12, 13, 14]
    assert len(paths) == 11
    np.testing.assert_array_equal(pool.features[:8], documents[0].features)
    np.testing.assert_array_equal(pool.features[8:], [*documents[1].features, *[[0, 0]] * 3])
    np.testing.assert_array_equal(pool.fixed, [*documents[0].fixed, *documents[1].fixed, 0, 0, 0])
    np.testing.assert_array_equal(pool.statistics[-3:], GAPS)
    assert pool.documents_of(pool.offsets).tolist() == [0] * 8 + [1] * 3 + [0, 1, 2]


def test_the_first_paths_and_the_gaps_make_up_what_is_decoded() -> None:
    found = (numbered(np.array([[1, 0], [0, 1]])), numbered(np.array([[2, 3]])))
    paths = PathPool(tuple(one.take([0]) for one in found), GAPS)
    sums = np.array([[1] * 9, [32] * 9, [0] * 9]) + GAPS
    assert paths.sums(found).tolist() == sums.tolist()
    pool = paths.pool()
    assert pool.sums(pool.offsets[:-1]).tolist() == sums.tolist()


def test_joining_changes_neither_pool() -> None:
    one, other = numbered(np.array([[0, 0]])), numbered(np.array([[0, 1]]))
    paths = PathPool((one,), GAPS[:1])
    assert len(paths.joined([other])) == 2
    assert (len(paths), len(one), len(other)) == (1, 1, 1)
