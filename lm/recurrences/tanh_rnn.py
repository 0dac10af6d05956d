"""The simple recurrent cell with the hyperbolic tangent."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.recurrences import Recurrence, State, uniform


class TanhRNN(Recurrence):
    """h' = tanh(W_x u + W_h h + b) (Elman 1990), as torch.nn.RNN has it.

    Parameters: H(d + H) + H a layer.
    """

    gates = 1
    tensors = 1

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(uniform(hidden, hidden) for _ in range(layers))

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """(h',) of one layer."""
        (h,) = state
        return (torch.tanh(projected.to(h.dtype) + F.linear(h, self.recurrent[layer])),)
