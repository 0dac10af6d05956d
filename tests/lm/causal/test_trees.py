"""Prefix trees against the prefixes of their candidates, taken as sets."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from lm.causal.trees import Tree, path_of, trees_of
from lm.trie import Candidates

LISTS = [[3, 4, 5], [3, 4, 6, 7], [], [3], [8, 4], [3, 4, 5]]


def prefixes(tree: Tree) -> list[tuple[int, ...]]:
    """The tokens on the way to each read node, by its ancestors alone."""
    return [
        tuple(tree.tokens[sorted(np.flatnonzero(row), key=lambda n: tree.depths[n])][1:].tolist())
        for row in tree.ancestors
    ]


def test_every_proper_prefix_is_read_once_and_sees_itself_alone() -> None:
    (tree,) = trees_of(Candidates.of([LISTS]))
    expected = {tuple(own[:n]) for own in LISTS for n in range(len(own))} | {()}
    found = prefixes(tree)
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert tree.depths.tolist() == [len(own) for own in found]
    assert tree.n_tokens == sum(map(len, LISTS))


@pytest.mark.parametrize("most", [1, 2, 3, 100])
def test_sums_along_paths_are_those_of_the_candidates(most: int) -> None:
    def log_p(prefix: Sequence[int], word: int) -> float:
        return -float(hash((tuple(prefix), word)) % 64) / 8

    sums = np.full(len(LISTS), np.nan)
    for tree in trees_of(Candidates.of([LISTS]), most):
        assert len(tree) <= most or len(tree.rows) == 1
        read = prefixes(tree)
        pairs = zip(tree.parents.tolist(), tree.words.tolist(), strict=True)
        sums[tree.rows] = tree.sums(torch.tensor([log_p(read[p], w) for p, w in pairs]))
    expected = [sum(log_p(own[:n], own[n]) for n in range(len(own))) for own in LISTS]
    assert sums.tolist() == expected


def test_a_sequence_is_a_tree_of_one_branch() -> None:
    tokens, depths, ancestors = path_of([5, 6, 5])
    assert (tokens.tolist(), depths.tolist()) == ([5, 6, 5], [0, 1, 2])
    assert ancestors.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
