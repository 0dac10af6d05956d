"""Tries against prefixes written out, and sums along paths against plain sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lm.trie import Edges, Forest, build, path_sums
from lm.vocabulary import END, START

word = st.sampled_from([0, 3, 4, 5])  # control ids never stand in a text
candidate = st.lists(word, max_size=4)
k_best_lists = st.lists(st.lists(candidate, min_size=1, max_size=5), min_size=1, max_size=4)
Prefix = tuple[int, tuple[int, ...]]  # a sentence and words


def flat(lists: list[list[list[int]]]) -> tuple[list[list[int]], NDArray[np.int64]]:
    sentence = np.repeat(np.arange(len(lists)), [len(k_best) for k_best in lists])
    return [c for k_best in lists for c in k_best], sentence


def forest_of(lists: list[list[list[int]]]) -> Forest:
    candidates, sentence = flat(lists)
    return build(candidates, sentence, len(lists))


def prefix(forest: Forest, node: int) -> Prefix:
    """What a node stands for, read from it to its root."""
    words: list[int] = []
    while forest.parent[node] != node:
        words.append(int(forest.token[node]))
        node = int(forest.parent[node])
    return node, tuple(reversed(words))


@given(k_best_lists)
@settings(deadline=None)
def test_the_nodes_are_the_distinct_prefixes_of_each_sentences_candidates(
    lists: list[list[list[int]]],
) -> None:
    forest = forest_of(lists)
    found = [prefix(forest, node) for node in range(len(forest))]
    candidates, sentence = flat(lists)
    pairs = list(zip(sentence.tolist(), candidates, strict=True))
    expected = {(t, tuple(c[:n])) for t, c in pairs for n in range(len(c) + 1)}
    assert sorted(found) == sorted(expected)
    assert [found[end] for end in forest.end] == [(t, tuple(c)) for t, c in pairs]
    assert forest.sentence.tolist() == [t for t, _ in found]
    assert forest.token[: len(lists)].tolist() == [START] * len(lists)


@given(k_best_lists)
@settings(deadline=None)
def test_levels_hold_the_prefixes_of_one_length_ordered_by_parent(
    lists: list[list[list[int]]],
) -> None:
    forest = forest_of(lists)
    assert forest.levels[-1] == len(forest)
    for depth, (start, stop) in enumerate(zip(forest.levels, forest.levels[1:], strict=False)):
        assert start < stop
        assert all(len(prefix(forest, node)[1]) == depth for node in range(start, stop))
        assert (np.diff(forest.parent[start:stop]) >= 0).all()


@given(k_best_lists, st.integers(1, 4))
@settings(deadline=None)
def test_a_repeated_forest_is_the_forest_of_repeated_lists(
    lists: list[list[list[int]]], copies: int
) -> None:
    ours, truth = forest_of(lists).repeat(copies), forest_of(lists * copies)
    assert ours.levels == truth.levels
    for name in ("parent", "token", "sentence", "end"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(truth, name), err_msg=name)


@given(k_best_lists)
@settings(deadline=None)
def test_the_edges_are_the_distinct_predictions_that_the_candidates_make(
    lists: list[list[list[int]]],
) -> None:
    forest = forest_of(lists)
    edges = Edges.of(forest)
    made = [(*prefix(forest, n), int(w)) for n, w in zip(edges.node, edges.token, strict=True)]
    candidates, sentence = flat(lists)
    expected = {
        (t, tuple(c[:n]), word)
        for t, c in zip(sentence.tolist(), candidates, strict=True)
        for n, word in enumerate([*c, END])
    }
    assert sorted(made) == sorted(expected)
    assert (np.diff(edges.node) >= 0).all()


@pytest.mark.parametrize("columns", [(), (3,)], ids=["one score", "three contexts"])
@given(lists=k_best_lists, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=50)
def test_path_sums_equal_sums_over_each_candidates_words(
    lists: list[list[list[int]]], seed: int, columns: tuple[int, ...]
) -> None:
    forest = forest_of(lists)
    edges = Edges.of(forest)
    log_probs = -np.random.default_rng(seed).exponential(size=(len(edges.node), *columns))
    log_probs[0] = -np.inf
    log_probs.flags.writeable = False
    price = {
        (*prefix(forest, n), int(w)): row
        for n, w, row in zip(edges.node, edges.token, log_probs, strict=True)
    }
    candidates, sentence = flat(lists)
    expected = [
        np.sum([price[t, tuple(c[:n]), word] for n, word in enumerate([*c, END])], axis=0)
        for t, c in zip(sentence.tolist(), candidates, strict=True)
    ]
    np.testing.assert_allclose(path_sums(forest, edges, log_probs), expected, rtol=1e-12)
