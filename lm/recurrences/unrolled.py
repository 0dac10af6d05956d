"""An LSTM layer over packed sentences, with its gradient written out.

Derivatives that do not depend on later steps are computed for all positions at once, and the
recurrent weight's gradient is one product: twice as fast on a CPU as autograd.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from lm.products import padded, rounded

Sizes = tuple[int, ...]


class LSTMLayer(torch.autograd.Function):
    """(h, c): (N, H) each, of all positions of packed sentences.

    projected: (N, 4H) shares of the inputs in the pre-activations, gates in the order
    i, f, o, g; h_0, c_0: (B, H); weight: (4H, H); sizes: rows alive at each time step.
    Products run in the dtype of `projected`, everything else in float32.
    """

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, h_0: Tensor, c_0: Tensor, weight: Tensor, sizes: Sizes
    ) -> tuple[Tensor, Tensor]:
        """One pass over the time steps; O(N · H²)."""
        wide = weight.shape[1]
        low = weight.to(projected.dtype).T.contiguous()
        gates = projected.float()
        h_all, c_all = gates.new_empty(len(gates), wide), gates.new_empty(len(gates), wide)
        h, c, begin = h_0, c_0, 0
        for size in sizes:
            own = slice(begin, begin + size)
            z = gates[own]
            z += h[:size].to(low.dtype) @ low
            i, f, o = z[:, : 3 * wide].sigmoid_().chunk(3, dim=1)
            g = z[:, 3 * wide :].tanh_()
            torch.mul(f, c[:size], out=c_all[own])
            c_all[own].addcmul_(i, g)
            c = c_all[own]
            torch.tanh(c, out=h_all[own])
            h = h_all[own].mul_(o)
            begin += size
        ctx.save_for_backward(gates, h_all, c_all, h_0, c_0, weight)
        ctx.sizes, ctx.dtype = sizes, projected.dtype
        return h_all, c_all

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time; the recurrent weight's gradient is one (4H, N)·(N, H) product."""
        gates, h_all, c_all, h_0, c_0, weight = ctx.saved_tensors
        sizes, wide = ctx.sizes, weight.shape[1]
        d_h, d_c = gradients
        i, f, o, g = gates.chunk(4, dim=1)
        t = c_all.tanh()
        to_c = o * (1 - t * t)
        share = torch.cat(
            [i * (1 - i) * g, f * (1 - f) * before_each(c_all, c_0, sizes), i * (1 - g * g)], dim=1
        )
        share_o = o * (1 - o) * t
        low = weight.to(ctx.dtype)
        d_z = gates.new_empty(rounded(len(gates), low), 4 * wide)
        d_z[len(gates) :] = 0.0
        carry_h, carry_c = torch.zeros_like(h_0), torch.zeros_like(c_0)
        end = len(gates)
        for size in reversed(sizes):
            own = slice(end - size, end)
            dh = d_h[own] + carry_h[:size]
            dc = torch.addcmul(d_c[own] + carry_c[:size], dh, to_c[own])
            z = d_z[own]
            torch.mul(dc, share[own, :wide], out=z[:, :wide])
            torch.mul(dc, share[own, wide : 2 * wide], out=z[:, wide : 2 * wide])
            torch.mul(dh, share_o[own], out=z[:, 2 * wide : 3 * wide])
            torch.mul(dc, share[own, 2 * wide :], out=z[:, 3 * wide :])
            carry_h[:size] = z.to(low.dtype) @ low
            torch.mul(dc, f[own], out=carry_c[:size])
            end -= size
        d_low = d_z.to(ctx.dtype)
        before = before_each(h_all, h_0, sizes).to(ctx.dtype)
        d_weight = d_low.T @ (before if len(before) == len(d_low) else padded(before))
        return d_low[: len(gates)], carry_h, carry_c, d_weight.float(), None


def before_each(states: Tensor, first: Tensor, sizes: Sizes) -> Tensor:
    """The state (N, H) that each position started from: one step earlier, or `first`."""
    parts, begin = [first[: sizes[0]]], 0
    for size, following in pairwise(sizes):
        parts.append(states[begin : begin + following])
        begin += size
    return torch.cat(parts)


Layer = Callable[[Tensor, Tensor, Tensor, Tensor, Sizes], tuple[Tensor, Tensor]]
lstm_layer: Layer = LSTMLayer.apply
