"""Places of pairs against all of them written out."""

from itertools import product

import numpy as np
import pytest
from support.lists import kbest_of_sizes

from rerank.scorers.pair_grid import DROPPED, MISSING, Grid

SIZES = (0, 3, 0, 0, 2, 1, 0)


def places(grid: Grid, *pairs: tuple[int, int, int]) -> list[int]:
    """Places of (sentence, previous, index); the first sentence with candidates has no previous."""
    t, previous, index = np.array(pairs).T
    found: list[int] = grid.places(t, np.where(t == 1, -1, previous), index).tolist()
    return found


@pytest.mark.parametrize("top", [None, 1, 2, 3, 9])
def test_every_pair_of_neighbours_has_a_place_of_its_own_and_no_other_has(top: int | None) -> None:
    grid = Grid.of(kbest_of_sizes(SIZES, top=top), top)
    sizes = [min(size, top or 9) for size in SIZES]
    pairs = [(1, 0, k) for k in range(sizes[1])]
    pairs += [(4, j, k) for j, k in product(range(sizes[1]), range(sizes[4]))]
    pairs += [(5, j, k) for j, k in product(range(sizes[4]), range(sizes[5]))]
    assert places(grid, *pairs) == list(range(len(pairs)))
    assert [grid.pair(place) for place in range(len(pairs))] == pairs
    assert grid.starts[-1] == len(pairs)


def test_matrices_are_the_values_at_their_places() -> None:
    grid = Grid.of(kbest_of_sizes(SIZES), None)
    matrices = grid.matrices(np.arange(float(grid.starts[-1])))
    assert [matrix.shape for matrix in matrices] == [(1, 3), (3, 2), (2, 1)]
    assert matrices[1][2, 0] == places(grid, (4, 2, 0))[0]


def test_a_list_that_was_cut_may_have_had_more_candidates() -> None:
    assert Grid.of(kbest_of_sizes(SIZES), None).whole.all()
    assert Grid.of(kbest_of_sizes(SIZES, top=2), 2).whole.tolist() == [size < 2 for size in SIZES]


def test_candidates_are_told_by_their_places_in_the_list_of_the_file() -> None:
    """Of three candidates, two that are not the first ones are kept."""
    lists, kept = kbest_of_sizes(SIZES, top=2), np.array([1, 2, 0, 1, 0])
    object.__setattr__(lists, "ranks", kept)
    grid = Grid.of(lists, 2)
    assert [grid.pair(place) for place in range(4)] == [(1, 0, 1), (1, 0, 2), (4, 1, 0), (4, 1, 1)]
    assert grid.kept[: grid.offsets[2]].tolist() == [-1, 0, 1]
    assert places(grid, (1, 0, 0), (4, 0, 1), (4, 2, 1)) == [DROPPED, DROPPED, 5]


@pytest.mark.parametrize(("top", "beyond"), [(None, MISSING), (2, DROPPED)])
def test_a_candidate_beyond_the_list_is_missing_only_where_the_list_is_whole(
    top: int | None, beyond: int
) -> None:
    grid = Grid.of(kbest_of_sizes(SIZES, top=top), top)
    assert places(grid, (1, 0, 3), (4, 3, 0), (5, 0, 1)) == [beyond, beyond, MISSING]
