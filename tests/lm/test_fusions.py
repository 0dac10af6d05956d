"""Where contexts enter: in the parts, and by what the hidden states see of them."""

import numpy as np
import pytest
import torch

from lm.batches import PackedBatch
from lm.corpus import Corpus
from lm.fusions import InitialState, Input, NoFusion, Output
from lm.model import Config, DocumentLM
from lm.recurrence import CIFG, LSTM
from lm.rows import Rows
from lm.zoo import ZOO


def test_without_fusion_a_sentence_begins_in_the_zero_state_and_nothing_is_added() -> None:
    cell, value = LSTM(3, 4, 2), torch.randn(2, 5)
    fusion = NoFusion(5, cell)
    state = fusion.initial(cell, 2, lambda: value)
    assert all(torch.equal(tensor, torch.zeros(2, 4)) for tensor in state)
    assert fusion.input_columns == fusion.output_columns == 0
    assert fusion.share(cell, value) is fusion.output(value, lambda: value)[1] is None


def test_an_initial_state_is_the_carried_tensors_in_their_order() -> None:
    cell = CIFG(3, 4, 2)
    carried = tuple(torch.randn(2, 4) for _ in range(4))
    joined = torch.cat(carried, dim=1)
    split = InitialState(16, cell).initial(cell, 2, lambda: joined)
    assert all(torch.equal(a, b) for a, b in zip(split, carried, strict=True))


def test_an_initial_state_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a value of 16 columns, found 4"):
        InitialState(4, CIFG(3, 4, 2))


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
    model = DocumentLM(Config(name, 9, 3, 4))
    sentence = Corpus(np.array([3, 7, 5], dtype=np.int32), np.array([0, 3]), np.array([0, 1]))
    batch = PackedBatch.of(sentence, np.zeros(1, dtype=np.int64))
    columns = model.context.start(1).tensors[0].shape[1]
    contexts = (Rows.of(torch.randn(1, columns)) for _ in range(2))
    one, other = (model.unroll(batch, context).hidden for context in contexts)
    assert model.fusion.hidden_depends_on_context == (not torch.equal(one, other))
