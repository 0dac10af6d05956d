"""The gated unit against scalar arithmetic, and its parameters."""

import math

import torch

from lm.gru import GRU
from lm.model import n_parameters

Vector = list[float]


def dot(row: Vector, vector: Vector) -> float:
    return math.fsum(a * b for a, b in zip(row, vector, strict=True))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_a_gated_unit_equals_a_scalar_computation() -> None:
    """Chung et al. 2014, eqs. 5–8."""
    torch.manual_seed(8)
    cell = GRU(3, 4, 1)
    torch.nn.init.normal_(cell.bias[0])
    below, recurrent = cell.lower[0].tolist(), cell.recurrent[0].tolist()
    candidate, bias = cell.candidate[0].tolist(), cell.bias[0].tolist()
    state, h = cell.zeros(1), [0.0] * 4
    for x in torch.randn(4, 1, 3):
        state = cell.step(cell.project(x), state)
        u = x[0].tolist()
        z, r = (
            [sigmoid(dot(below[i], u) + dot(recurrent[i], h) + bias[i]) for i in rows]
            for rows in (range(4), range(4, 8))
        )
        kept = [a * b for a, b in zip(r, h, strict=True)]
        g = [
            math.tanh(dot(below[8 + i], u) + dot(candidate[i], kept) + bias[8 + i])
            for i in range(4)
        ]
        h = [(1 - z[i]) * h[i] + z[i] * g[i] for i in range(4)]
        torch.testing.assert_close(state[0], torch.tensor([h]))


def test_a_gated_unit_has_three_gates_of_two_matrices_and_a_bias() -> None:
    d, H = 7, 5
    assert n_parameters(GRU(d, H, 2)) == 3 * H * (d + H + 1) + 3 * H * (2 * H + 1)
