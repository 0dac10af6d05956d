"""Scores of sentences: KenLM's on the same files, and one sentence alone as among others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ngrams import TEXT, golden, log10_of_words, model_of, scores

from lm.ngrams.stupid_backoff import StupidBackoff

# base-10 logarithms of words and </s>, from KenLM 0.3.0 (`full_scores` of its Python module)
PRUNED = {  # without <unk>, and without the suffix (b, c) of (a, b, c)
    "a b c": [-0.25, -0.125, -0.1875, -0.25],
    "": [-1.25],
    "a": [-0.25, -1.375],
    "b": [-1.375, -0.3125],
    "c": [-1.75, -0.25],
    "b a a": [-1.375, -1.5, -0.4375, -1.25],
    "a a b": [-0.25, -1.0, -0.75, -0.375],
    "a b c a": [-0.25, -0.125, -0.1875, -1.125, -1.0],
    "b c b a a b": [-1.375, -1.375, -0.375, -1.5, -0.4375, -0.75, -0.375],
    "d": [-100.5, -0.75],
    "a d b": [-0.25, -100.625, -0.875, -0.3125],
    "a b a a a": [-0.25, -0.125, -1.5625, -0.4375, -0.875, -1.25],
    "c c b": [-1.75, -0.5625, -0.125, -0.3125],
}
LMPLZ = {
    "the lamp burns the boat": -5.287442,
    "a old king sees": -5.378151,
    "moon": -3.296734,
    "zug1 zug1": -6.981891,
    "the unheard lamp is in the sea on the town": -13.037915,
    "": -2.476956,
    "a no the in sees": -8.843366,
}


@pytest.mark.parametrize("sentence", PRUNED, ids=lambda sentence: sentence or "empty")
def test_words_have_the_scores_that_kenlm_gives_them(sentence: str) -> None:
    found = log10_of_words(golden("pruned.arpa"), sentence)
    assert found == pytest.approx(PRUNED[sentence], abs=1e-6)


def test_sentences_have_the_scores_that_kenlm_gives_them() -> None:
    found = scores(golden("lmplz.arpa"), [*LMPLZ]).sum(axis=1) / np.log(10)
    assert found == pytest.approx([*LMPLZ.values()], abs=5e-6)  # KenLM adds float32s


@given(st.lists(st.sampled_from([*TEXT[:5], "", "unheard of", "zug1"]), max_size=6))
def test_a_sentence_scores_among_others_as_alone_to_the_last_bit(chosen: list[str]) -> None:
    model = model_of(TEXT, 3)
    alone = [scores(model, [sentence])[0].tolist() for sentence in chosen]
    assert scores(model, chosen).tolist() == alone


def test_a_model_states_whether_its_scores_are_probabilities() -> None:
    assert golden("pruned.arpa").normalised
    assert not model_of(TEXT, 2, StupidBackoff()).normalised
