"""Bags of words: what they hold, what they sum to, and when they are equal."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from lm.composition import Composition
from lm.contexts.bag import BagOfWords, WordFrequencies
from lm.fusions import Fusion, Input, Output
from lm.laws import check_composition
from lm.recurrences import LSTM
from lm.tiny_models import context_after, tiny_model

DOCUMENT = [[3, 4, 3], [5], [], [6, 4]]


@pytest.mark.parametrize("fusion", [Input, Output])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_bags_obey_the_laws_at_the_order_of_their_sentences(n: int, fusion: type[Fusion]) -> None:
    composition = Composition(partial(BagOfWords, sentences=n), fusion, "", "")
    assert tiny_model(composition).order == n
    check_composition(composition)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_value_is_the_sum_of_the_embeddings_of_the_last_sentences(n: int) -> None:
    model = tiny_model(Composition(partial(BagOfWords, sentences=n), Output, "", ""))
    table = model.context.get_parameter("table")
    for end in range(len(DOCUMENT) + 1):
        words = [word for sentence in DOCUMENT[max(0, end - n) : end] for word in sentence]
        value = model.context.value(context_after(model, DOCUMENT[:end]))
        torch.testing.assert_close(value[0], table[words].sum(dim=0))


def test_equal_sums_have_equal_bits_however_the_words_are_divided() -> None:
    model = tiny_model(Composition(partial(BagOfWords, sentences=2), Output, "", ""))
    divided = [[[3, 4, 5], [6, 7]], [[7, 6], [5, 3, 4]], [[], [4, 7, 3, 6, 5]]]
    values = [model.context.value(context_after(model, sentences)) for sentences in divided]
    assert all(torch.equal(value, values[0]) for value in values)


def test_keys_tell_bags_apart_and_not_the_order_of_words() -> None:
    context = BagOfWords(nn.Embedding(9, 2), LSTM(1, 2), sentences=2)
    a, b, c = (context.sentence_key(np.array(s, dtype=np.int32)) for s in ([3, 4], [4, 3], [3]))
    assert a == b != c
    assert context.history_key([a, c]) == context.history_key([c, b])
    assert context.history_key([a, c]) != context.history_key([c, c])


def test_frequencies_are_counts_divided_by_their_sum_over_all_sentences() -> None:
    model = tiny_model(Composition(partial(WordFrequencies, sentences=3), Output, "", ""))
    table = model.context.get_parameter("table")
    value = model.context.value(context_after(model, DOCUMENT[:3]))  # 3 4 3, 5, none
    torch.testing.assert_close(value[0], (2 * table[3] + table[4] + table[5]) / 4)
    assert not model.context.value(context_after(model, [[], []])).any()


def test_equal_frequencies_of_equal_sums_have_equal_bits() -> None:
    model = tiny_model(Composition(partial(WordFrequencies, sentences=2), Output, "", ""))
    divided = [[[3, 4, 5], [6, 7]], [[7, 6], [5, 3, 4]], [[], [4, 7, 3, 6, 5]]]
    values = [model.context.value(context_after(model, sentences)) for sentences in divided]
    assert all(torch.equal(value, values[0]) for value in values)
