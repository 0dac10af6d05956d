"""Edit distances against the table in Python; selections against one that looks at all pairs."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rerank.corpus.diversity import Diversity, Tokens, diversity, farthest_first

words = st.lists(st.sampled_from("abcd"), max_size=9)
lists = st.lists(words, min_size=1, max_size=8)


def by_the_table(a: Tokens, b: Tokens) -> int:
    """Levenshtein's distance, two rows of the table at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(row[-1] + 1, above[j] + 1, above[j - 1] + (x != y)))
    return row[-1]


def chosen_by_hand(candidates: list[list[str]], k: int) -> list[int]:
    chosen = [0]
    while len(chosen) < min(k, len(candidates)):
        left = [i for i in range(len(candidates)) if i not in chosen]
        gaps = [min(by_the_table(candidates[i], candidates[c]) for c in chosen) for i in left]
        chosen.append(left[gaps.index(max(gaps))])
    return sorted(chosen)


def radius(candidates: list[list[str]], chosen: tuple[int, ...]) -> int:
    """The largest distance from a candidate to the nearest one chosen."""
    return max(min(by_the_table(a, candidates[c]) for c in chosen) for a in candidates)


def distances(candidates: list[list[Any]]) -> list[list[float | None]]:
    """Edit distances of all pairs."""
    return [[diversity([a, b]).distance for b in candidates] for a in candidates]


@given(lists)
def test_distances_are_those_of_the_table(candidates: list[list[str]]) -> None:
    expected = [[by_the_table(a, b) for b in candidates] for a in candidates]
    assert distances(candidates) == expected


@pytest.mark.parametrize("n_words", [1, 2, 3, 100])
def test_distances_of_long_candidates_are_those_of_the_table(n_words: int) -> None:
    """Lengths around 64 and 128, where blocks of the table end."""
    rng = np.random.default_rng(n_words)
    lengths = [0, 1, 62, 63, 64, 65, 127, 128, 129, 200]
    candidates = [rng.integers(n_words, size=length).tolist() for length in lengths]
    expected = [[by_the_table(a, b) for b in candidates] for a in candidates]
    assert distances(candidates) == expected


@given(st.lists(words, min_size=2, max_size=8))
def test_figures_are_means_over_all_pairs(candidates: list[list[str]]) -> None:
    pairs = list(combinations(candidates, 2))
    distances = [by_the_table(a, b) for a, b in pairs]
    shares = [d / max(len(a), len(b), 1) for d, (a, b) in zip(distances, pairs, strict=True)]
    found = diversity(candidates)
    assert found.candidates == len(candidates)
    assert found.distinct == len({" ".join(candidate) for candidate in candidates})
    assert found.distance == sum(distances) / len(pairs)
    assert found.relative == pytest.approx(sum(shares) / len(pairs), rel=1e-12)


@pytest.mark.parametrize("candidates", [[], [["a", "b"]]], ids=["none", "one"])
def test_where_there_is_no_pair_there_is_no_distance(candidates: list[list[str]]) -> None:
    n = len(candidates)
    assert diversity(candidates) == Diversity(n, n, None, None)


def test_a_list_worked_out_by_hand() -> None:
    candidates = [line.split() for line in ("a b c", "a b c", "a c", "x y z w")]
    # 0 1 4, 1 4, 4 words of at most 3 3 4, 3 4, 4
    found = diversity(candidates)
    assert (found.candidates, found.distinct, found.distance) == (4, 3, (1 + 4 + 1 + 4 + 4) / 6)
    assert found.relative == pytest.approx((1 / 3 + 1 + 1 / 3 + 1 + 1) / 6)
    assert farthest_first(candidates, 2).tolist() == [0, 3]
    assert farthest_first(candidates, 3).tolist() == [0, 2, 3]


@given(lists, st.integers(1, 9))
def test_the_choice_is_that_of_one_who_looks_at_all_pairs(
    candidates: list[list[str]], k: int
) -> None:
    assert farthest_first(candidates, k).tolist() == chosen_by_hand(candidates, k)


@given(lists)
def test_choices_begin_with_the_first_grow_by_one_and_end_with_all(
    candidates: list[list[str]],
) -> None:
    smaller: set[int] = set()
    for k in range(1, len(candidates) + 1):
        chosen = farthest_first(candidates, k).tolist()
        assert chosen[0] == 0
        assert len(chosen) == k
        assert smaller < set(chosen)
        smaller = set(chosen)
    assert farthest_first(candidates, len(candidates) + 1).tolist() == sorted(smaller)


@given(lists, st.integers(1, 4))
def test_no_candidate_is_farther_than_twice_what_it_must_be(
    candidates: list[list[str]], k: int
) -> None:
    chosen = tuple(farthest_first(candidates, k).tolist())
    best = min(
        radius(candidates, found) for found in combinations(range(len(candidates)), len(chosen))
    )
    assert radius(candidates, chosen) <= 2 * best


@given(lists)
def test_doubles_are_chosen_when_nothing_else_is_left(candidates: list[list[str]]) -> None:
    distinct = len(set(map(tuple, candidates)))
    chosen = farthest_first(candidates, distinct)
    assert len({tuple(candidates[rank]) for rank in chosen}) == distinct
