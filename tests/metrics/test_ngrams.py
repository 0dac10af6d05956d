"""Clipped matches: counters of tuples, made in plain Python, are the truth."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rerank.corpus.columns import offsets_of
from rerank.metrics.ngrams import add_matches, trie

# Few tokens, so that n-grams repeat and match; the largest that there may be.
SEQUENCES = st.lists(st.sampled_from([0, 1, 2, 3, 2**32 - 1]), max_size=12)


def ngrams(tokens: list[int], n: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


@settings(max_examples=50)
@given(
    st.lists(SEQUENCES, min_size=1, max_size=3),
    st.lists(SEQUENCES, max_size=5),
    st.sampled_from([1, 4, 6]),
)
def test_matches_are_clipped_at_the_largest_count_in_one_reference(
    references: list[list[int]], hypotheses: list[list[int]], order: int
) -> None:
    starts = offsets_of(np.array(list(map(len, references))))
    table = trie(np.array([*chain.from_iterable(references)], np.int64), starts, order)
    for k, hypothesis in enumerate(hypotheses):
        found = np.zeros(order, np.int64)
        add_matches(table, np.array(hypothesis, np.int64), len(references) + k, found)
        truth = []
        for n in range(1, order + 1):
            most: Counter[tuple[int, ...]] = Counter()
            for reference in references:
                most |= ngrams(reference, n)
            truth.append(sum((ngrams(hypothesis, n) & most).values()))
        assert found.tolist() == truth


@pytest.mark.parametrize("order", [4, 6])
def test_many_different_ngrams_keep_apart(order: int) -> None:
    rng = np.random.default_rng(order)
    tokens = rng.integers(0, 50, 3000)
    table = trie(tokens, np.array([0, len(tokens)]), order)
    other = rng.integers(0, 50, 3000)
    found = np.zeros(order, np.int64)
    add_matches(table, other, 1, found)
    pairs = [(ngrams(other.tolist(), n), ngrams(tokens.tolist(), n)) for n in range(1, order + 1)]
    assert found.tolist() == [sum((one & two).values()) for one, two in pairs]
