"""Dropout of numbers, of columns of a sentence and of whole words."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from lm.batches import PackedBatch
from lm.corpus import Corpus
from lm.noise import Noise, word_factors
from lm.sentences import Positions
from lm.vocabulary import START

V = 9


def positions() -> Positions:
    """300 sentences of 0 to 6 words."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 7, 300)
    tokens = rng.integers(3, V, lengths.sum()).astype(np.int32)
    text = Corpus(tokens, np.concatenate([[0], np.cumsum(lengths)]), np.array([0, 300]))
    return PackedBatch.of(text, np.arange(300)).positions


def noise(
    seed: int = 0, *, dropout: float = 0.0, locked_dropout: float = 0.0, words: float = 0.0
) -> Noise:
    generator = torch.Generator().manual_seed(seed)
    factors = word_factors(V, words, generator)
    return Noise(dropout, 0.0, generator, locked_dropout=locked_dropout, words=factors)


def sentence_of(at: Positions, values: Tensor) -> list[Tensor]:
    return [values[at.context == n] for n in range(len(at.last))]


@pytest.mark.parametrize("place", ["inputs", "features"])
def test_a_locked_mask_is_one_for_all_words_of_a_sentence(place: str) -> None:
    at = positions()
    ones = torch.ones(len(at.words), 16)
    found = sentence_of(at, getattr(noise(locked_dropout=0.5), place)(ones, at))
    assert all((rows == rows[0]).all() for rows in found)
    assert len({tuple(rows[0].tolist()) for rows in found}) > 250  # of 300 sentences


def test_locked_masks_of_inputs_and_features_are_not_alike() -> None:
    at, one = positions(), noise(locked_dropout=0.5)
    ones = torch.ones(len(at.words), 16)
    assert not torch.equal(one.inputs(ones, at), one.features(ones, at))


@pytest.mark.parametrize(
    "one", [noise(dropout=0.25), noise(locked_dropout=0.25)], ids=["single", "locked"]
)
def test_dropout_keeps_the_expected_value(one: Noise) -> None:
    at = positions()
    found = one.features(torch.ones(len(at.words), 64), at)
    assert set(found.flatten().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    of_sentences = torch.stack([rows.mean(dim=0) for rows in sentence_of(at, found)])
    bound = 4 * math.sqrt(0.25 / 0.75 / of_sentences.numel())
    assert abs(float(of_sentences.mean()) - 1) < bound


def test_word_dropout_drops_all_occurrences_of_a_word_and_never_the_start() -> None:
    at = positions()
    dropped = set()
    for seed in range(40):
        found = noise(seed, words=0.5).inputs(torch.ones(len(at.words), 4), at)
        for word in range(V):
            values = set(found[at.words == word].flatten().tolist())
            assert len(values) <= 1
            assert values <= ({1.0} if word == START else {0.0, 2.0})
            dropped |= {word} if values == {0.0} else set()
    assert dropped == set(range(3, V))


def test_word_factors_keep_the_expected_value() -> None:
    factors = word_factors(40_000, 0.2, torch.Generator().manual_seed(3))
    assert factors is not None
    assert set(factors.tolist()) == {0.0, 1.0, 1.25}
    assert abs(float(factors.mean()) - 1) < 4 * math.sqrt(0.2 / 0.8 / 40_000)


def test_single_numbers_are_dropped_one_by_one() -> None:
    at = positions()
    found = noise(dropout=0.5).features(torch.ones(len(at.words), 16), at)
    long = max(sentence_of(at, found), key=len)
    assert len({tuple(row) for row in long.tolist()}) == len(long)


def test_rates_of_zero_draw_nothing_and_change_nothing() -> None:
    """A run without the new kinds of noise makes the updates that it made before they existed."""
    at, silent = positions(), noise()
    before, x = silent.generator.get_state(), torch.randn(len(at.words), 4)
    assert silent.inputs(x, at) is x
    assert silent.features(x, at) is x
    assert torch.equal(silent.generator.get_state(), before)
