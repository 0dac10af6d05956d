"""The deal of documents: every document once, and shards of nearly equal cost."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lists import kbest, kbest_without_candidates

from rerank.pipeline.shards import Shard, cost, deal

COSTS = st.lists(st.integers(0, 10**6), max_size=60)


def makespan(costs: list[int], shards: list[list[int]]) -> int:
    return max(sum(costs[d] for d in shard) for shard in shards)


@given(COSTS, st.integers(1, 12))
def test_every_document_is_in_exactly_one_shard(costs: list[int], n: int) -> None:
    found = [Shard(i, n).documents(costs) for i in range(1, n + 1)]
    assert sorted(d for shard in found for d in shard) == list(range(len(costs)))


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(1, 3))
def test_the_largest_shard_is_at_most_a_third_larger_than_the_best_deal(
    costs: list[int], n: int
) -> None:
    """The best deal is found by trying all."""
    best = min(
        makespan(costs, [[d for d, own in enumerate(owners) if own == i] for i in range(n)])
        for owners in product(range(n), repeat=len(costs))
    )
    assert makespan(costs, deal(costs, n)) * 3 <= best * 4


@given(COSTS, st.integers(1, 12))
def test_the_largest_shard_is_bounded_by_the_mean_and_the_largest_document(
    costs: list[int], n: int
) -> None:
    bound = sum(costs) / n + max(costs, default=0)
    assert makespan(costs, deal(costs, n)) <= bound + 1e-9


def test_longer_documents_come_first_and_ties_go_to_the_lower_number() -> None:
    assert deal([1, 5, 5, 2, 4], 2) == [[1, 4], [2, 3, 0]]


def test_a_shard_is_one_of_all() -> None:
    assert str(Shard(2, 3)) == "2/3"
    for number in (0, 4):
        with pytest.raises(ValueError, match="expected a shard from 1 to 3"):
            Shard(number, 3)


def test_cost_counts_words_and_sentence_ends_for_each_candidate_of_the_sentence_before() -> None:
    document = kbest([["a b", "c"], [], ["d e f"], ["g", "h", ""]])
    assert cost(document, 0) == cost(document, None) == 5 + 4 + 5
    assert cost(document, 1) == 5 + 2 * 4 + 1 * 5
    assert cost(kbest_without_candidates(2), 1) == 0
