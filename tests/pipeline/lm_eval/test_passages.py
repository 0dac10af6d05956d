"""Passages and blocks of them: what they hold, and that no more could be made."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lm.corpus import Corpus
from rerank.pipeline.lm_eval.passages import (
    Passage,
    consecutive,
    of_one_topic,
    passages_of,
    separate,
)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def corpus(*sizes: int) -> Corpus:
    return Corpus.of([[[3]] * n for n in sizes])


def test_passages_are_cut_from_the_beginning_of_each_document() -> None:
    found = passages_of(corpus(9, 3, 4), 4)
    assert found == [Passage(0, 0, 4), Passage(0, 4, 4), Passage(2, 12, 4)]
    assert [own.last for own in found] == [3, 7, 15]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(2, 4), st.integers(0, 9))
def test_separate_blocks_have_different_documents_and_are_as_many_as_there_can_be(
    counts: list[int], size: int, seed: int
) -> None:
    """b blocks can be made if and only if Σ min(passages of a document, b) ≥ b · size."""
    passages = passages_of(corpus(*(2 * n for n in counts)), 2)
    blocks = separate(passages, size, 100, rng(seed))
    assert all(len({own.document for own in block}) == len(block) == size for block in blocks)
    assert max(Counter(own for block in blocks for own in block).values(), default=1) == 1
    assert {own for block in blocks for own in block} <= set(passages)
    possible = [b for b in range(40) if sum(min(n, b) for n in counts) >= b * size]
    assert len(blocks) == max(possible)


def test_blocks_are_at_most_as_many_as_asked_for_and_a_function_of_the_seed() -> None:
    passages = passages_of(corpus(*[8] * 20), 4)
    for make in (separate, consecutive):
        one, again, other = (make(passages, 5, 3, rng(seed)) for seed in (1, 1, 2))
        assert len(one) == 3
        assert one == again != other


def test_consecutive_blocks_follow_the_text() -> None:
    passages = passages_of(corpus(12, 8, 8), 4)
    assert consecutive(passages, 3, 9, rng()) == [passages[:3], passages[3:6]]
    assert consecutive(passages, 8, 9, rng()) == []


@pytest.mark.parametrize("make", [separate, consecutive])
def test_a_text_without_passages_has_no_blocks(make: object) -> None:
    assert callable(make)
    assert make([], 2, 5, rng()) == []


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(2, 4), st.integers(0, 9))
def test_blocks_of_one_topic_hold_all_of_its_passages_but_a_rest(
    topics: list[int], size: int, seed: int
) -> None:
    labels = np.repeat(np.array(topics, dtype=np.int32), 2)
    passages = passages_of(corpus(2 * len(topics)), 2, labels)
    blocks = of_one_topic(passages, size, 100, rng(seed))
    assert all(len({own.topic for own in block}) == 1 and len(block) == size for block in blocks)
    counts = Counter(block[0].topic for block in blocks)
    assert counts == {t: n // size for t, n in Counter(topics).items() if n >= size}
    assert max(Counter(own for block in blocks for own in block).values(), default=1) == 1
    few = of_one_topic(passages, size, 1, rng(seed))
    assert len(few) == min(1, len(blocks))
