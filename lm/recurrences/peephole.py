"""The LSTM with peepholes from each memory cell to its own gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.products import linear, padded, rounded
from lm.recurrences import Recurrence, State, uniform
from lm.recurrences.unrolled import Sizes, before_each


class Peephole(Recurrence):
    """LSTM with diagonal peepholes (Graves 2009), the cell of Ghosh et al. 2016, eq. 1.

    i, f = σ(W u + U h + w∘c + b); c' = f∘c + i∘tanh(W_c u + U_c h + b_c);
    o = σ(W_o u + U_o h + w_o∘c' + b_o); h' = o∘tanh(c'). The peepholes w are vectors: a gate sees
    the memory cell of its own unit. Parameters: 4H(d + H) + 7H a layer; the forget bias starts
    at 1, the peepholes at 0, where the cell is that of `LSTM`.
    """

    gates = 4
    output_gate = True

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(uniform(4 * hidden, hidden) for _ in range(layers))
        self.peephole = nn.ParameterList(torch.zeros(3 * hidden) for _ in range(layers))
        for bias in self.bias:
            bias.data[hidden : 2 * hidden] = 1.0

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory c' and output gate o, which sees c'; pre-activations in the order i, f, o, g."""
        h, c = state
        z = F.linear(h, self.recurrent[layer]).to(c.dtype) + projected
        to_i, to_f, to_o = self.blocks(self.peephole[layer])
        z_i, z_f, z_o, z_g = z.chunk(4, dim=1)
        i, f = torch.sigmoid(z_i + to_i * c), torch.sigmoid(z_f + to_f * c)
        c = torch.addcmul(f * c, i, torch.tanh(z_g))
        return c, torch.sigmoid(z_o + to_o * c)

    def unroll(self, projected: Tensor, state: State, sizes: tuple[int, ...]) -> State:
        """Layer by layer, each with its gradient written out."""
        states: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                projected = linear(states[-2], self.lower[layer], self.bias[layer])
            h_0, c_0 = state[2 * layer : 2 * layer + 2]
            weights = self.recurrent[layer], self.peephole[layer]
            states += _layer(projected, h_0, c_0, *weights, sizes)
        return tuple(states)


class PeepholeLayer(torch.autograd.Function):
    """(h, c): (N, H) each, of all positions of packed sentences.

    As `lm.recurrences.unrolled.LSTMLayer`, with peepholes: (3H,) of the gates i, f and o.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        h_0: Tensor,
        c_0: Tensor,
        weight: Tensor,
        peepholes: Tensor,
        sizes: Sizes,
    ) -> tuple[Tensor, Tensor]:
        """One pass over the time steps; O(N · H²)."""
        wide = weight.shape[1]
        low = weight.to(projected.dtype).T.contiguous()
        to_i, to_f, to_o = peepholes.float().chunk(3)
        gates = projected.float()
        h_all, c_all = gates.new_empty(len(gates), wide), gates.new_empty(len(gates), wide)
        h, c, begin = h_0, c_0, 0
        for size in sizes:
            own = slice(begin, begin + size)
            z = gates[own]
            z += h[:size].to(low.dtype) @ low
            i, f, o, g = z.chunk(4, dim=1)
            i.addcmul_(to_i, c[:size]).sigmoid_()
            f.addcmul_(to_f, c[:size]).sigmoid_()
            g.tanh_()
            torch.mul(f, c[:size], out=c_all[own])
            c_all[own].addcmul_(i, g)
            c = c_all[own]
            o.addcmul_(to_o, c).sigmoid_()
            torch.tanh(c, out=h_all[own])
            h = h_all[own].mul_(o)
            begin += size
        ctx.save_for_backward(gates, h_all, c_all, h_0, c_0, weight, peepholes)
        ctx.sizes, ctx.dtype = sizes, projected.dtype
        return h_all, c_all

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time; the weights' gradients are products over all positions."""
        gates, h_all, c_all, h_0, c_0, weight, peepholes = ctx.saved_tensors
        sizes, wide = ctx.sizes, weight.shape[1]
        to_i, to_f, to_o = peepholes.float().chunk(3)
        d_h, d_c = gradients
        i, f, o, g = gates.chunk(4, dim=1)
        t, c_before = c_all.tanh(), before_each(c_all, c_0, sizes)
        share_o = o * (1 - o) * t
        to_c = o * (1 - t * t) + share_o * to_o  # through h, and through the output gate
        share = torch.stack([i * (1 - i) * g, f * (1 - f) * c_before, i * (1 - g * g)])
        carried = f + share[0] * to_i + share[1] * to_f
        low = weight.to(ctx.dtype)
        d_z = gates.new_empty(rounded(len(gates), low), 4, wide)
        d_z[len(gates) :] = 0.0
        carry_h, carry_c = torch.zeros_like(h_0), torch.zeros_like(c_0)
        end = len(gates)
        for size in reversed(sizes):
            own = slice(end - size, end)
            dh = d_h[own] + carry_h[:size]
            dc = torch.addcmul(d_c[own] + carry_c[:size], dh, to_c[own])
            z = d_z[own]
            for gate, row in ((0, 0), (1, 1), (3, 2)):
                torch.mul(dc, share[row, own], out=z[:, gate])
            torch.mul(dh, share_o[own], out=z[:, 2])
            carry_h[:size] = z.view(size, -1).to(low.dtype) @ low
            torch.mul(dc, carried[own], out=carry_c[:size])
            end -= size
        own_z = d_z[: len(gates)]
        d_peepholes = torch.cat(
            [(own_z[:, k] * cell).sum(0) for k, cell in enumerate((c_before, c_before, c_all))]
        )
        d_low = d_z.view(len(d_z), -1).to(ctx.dtype)
        before = before_each(h_all, h_0, sizes).to(ctx.dtype)
        d_weight = d_low.T @ (before if len(before) == len(d_low) else padded(before))
        return d_low[: len(gates)], carry_h, carry_c, d_weight.float(), d_peepholes, None


Layer = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Sizes], tuple[Tensor, Tensor]]
_layer: Layer = PeepholeLayer.apply
