"""Where contexts enter: in the parts, and by what the hidden states see of them."""

from itertools import islice

import numpy as np
import pytest
import torch
from support.models import config_of
from torch import nn

from lm.batches import PackedBatch
from lm.contexts import NoContext
from lm.contexts.carried_state import CarriedState
from lm.contexts.last_hidden import LastHidden
from lm.corpus import Corpus
from lm.fusions import InitialState, Input, NoFusion, Output
from lm.model import DocumentLM
from lm.recurrence import CIFG, LSTM, Recurrence
from lm.rows import Rows
from lm.zoo import ZOO


class HTanh(Recurrence):
    """A state of one tensor."""

    gates = tensors = 1


def test_without_fusion_a_sentence_begins_in_the_zero_state_and_nothing_is_added() -> None:
    cell, value = LSTM(3, 4, 2), torch.randn(2, 5)
    fusion = NoFusion(5, cell)
    context = NoContext(nn.Embedding(3, 2), cell)
    state = fusion.initial(cell, context, context.start(2))
    assert all(torch.equal(tensor, torch.zeros(2, 4)) for tensor in state)
    assert fusion.input_columns == fusion.output_columns == 0
    assert fusion.share(cell, value) is fusion.output(value, lambda: value)[1] is None


def test_an_initial_state_is_the_carried_tensors_in_their_order() -> None:
    cell = CIFG(3, 4, 2)
    context = CarriedState(nn.Embedding(3, 2), cell)
    carried = Rows.of(*(torch.randn(2, 4) for _ in range(4)))
    assert InitialState(context.width, cell).initial(cell, context, carried) == carried.tensors


def test_an_initial_state_is_refused_from_a_context_without_one_whatever_its_size() -> None:
    cell = HTanh(3, 4, 1)
    context = LastHidden(nn.Embedding(3, 2), cell)
    assert context.width == sum(tensor.shape[1] for tensor in cell.zeros(1))
    with pytest.raises(TypeError, match="only a context that carries a recurrent state"):
        InitialState(context.width, cell).initial(cell, context, context.start(2))


def test_a_shared_projection_is_that_of_the_concatenated_input() -> None:
    torch.manual_seed(0)
    cell = CIFG(3 + 4, 4, 2)
    fusion = Input(4, cell)
    assert fusion.input_columns == 4
    x, value = torch.randn(5, 3), torch.randn(5, 4)
    share = fusion.share(cell, value)
    together = cell.project(torch.cat([x, value], dim=1))
    torch.testing.assert_close(cell.project(x) + share, together)


def test_the_output_receives_the_value_itself() -> None:
    value = torch.randn(2, 4)
    fusion = Output(4, LSTM(3, 4, 2))
    assert fusion.output(torch.zeros(2, 4), lambda: value)[1] is value
    assert fusion.output_columns == 4


@pytest.mark.parametrize("name", sorted(ZOO))
def test_hidden_states_depend_on_the_context_exactly_where_the_fusion_says_so(name: str) -> None:
    torch.manual_seed(1)
    model = DocumentLM(config_of(name, 9, 3, 4))
    sentence = Corpus(np.array([3, 7, 5], dtype=np.int32), np.array([0, 3]), np.array([0, 1]))
    batch = PackedBatch.of(sentence, np.zeros(1, dtype=np.int64))
    start = model.context.start(1)
    drawn = (
        torch.randn_like(t) if t.is_floating_point() else t for _ in range(2) for t in start.tensors
    )
    contexts = (Rows(tuple(islice(drawn, len(start.tensors)))) for _ in range(2))
    one, other = (model.unroll(batch, context).hidden for context in contexts)
    assert model.fusion.hidden_depends_on_context == (not torch.equal(one, other))
