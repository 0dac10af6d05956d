"""Sequences of bags: what is read, in which order, and how attention weights it."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lm.composition import Composition, LastSentences
from lm.contexts import Prepared, bag_attention
from lm.contexts.bag_attention import BagAttention
from lm.contexts.bag_sequence import BagSequence
from lm.fusions import InputSum
from lm.model import n_parameters
from lm.recurrences import LSTM
from lm.rows import Rows
from lm.tiny_models import context_after, tiny_model

DOCUMENT = [[3, 4, 3], [], [5], [6, 4]]
SEQUENCE = Composition(LastSentences(BagSequence, 3), InputSum, "", "")
ATTENTION = Composition(LastSentences(BagAttention, 3), InputSum, "", "")


@torch.no_grad()
@pytest.mark.parametrize("end", range(5))
def test_the_value_is_the_state_after_the_bags_that_hold_words(end: int) -> None:
    model = tiny_model(SEQUENCE)
    context = model.context
    assert isinstance(context, BagSequence)
    state = context.reader.start(1)
    for words in DOCUMENT[max(0, end - 3) : end]:
        if words:
            bag = context.table[words].mean(dim=0, keepdim=True)
            state = context.reader.step(context.reader.project(bag), state)
    value = context.value(context_after(model, DOCUMENT[:end]))
    torch.testing.assert_close(value, context.reader.output(state))


def test_keys_tell_the_order_of_sentences_apart_and_not_that_of_words() -> None:
    context = BagSequence(nn.Embedding(9, 2), LSTM(1, 2), sentences=2)
    a, b, c = (context.sentence_key(np.array(s, dtype=np.int32)) for s in ([3, 4], [4, 3], [3]))
    assert a == b != c
    assert context.history_key([a, c]) == context.history_key([b, c])
    assert context.history_key([a, c]) != context.history_key([c, a])
    # as many words, otherwise divided
    divided = ([3, 4], [3]), ([3], [3, 4])
    keys = [[context.sentence_key(np.array(s, dtype=np.int32)) for s in own] for own in divided]
    assert context.history_key(keys[0]) != context.history_key(keys[1])


def values(context: BagAttention, contexts: Rows, query: Tensor) -> Tensor:
    rows = torch.zeros(len(query), dtype=torch.long)
    return context.word_values(context.prepared(contexts), rows, query)


@torch.no_grad()
def test_attention_over_one_sentence_is_its_annotation_whatever_the_query() -> None:
    model = tiny_model(ATTENTION)
    context = model.context
    assert isinstance(context, BagAttention)
    contexts = context_after(model, [[], [3, 4], []])
    annotations, _, mask = context.prepared(contexts).tensors
    assert mask.tolist() == [[False, True, False]]
    found = values(context, contexts, torch.randn(5, 8))
    torch.testing.assert_close(found, annotations[0, 1].expand(5, -1))


@torch.no_grad()
def test_attention_in_parts_is_attention_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model(ATTENTION)
    context = model.context
    assert isinstance(context, BagAttention)
    contexts, query = context_after(model, DOCUMENT), torch.randn(7, 8)
    whole = values(context, contexts, query)
    assert not torch.allclose(whole[0], whole[1])
    monkeypatch.setattr(bag_attention, "MOST_ENTRIES", 1)
    torch.testing.assert_close(values(context, contexts, query), whole)


@pytest.mark.parametrize(("attention", "units"), [(None, 5), (3, 3)])
def test_attention_has_as_many_units_as_asked_for_or_as_hidden_states(
    attention: int | None, units: int
) -> None:
    words, cell = nn.Embedding(11, 4), LSTM(1, 5)
    context = BagAttention(words, cell, sentences=2, attention=attention)
    scores = units * (3 * 5 + 1)
    assert n_parameters(context) == 11 * 4 + 8 * 5 * (5 + 4 + 1) + scores
    assert context.width == 10


@torch.no_grad()
def test_contexts_are_prepared_once_for_all_words(monkeypatch: pytest.MonkeyPatch) -> None:
    model, calls = tiny_model(ATTENTION), []
    prepared = model.context.prepared

    def counted(contexts: Rows) -> Prepared:
        calls.append(len(contexts))
        found: Rows = prepared(contexts)
        return found

    monkeypatch.setattr(model.context, "prepared", counted)
    inputs = model.word_inputs()
    state = model.start(context_after(model, DOCUMENT), inputs)
    del calls[:-1]
    for word in (3, 4, 5):
        state = model.step(state, torch.tensor([word]), inputs)
    assert calls == [1]
