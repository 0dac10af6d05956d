"""Where contexts enter: in the parts, and by what the hidden states see of them."""

import numpy as np
import pytest
import torch

from lm.batches import Packed
from lm.corpus import Corpus
from lm.fusions import Fusion, InitialState, Input, Output
from lm.model import Config, DocumentLM
from lm.recurrence import CIFG, LSTM
from lm.zoo import ZOO


def test_without_fusion_a_sentence_begins_in_the_zero_state_and_nothing_is_added() -> None:
    fusion, cell = Fusion(), LSTM(3, 4, 2)
    value = torch.randn(2, 0)
    assert all(torch.equal(tensor, torch.zeros(2, 4)) for tensor in fusion.initial(cell, value))
    assert fusion.input_columns(5) == fusion.output_columns(5) == 0
    assert fusion.drive(cell, value, 3) is fusion.at_output(value) is None


def test_an_initial_state_is_the_carried_tensors_in_their_order() -> None:
    cell = CIFG(3, 4, 2)
    carried = tuple(torch.randn(2, 4) for _ in range(4))
    split = InitialState().initial(cell, torch.cat(carried, dim=1))
    assert all(torch.equal(a, b) for a, b in zip(split, carried, strict=True))


def test_a_driven_projection_is_that_of_the_concatenated_input() -> None:
    torch.manual_seed(0)
    cell, fusion = CIFG(3 + 4, 4, 2), Input()
    assert fusion.input_columns(4) == 4
    x, value = torch.randn(5, 3), torch.randn(5, 4)
    drive = fusion.drive(cell, value, 3)
    assert drive is not None
    together = cell.project(torch.cat([x, value], dim=1))
    torch.testing.assert_close(cell.project(x) + drive, together)


def test_the_output_receives_the_value_itself() -> None:
    value = torch.randn(2, 4)
    assert Output().at_output(value) is value
    assert Output().output_columns(4) == 4


@pytest.mark.parametrize("name", sorted(ZOO))
def test_hidden_states_depend_on_the_context_exactly_where_the_fusion_says_so(name: str) -> None:
    torch.manual_seed(1)
    model = DocumentLM(Config(name, 9, 3, 4))
    sentence = Corpus(np.array([3, 7, 5], dtype=np.int32), np.array([0, 3]), np.array([0, 1]))
    batch = Packed.of(sentence, np.zeros(1, dtype=np.int64))
    values = torch.randn(2, 1, model.context.width)
    one, other = (model.unroll(batch, value)[0] for value in values)
    assert model.fusion.touches_hidden == (not torch.equal(one, other))
