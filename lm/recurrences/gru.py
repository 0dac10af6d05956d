"""The gated recurrent unit."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.recurrences import Recurrence, State, uniform


class GRU(Recurrence):
    """Gated recurrent unit of Chung et al. 2014, arXiv:1412.3555, eqs. 5–8.

    z, r = σ(W u + U h + b); g = tanh(W_g u + U_g (r∘h) + b_g); h' = (1 - z)∘h + z∘g. The reset
    gate acts before the product, unlike in torch.nn.GRU. Parameters: 3H(d + H) + 3H a layer.
    """

    gates = 3
    tensors = 1

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(uniform(2 * hidden, hidden) for _ in range(layers))
        self.candidate = nn.ParameterList(uniform(hidden, hidden) for _ in range(layers))

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """(h',) of one layer."""
        (h,) = state
        own, wide = projected.to(h.dtype), 2 * self.hidden
        z, r = torch.sigmoid(own[:, :wide] + F.linear(h, self.recurrent[layer])).chunk(2, dim=1)
        g = torch.tanh(own[:, wide:] + F.linear(r * h, self.candidate[layer]))
        return (torch.lerp(h, g, z),)
