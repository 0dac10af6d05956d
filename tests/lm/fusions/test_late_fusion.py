"""Late fusion in the recurrence: what sees the context, and what cannot have it."""

import pytest
import torch
from torch import Tensor

from lm.fusions.late_fusion import LateFusion
from lm.recurrences import CIFG, LSTM, Recurrence


class HTanh(Recurrence):
    """A state of one tensor."""

    gates = tensors = 1


def test_a_cell_without_memory_and_output_gate_is_refused() -> None:
    with pytest.raises(ValueError, match=r"memory cell and an output gate, found HTanh; choose l"):
        LateFusion(3, HTanh(2, 4, 1))


@torch.no_grad()
@pytest.mark.parametrize("kind", [LSTM, CIFG])
@pytest.mark.parametrize("layers", [1, 2])
def test_only_the_top_hidden_state_sees_the_context(kind: type[LSTM | CIFG], layers: int) -> None:
    torch.manual_seed(0)
    cells = kind(3, 4, layers)
    fusion = LateFusion(5, cells)
    before = tuple(torch.randn(2, 4) for _ in cells.start(2))
    words, value = cells.project(torch.randn(2, 3)), torch.randn(2, 5)
    plain = cells.step(words, before)
    *others, h, c = fusion.step(cells, words, before, fusion.share(cells, value))
    torch.testing.assert_close((*others, c), (*plain[:-2], plain[-1]))
    w_p_p = value @ fusion.projection.weight.T
    r = torch.sigmoid(fusion.gate(w_p_p) + c @ fusion.memory_gate.weight.T)
    o = plain[-2] / torch.tanh(c)
    torch.testing.assert_close(h, o * torch.tanh(c + r * w_p_p))


@torch.no_grad()
@pytest.mark.parametrize("kind", [LSTM, CIFG])
def test_without_context_the_output_is_that_of_the_recurrence(kind: type[LSTM | CIFG]) -> None:
    """W_p 0 = 0, whatever the gate."""
    torch.manual_seed(0)
    cells = kind(3, 4, 1)
    fusion, sizes = LateFusion(5, cells), (2, 2, 1)
    words, share = cells.project(torch.randn(5, 3)), fusion.share(cells, torch.zeros(5, 5))
    found = fusion.unroll(cells, words, cells.start(2), sizes=sizes, share=share)
    torch.testing.assert_close(found, cells.unroll(words, cells.start(2), sizes))


def test_what_does_not_depend_on_the_words_is_computed_once_for_a_sentence() -> None:
    cells = LSTM(3, 4, 1)
    fusion, calls = LateFusion(5, cells), []

    def called(*_: object) -> None:
        calls.append(1)

    fusion.gate.register_forward_hook(called)
    fusion.projection.register_forward_hook(called)
    share: Tensor = fusion.share(cells, torch.randn(2, 5))
    words = cells.project(torch.randn(6, 3))
    rows = share[torch.tensor([0, 1, 0, 1, 0, 1])]
    fusion.unroll(cells, words, cells.start(2), sizes=(2, 2, 2), share=rows)
    assert len(calls) == 2
