"""The states in which earlier sentences ended: all of them, in order, of all layers."""

import pytest
import torch

from lm.contexts.final_states import FinalStates
from lm.model import DocumentLM
from lm.rows import Rows
from lm.tiny_models import context_after, read_by_words, tiny_model
from lm.zoo import ZOO


def model_of(layers: int = 2) -> DocumentLM:
    return tiny_model(ZOO["dam"], layers=layers)


@torch.no_grad()
def test_the_state_of_all_layers_after_every_last_word_is_kept() -> None:
    model = model_of()
    documents = [[3, 5], [], [4, 7, 6]]  # the second is empty: its state is that after <s>
    expected, context = [], model.context.start(1)
    for sentence in documents:
        states = [model.start(context, model.word_inputs())]
        for word in sentence:
            states.append(model.step(states[-1], torch.tensor([word]), model.word_inputs()))
        h_1, _, h_2, _ = states[-1].recurrent
        expected.append(torch.cat([h_1, h_2], dim=1)[0])
        read = read_by_words(model, sentence, context)
        context = model.context.advance(context, model.context.summary(read))
    kept, mask = context.tensors
    torch.testing.assert_close(kept[0], torch.stack(expected))
    assert mask.all()


@torch.no_grad()
def test_rows_of_a_batch_grow_by_one_state_each_and_lose_their_padding() -> None:
    model = model_of(1)
    empty, one, two = (context_after(model, [[3, 4], [5]][:n]) for n in range(3))
    padded = Rows.cat([empty, context_after(model, [[3]] * 5)]).take(slice(0, 1))
    assert padded.tensors[0].shape[1] == 5
    both = Rows.cat([two, padded, one])
    summary = Rows.of(torch.randn(3, 8))
    states, mask = model.context.advance(both, summary).tensors
    assert mask.tolist() == [[True] * 3, [True, False, False], [True, True, False]]
    for row, (before, count) in enumerate([(two, 2), (empty, 0), (one, 1)]):
        torch.testing.assert_close(states[row, :count], before.tensors[0][0])
        torch.testing.assert_close(states[row, count], summary.tensors[0][row])
        assert not states[row, count + 1 :].any()


@torch.no_grad()
def test_a_single_state_is_the_value_whatever_the_query() -> None:
    model = model_of()
    context = context_after(model, [[3, 5, 4]])
    value = model.context.row_values(model.context.prepared(context), torch.randn(1, 16))
    torch.testing.assert_close(value, context.tensors[0][:, 0])


def test_the_memory_needs_the_states_of_all_layers() -> None:
    model = model_of()
    assert isinstance(model.context, FinalStates)
    assert model.context.width == 2 * 8
    assert model.order is None
    plain = tiny_model(ZOO["codclm"])
    read = read_by_words(plain, [3], plain.context.start(1))
    with pytest.raises(TypeError, match="only a context that reads layers"):
        model.context.summary(read)
