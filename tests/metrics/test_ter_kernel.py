"""Edits with shifts: sacrebleu's Python, which it says is Tercom's search, is the truth."""

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.lib_ter import translation_edit_rate

from rerank.metrics.ter_kernel import edits


def ours(hypothesis: list[int], reference: list[int]) -> int:
    words, source = np.array(hypothesis, np.int64), np.array(reference, np.int64)
    words.flags.writeable = source.flags.writeable = False
    return int(edits(words, source))


def truth(hypothesis: list[int], reference: list[int]) -> int:
    return int(translation_edit_rate(list(map(str, hypothesis)), list(map(str, reference)))[0])


@given(st.integers(1, 12), st.data())
def test_edits_of_short_texts_are_sacrebleus(n_words: int, data: st.DataObject) -> None:
    texts = st.lists(st.integers(0, n_words), max_size=14)
    hypothesis, reference = data.draw(texts), data.draw(texts)
    assert ours(hypothesis, reference) == truth(hypothesis, reference)


@given(st.permutations(range(12)), st.integers(0, 4))
def test_edits_of_texts_in_another_order_are_sacrebleus(words: list[int], dropped: int) -> None:
    assert ours(words[dropped:], list(range(12))) == truth(words[dropped:], list(range(12)))


@pytest.mark.parametrize("seed", range(6))
def test_edits_of_long_texts_are_sacrebleus(seed: int) -> None:
    """Blocks moved far away, words lost, repeated and replaced: every limit is met."""
    rng = random.Random(seed)
    reference = [rng.randrange(12 + 20 * seed) for _ in range(rng.randrange(30, 75))]
    hypothesis = list(reference)
    for _ in range(rng.randrange(1, 5)):
        a, size, b = rng.randrange(60), rng.randrange(1, 14), rng.randrange(75)
        block = hypothesis[a : a + size]
        del hypothesis[a : a + size]
        hypothesis[b:b] = block
    hypothesis = [rng.randrange(50) if rng.random() < 0.1 else word for word in hypothesis]
    assert ours(hypothesis, reference) == truth(hypothesis, reference)


@pytest.mark.parametrize(
    ("n", "m"), [(0, 0), (0, 3), (3, 0), (1, 80), (80, 1), (2, 120), (120, 2), (60, 5)]
)
def test_edits_of_texts_of_very_different_lengths_are_sacrebleus(n: int, m: int) -> None:
    rng = random.Random(n + m)
    hypothesis, reference = ([rng.randrange(9) for _ in range(size)] for size in (n, m))
    assert ours(hypothesis, reference) == truth(hypothesis, reference)


def test_a_shift_is_one_edit() -> None:
    # Snover et al. (2006), by hand: "this week" moved to its place
    assert ours([3, 4, 0, 1, 2], [0, 1, 2, 3, 4]) == 1


def test_long_texts_take_milliseconds() -> None:
    rng = random.Random(7)
    hypothesis, reference = ([rng.randrange(15) for _ in range(80)] for _ in range(2))
    ours([0], [0])
    started = time.perf_counter()
    ours(hypothesis, reference)
    assert time.perf_counter() - started < 5  # without a limit on shifts: minutes
