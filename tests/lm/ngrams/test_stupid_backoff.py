"""Stupid back-off against its recursion, unseen contexts included."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ngrams import log10_of_words, model_of
from support.scalar.ngrams import ScalarStupidBackoff

from lm.ngrams.stupid_backoff import StupidBackoff

sentences = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=6
)


@settings(max_examples=15)
@given(sentences, st.integers(1, 5))
def test_scores_are_those_of_the_recursion(text: list[str], order: int) -> None:
    model, truth = model_of(text, order, StupidBackoff()), ScalarStupidBackoff(text, order)
    known = {word for sentence in text for word in sentence.split()}
    for words in itertools.product([*sorted(known), "unheard"], repeat=3):
        said = [word if word in known else "<unk>" for word in (*words, "a")]
        said[-1] = "</s>"
        expected = [
            math.log10(truth.score(word, ("<s>", *said[:k]))) for k, word in enumerate(said)
        ]
        assert log10_of_words(model, " ".join(words)) == pytest.approx(expected, abs=3e-6)


def test_a_step_over_a_context_that_was_not_seen_has_a_price_too() -> None:
    model = model_of(["a b", "c"], 3, StupidBackoff())
    # of the history (<s>, c) a is not seen, nor of (c); 1 of 5 words and ends is a
    assert log10_of_words(model, "c a")[1] == pytest.approx(math.log10(0.4 * 0.4 / 5), abs=1e-6)
    # (unheard, c) was not seen, nor c before a
    assert log10_of_words(model, "unheard c a")[2] == pytest.approx(
        math.log10(0.4 * 0.4 / 5), abs=1e-6
    )
