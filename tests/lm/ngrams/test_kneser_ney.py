"""Modified Kneser–Ney: against the formulas, against lmplz, and as a distribution.

`lmplz.arpa` is what `lmplz -o 3` of KenLM 0.3.0 makes of the made-up text `lmplz.txt`.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ngrams import TEXT, counts_of, golden, log10_of_words, model_of, scores
from support.scalar.ngrams import ScalarKneserNey

from lm.ngrams import NGramError
from lm.ngrams.kneser_ney import FALLBACK, Discounts, KneserNey
from lm.ngrams.model import NGramModel
from lm.vocabulary import START

WORDS = ("the", "lamp", "king", "zug1", "in", "unheard")


@pytest.mark.parametrize(
    ("order", "discounts"), [(1, [FALLBACK]), (2, []), (3, []), (4, [FALLBACK] * 4)], ids=str
)
def test_probabilities_are_those_of_the_formulas(order: int, discounts: list[Discounts]) -> None:
    text = TEXT if order < 4 else ["the king", "the lamp in the lamp", "king"]
    model, truth = model_of(text, order), ScalarKneserNey(text, order, discounts)
    for words in itertools.product(WORDS, repeat=3):
        said = [word if word in truth.words else "<unk>" for word in (*words, "</s>")]
        expected = [math.log10(truth.prob(word, ("<s>", *said[:k]))) for k, word in enumerate(said)]
        assert log10_of_words(model, " ".join(words)) == pytest.approx(expected, abs=2e-6)


def test_the_model_is_that_of_lmplz() -> None:
    own, other = model_of(TEXT, 3, KneserNey()), golden("lmplz.arpa")
    assert sorted(own.vocabulary.words) == sorted(other.vocabulary.words)
    assert own.ngrams.counts == other.ngrams.counts
    table, expected = by_words(own), by_words(other)
    assert table.keys() == expected.keys()
    for ngram, numbers in expected.items():
        if ngram != ("<s>",):  # of which lmplz writes 0
            assert table[ngram] == pytest.approx(numbers, abs=1e-6)


def by_words(model: NGramModel) -> dict[tuple[str, ...], tuple[float, float]]:
    """Logarithm and back-off of each n-gram."""
    ngrams, parents, found = model.ngrams, model.ngrams.parents(), {}
    for start in range(1, len(ngrams)):
        node, words = start, list[int]()
        while node:
            words.append(int(ngrams.words[node]))
            node = int(parents[node])
        back = float(model.log10_backoffs[start]) if start < ngrams.n_contexts else 0.0
        name = tuple(w.decode() for w in model.vocabulary.decode(reversed(words)))
        found[name] = float(model.log10_probs[start]), back
    return found


sentences = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "<unk>"]), min_size=1, max_size=6).map(" ".join),
    min_size=1,
    max_size=8,
)


@settings(max_examples=15)
@given(sentences, st.integers(1, 4))
def test_probabilities_sum_to_1_after_every_history(text: list[str], order: int) -> None:
    model = model_of(text, order)
    words = [word.decode() for word in model.vocabulary.words]
    for n in range(3):
        for history in itertools.product([*words, "unheard"], repeat=n):
            begun = " ".join(history)
            longer = scores(model, [begun, *(f"{begun} {word}" for word in [*words, "unheard"])])
            total = math.exp(longer[0, 1]) + np.exp(longer[1:, 0] - longer[0, 0]).sum()
            assert total == pytest.approx(1, abs=2e-6)


def test_unknown_words_have_the_share_of_a_uniform_distribution() -> None:
    model, truth = model_of(TEXT, 2, KneserNey()), ScalarKneserNey(TEXT, 2)
    assert model.unknown_share == pytest.approx(truth.prob("<unk>", ()), rel=1e-6)
    counts, discounts = truth.counts[0].values(), truth.discounts[0]
    gamma = sum(discounts[min(c, 3) - 1] for c in counts) / sum(counts)
    assert model.unknown_share == pytest.approx(gamma / len(truth.words), rel=1e-6)


def test_notes_name_the_discounts_of_each_order() -> None:
    _, notes = KneserNey().estimate(*counts_of(TEXT, 3))
    assert notes == (  # as lmplz prints them
        "1-grams D1 0.273, D2 1.591, D3+ 1.364",
        "2-grams D1 0.490, D2 1.265, D3+ 1.247",
        "3-grams D1 0.625, D2 1.269, D3+ 2.063",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (["a b c"], "1-grams that occur once, twice and three times, .* found none .* twice"),
        (
            ["a", "b b", "c c c", *["d e f g"] * 4],
            "at least 0 for 1-grams, found .* with small counts: 1 of 1, 1 of 2, 1 of 3, 4 of 4",
        ),
    ],
    ids=["a count of counts is 0", "a discount is negative"],
)
def test_texts_without_discounts_are_refused_or_get_those_of_the_fallback(
    text: list[str], message: str
) -> None:
    counts = counts_of(text, 1)
    with pytest.raises(NGramError, match=message):
        KneserNey().estimate(*counts)
    model, notes = KneserNey(FALLBACK).estimate(*counts)
    assert notes == ("1-grams D1 0.500, D2 1.000, D3+ 1.500 (fallback)",)
    total = np.delete(10.0 ** model.log10_probs[1:].astype(float), START).sum()
    assert total == pytest.approx(1, abs=1e-6)


def test_only_orders_without_discounts_fall_back() -> None:
    _, notes = KneserNey(FALLBACK).estimate(*counts_of(TEXT, 5))
    assert [("fallback" in note) for note in notes] == [False, False, False, False, True]
