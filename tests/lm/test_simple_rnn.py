"""The simple cell against scalar arithmetic, and its parameters."""

import math

import torch

from lm.model import n_parameters
from lm.simple_rnn import SimpleRNN

Vector = list[float]


def dot(row: Vector, vector: Vector) -> float:
    return math.fsum(a * b for a, b in zip(row, vector, strict=True))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_a_simple_cell_equals_a_scalar_computation() -> None:
    torch.manual_seed(7)
    cell = SimpleRNN(3, 4, 2)
    state, h = cell.zeros(1), [[0.0] * 4] * 2
    assert len(state) == 2
    for x in torch.randn(4, 1, 3):
        state = cell.step(cell.project(x), state)
        u = x[0].tolist()
        for layer in range(2):
            below, recurrent, bias = (
                p[layer].tolist() for p in (cell.lower, cell.recurrent, cell.bias)
            )
            u = h[layer] = [
                sigmoid(dot(below[unit], u) + dot(recurrent[unit], h[layer]) + bias[unit])
                for unit in range(4)
            ]
        torch.testing.assert_close(torch.cat(state), torch.tensor(h))


def test_a_simple_cell_has_two_matrices_and_a_bias() -> None:
    d, H = 7, 5
    assert n_parameters(SimpleRNN(d, H, 2)) == H * (d + H + 1) + H * (2 * H + 1)
