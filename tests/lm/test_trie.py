"""Tries against prefixes written out, and sums along paths against plain sums."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lm.trie import Candidates, Forest, build
from lm.vocabulary import START

word = st.sampled_from([0, 3, 4, 5, 9_999])  # control ids never stand in a text
candidate = st.lists(word, max_size=4)
k_best_lists = st.lists(st.lists(candidate, max_size=5), min_size=1, max_size=4)
Lists = list[list[list[int]]]
Prefix = tuple[int, tuple[int, ...]]  # a root and words


def own_roots(lists: Lists) -> Forest:
    """A trie for each list."""
    roots = np.repeat(np.arange(len(lists)), [len(k_best) for k_best in lists])
    return build(Candidates.of(lists), np.arange(len(roots)), roots, len(lists))


def prefix(forest: Forest, node: int) -> Prefix:
    """What a node stands for, read from it to its root."""
    words: list[int] = []
    while forest.parent[node] != node:
        words.append(int(forest.token[node]))
        node = int(forest.parent[node])
    return node, tuple(reversed(words))


def written(lists: Lists) -> list[tuple[int, list[int]]]:
    return [(t, candidate) for t, k_best in enumerate(lists) for candidate in k_best]


@given(k_best_lists)
def test_columns_hold_the_lists_and_their_parts(lists: Lists) -> None:
    columns = Candidates.of(lists)
    assert len(columns) == len(lists)
    assert columns.counts == tuple(map(len, lists))
    for begin in range(len(lists)):
        for end in range(begin + 1, len(lists) + 1):
            part, whole = columns.part(begin, end), Candidates.of(lists[begin:end])
            joined = Candidates.joined([part, whole])
            twice = Candidates.of(lists[begin:end] * 2)
            for name in ("tokens", "offsets", "lists"):
                np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
                np.testing.assert_array_equal(getattr(joined, name), getattr(twice, name))


@given(k_best_lists)
def test_the_nodes_are_the_distinct_prefixes_below_each_root(lists: Lists) -> None:
    forest = own_roots(lists)
    found = [prefix(forest, node) for node in range(len(forest))]
    expected = {(t, tuple(c[:n])) for t, c in written(lists) for n in range(len(c) + 1)}
    expected |= {(t, ()) for t in range(len(lists))}
    assert sorted(found) == sorted(expected)
    assert [found[end] for end in forest.end] == [(t, tuple(c)) for t, c in written(lists)]
    assert forest.root.tolist() == [t for t, _ in found]
    assert forest.token[: len(lists)].tolist() == [START] * len(lists)


@given(k_best_lists)
def test_levels_hold_the_prefixes_of_one_length_ordered_by_parent(lists: Lists) -> None:
    forest = own_roots(lists)
    assert forest.levels[:2] == (0, len(lists))
    assert forest.levels[-1] == len(forest)
    for depth, (start, stop) in enumerate(zip(forest.levels, forest.levels[1:], strict=False)):
        assert start < stop
        assert all(len(prefix(forest, node)[1]) == depth for node in range(start, stop))
        assert (np.diff(forest.parent[start:stop]) >= 0).all()


@given(k_best_lists, st.data())
def test_any_candidates_may_stand_below_any_roots(lists: Lists, data: st.DataObject) -> None:
    texts = [tuple(candidate) for _, candidate in written(lists)]
    rows = data.draw(st.lists(st.integers(0, len(texts) - 1), max_size=6)) if texts else []
    roots = [data.draw(st.integers(0, 2)) for _ in rows]
    below = np.array(rows, dtype=np.int64), np.array(roots, dtype=np.int64)
    forest = build(Candidates.of(lists), below[0], below[1], 3)
    ends = [prefix(forest, end) for end in forest.end.tolist()]
    assert ends == [(root, texts[row]) for row, root in zip(rows, roots, strict=True)]


@given(k_best_lists)
def test_a_forest_restricted_to_one_list_is_the_trie_of_that_list(lists: Lists) -> None:
    columns = Candidates.of(lists)
    n = len(columns.offsets) - 1
    shared = build(columns, np.arange(n), np.zeros(n, dtype=np.int64), 1)
    for t, k_best in enumerate(lists):
        if not k_best:
            continue
        nodes, own = shared.restricted(shared.end[columns.lists[t] : columns.lists[t + 1]])
        alone = own_roots([k_best])
        assert (np.diff(nodes) > 0).all()
        assert own.levels == alone.levels
        assert [prefix(own, i) for i in range(len(own))] == [prefix(shared, i) for i in nodes]
        assert [prefix(own, end) for end in own.end] == [(0, tuple(c)) for c in k_best]
        assert (np.diff(own.parent) >= 0).all()


@pytest.mark.parametrize("columns", [1, 3], ids=["one score", "three contexts"])
@given(lists=k_best_lists, seed=st.integers(0, 99))
@settings(max_examples=25)
def test_path_sums_equal_sums_over_each_candidates_words(
    lists: Lists, seed: int, columns: int
) -> None:
    forest = own_roots(lists)
    rng = np.random.default_rng(seed)
    sizes = (len(forest) - len(lists), len(forest))
    into, leave = (-rng.exponential(size=(size, columns)) for size in sizes)
    leave[0] = -np.inf
    found = forest.sums(torch.from_numpy(into.copy()), torch.from_numpy(leave.copy()))
    into = np.concatenate([np.zeros((len(lists), columns)), into])  # of the roots, too
    nodes = {prefix(forest, node): node for node in range(len(forest))}
    expected = [
        sum((into[nodes[t, tuple(c[:n])]] for n in range(len(c) + 1)), leave[nodes[t, tuple(c)]])
        for t, c in written(lists)
    ]
    np.testing.assert_allclose(found, np.reshape(expected, found.shape), rtol=1e-12)
