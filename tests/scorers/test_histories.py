"""Histories: which contexts are known, and what is held in memory for the others."""

from functools import reduce

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from lm.contexts.bag import BagOfWords
from lm.contexts.sentence_bags import SentenceBags
from lm.recurrences import LSTM
from lm.recurrences.htanh import OneHotHTanh
from lm.rows import Rows
from lm.trie import Candidates
from rerank.scorers.histories import (
    KEY_BYTES,
    AllKeys,
    AllSentences,
    Histories,
    Key,
    LastSentences,
)


def unknown(n: int) -> Histories:
    """Histories before sentence 1, after the empty one."""
    first = Histories(0, [AllSentences([]).first], Rows.of(torch.zeros(1, 3)), np.zeros(1, np.intp))
    origin = (first, np.zeros(n, np.intp), np.arange(n))
    keys = [(bytes([k]) * KEY_BYTES,) for k in range(n)]
    return Histories(1, [*keys], None, np.full(n, -1), origin)


def contexts(histories: Histories) -> torch.Tensor:
    """Contexts of all histories that have one."""
    assert histories.contexts is not None
    return histories.contexts.tensors[0][histories.rows[histories.known]]


@given(st.permutations(range(5)), st.integers(1, 4))
def test_contexts_are_entered_in_any_order_and_stay(order: list[int], first: int) -> None:
    histories = unknown(5)
    truth = torch.arange(15.0).reshape(5, 3)
    for part in (order[:first], order[first:]):
        rows = np.array(part, dtype=np.intp)
        histories.enter(rows, Rows.of(truth[rows]))
        assert torch.equal(contexts(histories), truth[histories.known])
    assert histories.known.all()


def test_the_histories_before_are_let_go_when_all_contexts_are_known() -> None:
    """Else a search would keep all of its beams."""
    histories = unknown(3)
    histories.enter(np.array([0, 2]), Rows.of(torch.ones(2, 3)))
    assert histories.origin is not None
    histories.enter(np.array([1]), Rows.of(torch.ones(1, 3)))
    assert histories.origin is None


def test_keys_of_all_bags_are_equal_where_each_bag_is() -> None:
    context = SentenceBags(nn.Embedding(9, 4), OneHotHTanh(4, 4))
    lists = Candidates.of([[[3, 4], [4, 3], [3]], [[5], [3, 4]]])
    keys = AllKeys(context, lambda: lists)

    def key(*path: int) -> Key:
        found = keys.first
        for t, choice in enumerate(path):
            found = keys.after(found, t, choice)
        return found

    assert key(0, 0) == key(1, 0)
    assert len({key(0), key(2), key(0, 0), key(2, 0), key(0, 1), keys.first}) == 6
    assert len(keys.score_key(key(0, 1))) == KEY_BYTES


def test_keys_of_all_sentences_are_of_one_size_and_differ_with_every_sentence() -> None:
    keys = AllSentences([[b"a", b"b"], [b"c"]])
    paths = [(0, 0), (1, 0)]
    found = {keys.after(keys.after(keys.first, 0, a), 1, b) for a, b in paths}
    assert len(found) == 2
    assert {len(keys.score_key(key)) for key in [*found, keys.first]} == {KEY_BYTES}


def test_keys_of_the_last_sentences_forget_earlier_ones_and_merge_what_the_context_merges() -> None:
    lists = Candidates.of([[[3], [4]], [[5, 6], [6, 5]], [[7], [5]]])
    context = BagOfWords(nn.Embedding(9, 2), LSTM(1, 2), sentences=2)
    keys = LastSentences(2, context, lambda: lists)

    def of(*choices: int) -> Key:
        return reduce(lambda key, choice: keys.after(key, *choice), enumerate(choices), keys.first)

    assert of(0, 0, 0) == of(1, 0, 0) == of(1, 1, 0) != of(0, 0, 1)
    assert of(0, 0) != of(1, 0)
    swapped = keys.after(keys.after(keys.first, 2, 0), 1, 0)
    assert swapped != of(0, 0, 0)
    assert keys.score_key(swapped) == keys.score_key(of(0, 0, 0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_contexts_keep_their_precision(dtype: torch.dtype) -> None:
    histories = unknown(2)
    histories.enter(np.array([1]), Rows.of(torch.full((1, 3), 0.1, dtype=dtype)))
    assert contexts(histories).dtype == dtype
