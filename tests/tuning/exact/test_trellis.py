"""Viterbi search of blocks, against all paths of the block."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray
from support.chains import random_trellis

from rerank.tuning.exact.trellis import (
    Block,
    Trellis,
    best_of_block,
    path_score,
    path_size,
    place,
    whole_block,
)

SIZES = [3, 2, 4, 3, 2]
STEP = 0.5


def block_of(alive: list[list[int]], first: int, left: int, right: int) -> Block:
    """Some candidates of sentences in a row."""
    n = sum(map(len, alive))
    return Block(
        first,
        left,
        right,
        np.cumsum([0, *map(len, alive)]),
        np.concatenate(alive),
        np.zeros((2, n)),
        np.zeros((2, len(alive)), dtype=np.int64),
        np.zeros(2),
    )


def all_scores(trellis: Trellis, block: Block) -> dict[tuple[int, ...], float]:
    """Scores of all paths of a block, in the order of ties."""
    ends = zip(block.begins, block.begins[1:], strict=False)
    lists = [block.alive[a:b].tolist() for a, b in ends]
    values = trellis.base + STEP * trellis.slope
    found = {}
    for backwards in product(*reversed(lists)):
        path = backwards[::-1]
        around = (block.left, *path, *([block.right] if block.right >= 0 else []))
        places = [
            trellis.starts[block.first + i] + max(j, 0) * SIZES[block.first + i] + k
            for i, (j, k) in enumerate(pairwise(around))
        ]
        found[path] = float(values[places].sum())
    return found


BLOCKS = {
    "all": ([[0, 1, 2], [0, 1], [0, 1, 2, 3], [0, 1, 2], [0, 1]], 0, -1, -1),
    "inside": ([[0, 1], [1, 2, 3]], 1, 2, 1),
    "at the end": ([[0, 2], [0, 1]], 3, 3, -1),
    "at the beginning": ([[1, 2], [0]], 0, -1, 2),
    "one sentence": ([[0, 3]], 2, 1, 0),
}


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("seed", range(8))
def test_best_path_and_gaps_are_those_of_all_paths_of_the_block(seed: int, name: str) -> None:
    trellis, block = random_trellis(seed, SIZES), block_of(*BLOCKS[name])
    scores = all_scores(trellis, block)
    best = max(scores, key=lambda path: scores[path])  # of equal ones the first
    found = best_of_block(trellis, block, STEP)
    assert found.score == scores[best]
    assert tuple(found.path.tolist()) == best
    for i in range(len(best)):
        for x in range(block.begins[i], block.begins[i + 1]):
            through = max(s for path, s in scores.items() if path[i] == block.alive[x])
            assert found.gaps[x] == scores[best] - through


def test_the_score_of_a_path_is_the_sum_of_its_pairs_and_of_that_behind_the_block() -> None:
    trellis, block = random_trellis(3, SIZES), block_of(*BLOCKS["inside"])
    for path, score in all_scores(trellis, block).items():
        assert path_score(trellis, block, np.array(path), STEP) == score


def test_the_whole_block_has_all_candidates_of_all_sentences() -> None:
    trellis = random_trellis(1, SIZES)
    block = whole_block(trellis, -1.0, 2.0)
    found: list[int] = [k for size in SIZES for k in range(size)]
    np.testing.assert_array_equal(block.alive, found)
    np.testing.assert_array_equal(block.begins, trellis.offsets)
    assert (block.first, block.left, block.right) == (0, -1, -1)
    np.testing.assert_array_equal(block.ends, [-1.0, 2.0])


def test_the_size_of_paths_bounds_the_sums_on_the_way() -> None:
    trellis, block = random_trellis(2, SIZES), block_of(*BLOCKS["all"])
    paths: NDArray[np.int64] = block.paths
    values = [path_score(trellis, block, path, STEP) for path in paths]
    assert path_size(trellis, block, STEP) >= max(map(abs, values))


def test_places_of_pairs_count_rows_of_candidates_before() -> None:
    trellis = random_trellis(0, SIZES)
    assert place(trellis, 0, -1, 2) == 2
    assert place(trellis, 1, 2, 1) == 3 + 2 * 2 + 1
    assert place(trellis, 4, 2, 1) == trellis.starts[-1] - 1
