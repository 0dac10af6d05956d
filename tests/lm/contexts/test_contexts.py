"""What each of the contexts keeps from sentence to sentence."""

import pytest
import torch
from torch import Tensor, nn

from lm.contexts import Context, NoContext
from lm.contexts.carried_state import CarriedState
from lm.contexts.last_hidden import LastHidden
from lm.contexts.sentence_recurrence import SentenceRecurrence
from lm.model import n_parameters
from lm.recurrences import CIFG, LSTM
from lm.rows import Rows

WORDS = nn.Embedding(11, 3)


def hierarchical() -> SentenceRecurrence:
    torch.manual_seed(0)
    return SentenceRecurrence(WORDS, LSTM(1, 5, 2))


def all_kinds() -> list[Context]:
    cell = CIFG(1, 5, 2)
    return [*(kind(WORDS, cell) for kind in (NoContext, LastHidden, CarriedState)), hierarchical()]


@pytest.mark.parametrize("context", all_kinds(), ids=lambda c: type(c).__name__)
def test_values_have_the_width_that_the_context_states(context: Context) -> None:
    start = context.start(4)
    assert len(start) == 4
    assert context.value(start).shape == (4, context.width)


@pytest.mark.parametrize("context", all_kinds()[1:], ids=lambda c: type(c).__name__)
def test_every_row_of_a_batch_is_advanced_by_itself(context: Context) -> None:
    torch.manual_seed(1)
    given = Rows(tuple(map(torch.randn_like, context.start(4).tensors)))
    hierarchical = isinstance(context, SentenceRecurrence)
    summary = Rows.of(torch.randn(4, 3)) if hierarchical else given.take(torch.arange(4).flip(0))
    together = context.advance(given, summary)
    rows = [slice(i, i + 1) for i in range(4)]
    alone = Rows.cat([context.advance(given.take(i), summary.take(i)) for i in rows])
    torch.testing.assert_close(together.tensors, alone.tensors)


def test_a_document_begins_with_a_learned_hidden_state() -> None:
    context = LastHidden(WORDS, CIFG(1, 5, 2))
    assert n_parameters(context) == 5
    start = context.start(3)
    assert torch.equal(start.tensors[0], context.first.expand(3, 5))
    (gradient,) = torch.autograd.grad(context.value(start).sum(), context.first)
    assert torch.equal(gradient, torch.full((5,), 3.0))


def test_a_document_begins_with_zero_states_where_states_are_carried() -> None:
    context = CarriedState(WORDS, CIFG(1, 5, 2))
    assert n_parameters(context) == 0
    start = context.start(2)
    assert len(start.tensors) == 2 * 2
    assert torch.equal(context.value(start), torch.zeros(2, 2 * 2 * 5))


@pytest.mark.parametrize("kind", [LastHidden, CarriedState])
def test_the_previous_sentence_alone_is_kept(kind: type[LastHidden | CarriedState]) -> None:
    context = kind(WORDS, LSTM(1, 5, 1))
    summary = Rows.of(torch.randn(2, context.width))
    assert torch.equal(context.advance(context.start(2), summary).tensors[0], summary.tensors[0])


def walk(context: Context, summaries: list[Tensor]) -> Rows:
    state = context.start(1)
    for summary in summaries:
        state = context.advance(state, Rows.of(summary))
    return state


def test_a_sentence_recurrence_is_its_cell_run_over_the_sentences() -> None:
    context = hierarchical()
    summaries = list(torch.randn(3, 1, 3))
    state = context.upper.start(1)
    for summary in summaries:
        state = context.upper.step(context.upper.project(summary), state)
    torch.testing.assert_close(context.value(walk(context, summaries)), context.upper.output(state))


def test_a_sentence_recurrence_remembers_all_earlier_sentences_and_their_order() -> None:
    context = hierarchical()
    a, b, c = 3 * torch.randn(3, 1, 3)
    values = [context.value(walk(context, s)) for s in ([a, b, c], [b, a, c], [b, c], [c])]
    for i, value in enumerate(values):
        assert all(not torch.allclose(value, other, rtol=0, atol=1e-3) for other in values[:i])


def test_the_word_level_receives_the_sentence_level_as_data() -> None:
    context = hierarchical()
    words = torch.randn(1, 3)
    state = walk(context, [words, words])
    inputs = list(context.upper.parameters())

    def taught(loss: Tensor) -> list[bool]:
        gradients = torch.autograd.grad(
            loss, inputs, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        return [bool(gradient.any()) for gradient in gradients]

    assert not context.value(state).requires_grad
    own = taught(context.next_word_logits(state).square().sum())
    assert own == [True] * len(inputs)


def test_before_any_sentence_only_the_bias_predicts_the_next_sentences_words() -> None:
    context = hierarchical()
    logits = context.next_word_logits(context.start(2))
    torch.testing.assert_close(logits, context.next_words.bias.expand(2, 11))
