"""Folds: every unit is held out once, whole documents where there are enough of them."""

from dataclasses import replace

import numpy as np
import pytest
from support.pools import planted_pool

from rerank.tuning.pools.pool import Pool
from rerank.tuning.selection.folds import Folds


def pool_of(documents: list[int] | None, *, size: int = 4) -> Pool:
    lists = 12 if documents is None else len(documents)
    made = planted_pool(1, [1.0, 0.5], lists=lists, size=size)
    return made if documents is None else replace(made, documents=np.array(documents))


def folds_of(pool: Pool, seed: int = 1) -> Folds:
    found = Folds.of(pool, np.random.default_rng(seed))
    assert found is not None
    return found


@pytest.mark.parametrize("documents", [[3, 3, 5, 5, 8, 8, 9, 1, 1, 2], [0, 0, 0, 1, 1, 7], None])
def test_every_unit_is_held_out_once_and_tuned_on_in_all_other_folds(
    documents: list[int] | None,
) -> None:
    folds = folds_of(pool_of(documents))
    whole = folds.pool.decode(np.ones(2))
    held = np.zeros_like(whole)
    for units in folds.parts:
        rest, own = folds.split(units)
        held[units] += own.decode(np.ones(2))
        others = np.setdiff1d(np.arange(folds.n_units), units)
        assert np.array_equal(rest.decode(np.ones(2)), whole[others])
    assert np.array_equal(held, whole)
    assert sorted(np.concatenate(folds.parts).tolist()) == list(range(folds.n_units))


def test_four_documents_are_held_out_as_documents_and_three_as_blocks_of_lines() -> None:
    folds = folds_of(pool_of([0, 0, 1, 1, 2, 2, 3, 3]))
    assert (folds.unit, folds.n_units, len(folds.parts)) == ("documents", 4, 4)
    folds = folds_of(pool_of([0] * 20 + [1] * 10))
    assert (folds.unit, folds.n_units, len(folds.parts)) == ("blocks of lines", 10, 5)
    assert folds.pool.documents is not None
    assert folds.pool.documents.tolist() == sorted(folds.pool.documents.tolist())


def test_blocks_follow_the_order_of_the_documents() -> None:
    """Of documents 1 and 0 in turn, the lists of 0 are in the first blocks."""
    folds = folds_of(pool_of([1, 0] * 10))
    assert folds.pool.documents is not None
    assert folds.pool.documents[1::2].max() < folds.pool.documents[::2].min()


def test_seeds_draw_other_folds_of_the_same_sizes() -> None:
    pool = pool_of(list(range(11)))
    one, two = folds_of(pool, 1), folds_of(pool, 2)
    assert [len(part) for part in one.parts] == [len(part) for part in two.parts] == [3, 2, 2, 2, 2]
    assert any(not np.array_equal(a, b) for a, b in zip(one.parts, two.parts, strict=True))


@pytest.mark.parametrize("lists", [1, 3])
def test_there_are_no_folds_of_fewer_than_four_lists(lists: int) -> None:
    assert Folds.of(pool_of([0] * lists), np.random.default_rng(1)) is None
