"""Gradients that are written out against autograd through the step-by-step form."""

import numpy as np
import pytest
import torch
from torch import Tensor

from lm.recurrences import LSTM, Recurrence
from lm.recurrences.peephole import Peephole


@pytest.mark.parametrize("kind", [LSTM, Peephole])
@pytest.mark.parametrize("layers", [1, 2])
def test_states_and_gradients_equal_those_of_autograd_through_the_steps(
    layers: int, kind: type[Recurrence]
) -> None:
    torch.manual_seed(0)
    cell = kind(5, 7, layers)
    for vector in (own for own in cell.parameters() if own.ndim == 1):
        torch.nn.init.normal_(vector)
    lengths = np.array([6, 4, 4, 2, 1])
    sizes = tuple(int((lengths > n).sum()) for n in range(6))
    inputs = torch.randn(sum(sizes), 5)
    start = tuple(torch.randn(5, 7) for _ in range(2 * layers))
    direction = [torch.randn(sum(sizes), 7) for _ in range(2 * layers)]

    def run(unroll: object) -> tuple[list[Tensor], list[Tensor]]:
        first = tuple(tensor.clone().requires_grad_() for tensor in start)
        data = inputs.clone().requires_grad_()
        states = unroll(cell, cell.project(data), first, sizes)  # type: ignore[operator]
        loss = sum((s * d).sum() for s, d in zip(states, direction, strict=True))
        return list(states), list(torch.autograd.grad(loss, [data, *first, *cell.parameters()]))

    ours, our_gradients = run(kind.unroll)
    theirs, their_gradients = run(Recurrence.unroll)
    for a, b in zip(ours + our_gradients, theirs + their_gradients, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)
