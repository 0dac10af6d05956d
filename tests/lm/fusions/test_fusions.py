"""Where contexts enter: in the parts, and by what the hidden states see of them."""

import math

import numpy as np
import pytest
import torch
from support.models import config_of
from torch import Tensor, nn

from lm.batches import PackedBatch
from lm.contexts import NoContext
from lm.contexts.carried_state import CarriedState
from lm.contexts.last_hidden import LastHidden
from lm.corpus import Corpus
from lm.fusions import (
    InitialState,
    Input,
    InputMerge,
    InputResidual,
    InputSum,
    Merge,
    NoFusion,
    Output,
    Value,
)
from lm.model import Config, DocumentLM
from lm.recurrences import CIFG, LSTM, Recurrence
from lm.rows import Rows
from lm.tiny_models import context_after, read_by_words
from lm.vocabulary import START
from lm.zoo import ZOO


def dot(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def no_words() -> Tensor:
    raise AssertionError("embeddings are computed for fusions that read them")


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
    assert fusion.share(cell, value) is None
    assert fusion.output(value, lambda: value, lambda: value)[1] is None


def test_an_initial_state_is_the_carried_tensors_in_their_order() -> None:
    cell = CIFG(3, 4, 2)
    context = CarriedState(nn.Embedding(3, 2), cell)
    carried = Rows.of(*(torch.randn(2, 4) for _ in range(4)))
    assert InitialState(context.width, cell).initial(cell, context, carried) == carried.tensors


def test_an_initial_state_is_refused_from_a_context_without_one_whatever_its_size() -> None:
    cell = HTanh(3, 4, 1)
    context = LastHidden(nn.Embedding(3, 2), cell)
    assert context.width == sum(tensor.shape[1] for tensor in cell.start(1))
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


def test_a_sum_is_added_to_the_input_itself() -> None:
    torch.manual_seed(0)
    cell = CIFG(3, 4, 2)
    fusion = InputSum(5, cell)
    assert fusion.input_columns == fusion.output_columns == 0
    x, value = torch.randn(6, 3), torch.randn(6, 5)
    summed = cell.project(x + value @ fusion.projection.weight.T)
    torch.testing.assert_close(cell.project(x) + fusion.share(cell, value), summed)


def test_the_output_receives_the_value_itself() -> None:
    value = torch.randn(2, 4)
    fusion = Output(4, LSTM(3, 4, 2))
    assert fusion.output(torch.zeros(2, 4), lambda: value, lambda: value)[1] is value
    assert fusion.output_columns == 4


def test_a_sum_of_inputs_is_the_embedding_and_the_projected_value() -> None:
    """s(x, c) = x + W c in eq. 4 of Ji et al. 2016."""
    torch.manual_seed(2)
    fusion, cell = InputSum(4, CIFG(3, 5, 2)), CIFG(3, 5, 2)
    assert fusion.input_columns == 0
    x, value = torch.randn(6, 3), torch.randn(6, 4)
    share = fusion.share(cell, value)
    expected = cell.project(x + value @ fusion.projection.weight.T)
    torch.testing.assert_close(cell.project(x) + share, expected)


def test_a_merge_is_a_tanh_layer_over_hidden_state_and_value() -> None:
    """Eq. 12 of Ji et al. 2016, for one position."""
    torch.manual_seed(3)
    hidden, value = torch.randn(1, 3), torch.randn(1, 2)
    for fusion in (Merge(2, LSTM(4, 3, 1)), InputMerge(2, LSTM(4, 3, 1))):
        own = fusion.merge if isinstance(fusion, InputMerge) else fusion
        w_h, b, w_c = (p.tolist() for p in own.parameters())
        expected = [
            math.tanh(dot(w_h[n], hidden[0].tolist()) + dot(w_c[n], value[0].tolist()) + b[n])
            for n in range(3)
        ]
        features, rest = fusion.output(hidden, lambda: value, words=no_words)
        torch.testing.assert_close(features, torch.tensor([expected]))
        assert rest is None
        assert fusion.output_columns == 0
        assert fusion.input_columns == (2 if isinstance(fusion, InputMerge) else 0)


def test_a_residual_adds_value_and_word_to_the_hidden_state_under_a_tanh() -> None:
    """r = tanh(h + Q c + P x) in the program `dam`, for one position."""
    torch.manual_seed(4)
    hidden, value, word = torch.randn(1, 3), torch.randn(1, 2), torch.randn(1, 4)
    fusion = InputResidual(2, LSTM(4, 3, 1))
    q, p = (matrix.tolist() for matrix in fusion.parameters())
    expected = [
        math.tanh(float(hidden[0, n]) + dot(q[n], value[0].tolist()) + dot(p[n], word[0].tolist()))
        for n in range(3)
    ]
    features, rest = fusion.output(hidden, lambda: value, lambda: word)
    torch.testing.assert_close(features, torch.tensor([expected]))
    assert rest is None
    assert fusion.input_columns == 2


@torch.no_grad()
def test_a_fusion_receives_the_embeddings_of_the_words_that_the_positions_have_read() -> None:
    model = DocumentLM(Config("dam", 9, 3, 4)).eval()
    seen = []

    def output(hidden: Tensor, value: Value, words: Value) -> tuple[Tensor, None]:
        seen.append(words())
        return hidden, None

    model.fusion.output = output  # type: ignore[method-assign]
    context = model.context.start(1)
    model.features(read_by_words(model, [3, 7, 5], context), context)
    assert torch.equal(seen[0], model.embedding(torch.tensor([START, 3, 7, 5])))


@pytest.mark.parametrize("name", sorted(ZOO))
def test_hidden_states_depend_on_the_context_exactly_where_the_fusion_says_so(name: str) -> None:
    torch.manual_seed(1)
    model = DocumentLM(config_of(name, 9, 3, 4)).eval()
    sentence = Corpus(np.array([3, 7, 5], dtype=np.int32), np.array([0, 3]), np.array([0, 1]))
    batch = PackedBatch.of(sentence, np.zeros(1, dtype=np.int64))
    contexts = (context_after(model, [[3, 8, word]]) for word in (5, 6))
    one, other = (model.unroll(batch, context).hidden for context in contexts)
    depends = model.fusion.hidden_depends_on_context and model.context.sentences != 0
    assert depends == (not torch.equal(one, other))
