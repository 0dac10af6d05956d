"""Recurrent cells: torch's own, unrolling, written-out gradients, and sizes.

Their equations are compared with scalar code in `test_against_scalar.py`.
"""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from lm.composition import RECURRENCES, load
from lm.recurrences import OneHotHTanh, few_rows, gated
from lm.recurrences.gated import CIFG, LSTM

KINDS = {name: load(part) for name, part in RECURRENCES.items()}


@pytest.mark.parametrize(("layers", "compiled"), [(1, True), (2, True), (2, False)])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_unrolled_states_and_gradients_are_those_of_single_steps(
    kind: Any, layers: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where gradients are written out; five sentences of 6 to 1 words, one from zeros.

    compiled: whether the loops of a few rows are those of `lm.recurrences.few_rows`.
    """
    monkeypatch.setattr(few_rows, "MOST", 20 if compiled else 19)  # five rows of four units
    torch.manual_seed(3)
    cell = kind(5, 4, layers)
    for vector in (own for own in cell.parameters() if own.ndim == 1):
        torch.nn.init.normal_(vector)
    sizes = (5, 4, 3, 3, 1, 1)
    inputs, n = torch.randn(sum(sizes), 5), len(cell.start(1))
    start, direction = torch.randn(n, 5, 4), torch.randn(n, sum(sizes), 4)
    start[:, 0] = 0.0

    def run(unroll: Any) -> list[Tensor]:
        first, data = start.clone().requires_grad_(), inputs.clone().requires_grad_()
        states = torch.stack(unroll(cell, cell.project(data), tuple(first), sizes))
        loss = (states * direction).sum()
        return [states, *torch.autograd.grad(loss, [data, first, *cell.parameters()])]

    def by_steps(cell: Any, words: Tensor, state: Any, sizes: Any) -> tuple[Tensor, ...]:
        result = []
        for own in torch.split(words, sizes):
            state = cell.step(own, tuple(tensor[: len(own)] for tensor in state))
            result.append(state)
        return tuple(map(torch.cat, zip(*result, strict=True)))

    for unrolled, expected in zip(run(kind.unroll), run(by_steps), strict=True):
        torch.testing.assert_close(unrolled, expected, atol=1e-5, rtol=1e-4)


def test_the_loops_around_kernels_of_cuda_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """States and gradients; the kernels as torch documents `LSTMCell`, gates i, f, g, o."""

    def cell(z: Tensor, of_h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        i, f, g, o = (z + of_h).chunk(4, dim=1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        after = f * c + i * g
        return o * after.tanh(), after, torch.cat([i, f, g, o], dim=1)

    def back(
        d_h: Tensor, d_c: Tensor, c: Tensor, after: Tensor, gates: Tensor
    ) -> tuple[Tensor, Tensor]:
        (i, f, g, o), t = gates.chunk(4, dim=1), after.tanh()
        d = d_c + d_h * o * (1 - t * t)
        of_i, of_f, of_g = d * g * i * (1 - i), d * c * f * (1 - f), d * i * (1 - g * g)
        return torch.cat([of_i, of_f, of_g, d_h * t * o * (1 - o)], dim=1), d * f

    monkeypatch.setattr(gated, "_fused", cell)
    monkeypatch.setattr(gated, "_fused_back", back)
    sizes = (5, 4, 3, 3, 1, 1)
    shapes = (sum(sizes), 16), (5, 4), (5, 4), (16, 4)
    given = [torch.randn(shape, requires_grad=True) for shape in shapes]
    direction, result = torch.randn(2, sum(sizes), 4), []
    for layer, more in ((gated._fused_layer, ()), (gated._layer, (None,))):
        states = torch.stack(layer(*given, *more, sizes))
        result.append([states, *torch.autograd.grad((states * direction).sum(), given)])
    for own, expected in zip(*result, strict=True):
        torch.testing.assert_close(own, expected, atol=1e-5, rtol=1e-4)


def test_weights_start_in_the_ranges_that_their_papers_name() -> None:
    torch.manual_seed(4)
    d, H = 60, 40
    cifg, lstm = CIFG(d, H, 2), LSTM(d, H, 2)
    glorot = {n: math.sqrt(6 / (n + H)) for n in (d, H)}
    drawn = [(cifg.lower[0], glorot[d]), (cifg.lower[1], glorot[H]), (cifg.bias[0], (6 / H) ** 0.5)]
    drawn += [(cifg.recurrent[0], glorot[H]), (cifg.peephole[1], glorot[H])]
    drawn += [(lstm.lower[0], d**-0.5), (lstm.recurrent[1], H**-0.5)]
    for parameter, bound in drawn:
        assert 0.95 * bound < float(parameter.detach().abs().max()) <= bound
    expected = np.repeat([0.0, 1.0, 0.0, 0.0], H)  # forget gates start open
    np.testing.assert_array_equal(lstm.bias[1].detach(), expected)
    one_hot, embedding = OneHotHTanh(4, 4), torch.nn.Embedding(50, 4)
    one_hot.initialise(embedding)  # within one over the vocabulary, Lin et al. §4.3
    for weight in (*one_hot.parameters(), embedding.weight):
        assert 0.01 < float(weight.detach().abs().max()) <= 0.02
