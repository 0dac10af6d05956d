"""Cells with gates: LSTM, and its variants with peepholes.

The layers of LSTMs run over packed sentences with their gradient written out: derivatives that do
not depend on later steps are computed for all positions at once, and the recurrent weight's
gradient is one product. Forward and backward, on a core of an AMD EPYC, 32 sentences of 512 units
take 95 ms (155 by `torch.nn.LSTM` on packed sentences, 194 by single steps), five of 48 units 19 ms
(26 and 36); of 256 units it is as fast as single steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import padded
from lm.recurrences import Recurrence, Sizes, State, before_each, few_rows, uniform


class LSTM(Recurrence):
    """LSTM with separate input and forget gates, no peepholes (Gers et al. 2000).

    Parameters: 4H(d + H) + 4H a layer; the forget bias starts at 1. peephole: of each layer, (3H,)
    weights from memory cells to the gates i, f and o; here None.
    """

    gates = 4
    output_gate = True

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(uniform(4 * hidden, hidden) for _ in range(layers))
        for bias in self.bias:
            bias.data[hidden : 2 * hidden] = 1.0
        self.peephole: nn.ParameterList | list[None] = [None] * layers

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory c' = f∘c + i∘g and output gate o; i, f, o = σ(·), g = tanh(·)."""
        h, c = state
        z = F.linear(h, self.recurrent[layer]).to(c.dtype).add_(projected)
        i, f, o = torch.sigmoid(z[:, : 3 * self.hidden]).chunk(3, dim=1)
        return torch.addcmul(f * c, i, torch.tanh(z[:, 3 * self.hidden :])), o

    def unroll_layer(self, layer: int, projected: Tensor, state: State, sizes: Sizes) -> State:
        """States of one layer, with the gradient written out."""
        if projected.is_cuda and self.peephole[layer] is None:
            return _fused_layer(projected, *state, self.recurrent[layer], sizes)
        return _layer(projected, *state, self.recurrent[layer], self.peephole[layer], sizes)


class Peephole(LSTM):
    """LSTM with diagonal peepholes (Graves 2009), the cell of Ghosh et al. 2016, eq. 1.

    i, f = σ(W u + U h + w∘c + b); c' = f∘c + i∘tanh(W_c u + U_c h + b_c);
    o = σ(W_o u + U_o h + w_o∘c' + b_o); h' = o∘tanh(c'). Parameters: 4H(d + H) + 7H a layer; the
    forget bias starts at 1, the peepholes w at 0, where the cell is that of `LSTM`.
    """

    peephole: nn.ParameterList

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.peephole = nn.ParameterList(torch.zeros(3 * hidden) for _ in range(layers))

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory c' and output gate o, which sees c'; pre-activations in the order i, f, o, g."""
        h, c = state
        z = F.linear(h, self.recurrent[layer]).to(c.dtype) + projected
        to_i, to_f, to_o = self.blocks(self.peephole[layer])
        z_i, z_f, z_o, z_g = z.chunk(4, dim=1)
        i, f = torch.sigmoid(z_i + to_i * c), torch.sigmoid(z_f + to_f * c)
        c = torch.addcmul(f * c, i, torch.tanh(z_g))
        return c, torch.sigmoid(z_o + to_o * c)


class PackedLSTM(torch.autograd.Function):
    """(h, c): (N, H) each, of all positions of packed sentences.

    projected: (N, 4H) shares of the inputs in the pre-activations, gates in the order
    i, f, o, g; h_0, c_0: (B, H); weight: (4H, H); peepholes: (3H,) of the gates i, f and o, or
    None; sizes: rows alive at each time step. Products run in the dtype of `projected`, everything
    else in float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        h_0: Tensor,
        c_0: Tensor,
        weight: Tensor,
        peepholes: Tensor | None,
        sizes: Sizes,
    ) -> tuple[Tensor, Tensor]:
        """One pass over the time steps; O(N · H²)."""
        wide = weight.shape[1]
        low = weight.to(projected.dtype).T.contiguous()
        to_i, to_f, to_o = [None] * 3 if peepholes is None else peepholes.float().chunk(3)
        gates = projected.float()
        h_all, c_all = gates.new_empty(len(gates), wide), gates.new_empty(len(gates), wide)
        h, c, begin = h_0, c_0, 0
        for size in sizes:
            at = slice(begin, begin + size)
            z = gates[at]
            z += h[:size].to(low.dtype) @ low
            i, f, o, g = z.chunk(4, dim=1)
            if to_i is None or to_f is None:
                z[:, : 3 * wide].sigmoid_()
            else:
                i.addcmul_(to_i, c[:size]).sigmoid_()
                f.addcmul_(to_f, c[:size]).sigmoid_()
            g.tanh_()
            torch.mul(f, c[:size], out=c_all[at])
            c_all[at].addcmul_(i, g)
            c = c_all[at]
            if to_o is not None:
                o.addcmul_(to_o, c).sigmoid_()
            torch.tanh(c, out=h_all[at])
            h = h_all[at].mul_(o)
            begin += size
        ctx.save_for_backward(gates, h_all, c_all, h_0, c_0, weight, peepholes)
        ctx.sizes, ctx.dtype = sizes, projected.dtype
        return h_all, c_all

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time; the weights' gradients are products over all positions."""
        gates, h_all, c_all, h_0, c_0, weight, peepholes = ctx.saved_tensors
        sizes, wide = ctx.sizes, weight.shape[1]
        d_h, d_c = gradients
        i, f, o, g = gates.chunk(4, dim=1)
        t, c_before = c_all.tanh(), before_each(c_all, c_0, sizes)
        share = torch.cat([i * (1 - i) * g, f * (1 - f) * c_before, i * (1 - g * g)], dim=1)
        share_o = o * (1 - o) * t
        to_c, carried = o * (1 - t * t), f  # through h, and through the memory cell itself
        if peepholes is not None:
            to_i, to_f, to_o = peepholes.float().chunk(3)
            to_c = to_c + share_o * to_o
            carried = f + share[:, :wide] * to_i + share[:, wide : 2 * wide] * to_f
        low = weight.to(ctx.dtype)
        d_z = torch.empty_like(gates)
        carry_h, carry_c = torch.zeros_like(h_0), torch.zeros_like(c_0)
        end = len(gates)
        for size in reversed(sizes):
            at = slice(end - size, end)
            dh = d_h[at] + carry_h[:size]
            dc = torch.addcmul(d_c[at] + carry_c[:size], dh, to_c[at])
            z = d_z[at]
            torch.mul(dc, share[at, :wide], out=z[:, :wide])
            torch.mul(dc, share[at, wide : 2 * wide], out=z[:, wide : 2 * wide])
            torch.mul(dh, share_o[at], out=z[:, 2 * wide : 3 * wide])
            torch.mul(dc, share[at, 2 * wide :], out=z[:, 3 * wide :])
            carry_h[:size] = z.to(low.dtype) @ low
            torch.mul(dc, carried[at], out=carry_c[:size])
            end -= size
        d_peepholes = None
        if peepholes is not None:
            cells = zip(d_z.chunk(4, dim=1), (c_before, c_before, c_all), strict=False)
            d_peepholes = torch.cat([(d * cell).sum(0) for d, cell in cells])
        d_weight = _product_over_positions(d_z, before_each(h_all, h_0, sizes), ctx.dtype)
        return d_z.to(ctx.dtype), carry_h, carry_c, d_weight, d_peepholes, None


_layer: Callable[..., tuple[Tensor, Tensor]] = PackedLSTM.apply


class FusedLSTM(torch.autograd.Function):
    """`PackedLSTM` without peepholes on CUDA, where calls are what takes time.

    A step is its product, in float32 (TF32 if that is on), and the fused kernel of
    `torch.nn.LSTMCell`, which has the gates in the order i, f, g, o.
    """

    @staticmethod
    def forward(
        ctx: Any, projected: Tensor, h_0: Tensor, c_0: Tensor, weight: Tensor, sizes: Sizes
    ) -> tuple[Tensor, Tensor]:
        """One pass over the time steps; O(N · H²)."""
        matrix, steps = exchanged(weight, 0), []
        transposed, h, c = matrix.T, h_0.contiguous(), c_0.contiguous()
        with torch.autocast("cuda", enabled=False):
            for z in torch.split(exchanged(projected.float(), 1), list(sizes)):
                if len(z) < len(h):
                    h, c = h[: len(z)], c[: len(z)]
                h, c, gates = _fused(z, torch.mm(h, transposed), c)
                steps.append((h, c, gates))
        h_all, c_all, gates = (torch.cat(column) for column in zip(*steps, strict=True))
        ctx.save_for_backward(gates, h_all, c_all, h_0, c_0, matrix)
        ctx.sizes, ctx.dtype = sizes, projected.dtype
        return h_all, c_all

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time; the weight's gradient is a product over all positions."""
        gates, h_all, c_all, h_0, c_0, matrix = ctx.saved_tensors
        sizes, by_row = list(ctx.sizes), torch.contiguous_format
        d_start = torch.zeros_like(h_0), torch.zeros_like(c_0)
        d_hs, d_cs = (
            [first, *torch.split(d.float().clone(memory_format=by_row), sizes)]
            for first, d in zip(d_start, gradients, strict=True)
        )
        cs, zs, d_z = [c_0, *torch.split(c_all, sizes)], torch.split(gates, sizes), []
        for t in reversed(range(len(sizes))):
            d_h, d_c, c = d_hs[t], d_cs[t], cs[t]
            if sizes[t] < len(d_h):
                d_h, d_c, c = d_h[: sizes[t]], d_c[: sizes[t]], c[: sizes[t]]
            d, more = _fused_back(d_hs[t + 1], d_cs[t + 1], c, cs[t + 1], zs[t])
            d_c.add_(more)
            d_h.addmm_(d, matrix)
            d_z.append(d)
        d_all, before = torch.cat(d_z[::-1]), before_each(h_all, h_0, ctx.sizes)
        d_weight = (d_all.to(ctx.dtype).T @ before.to(ctx.dtype)).float()
        return exchanged(d_all, 1).to(ctx.dtype), *d_start, exchanged(d_weight, 0), None


_fused_layer: Callable[..., tuple[Tensor, Tensor]] = FusedLSTM.apply


def _fused(projected: Tensor, of_hidden: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """h', c' and the gates (B, 4H) of a step, by a kernel that torch does not document."""
    step: tuple[Tensor, Tensor, Tensor]
    step = torch.ops.aten._thnn_fused_lstm_cell.default(projected, of_hidden, c)
    return step


def _fused_back(
    d_h: Tensor, d_c: Tensor, c: Tensor, after: Tensor, gates: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the pre-activations (B, 4H) and of c; after: c'."""
    back = torch.ops.aten._thnn_fused_lstm_cell_backward_impl.default
    d, d_before, _ = back(d_h, d_c, c, after, gates, False)
    return d, d_before


def exchanged(stacked: Tensor, dim: int) -> Tensor:
    """Blocks of four gates i, f, o, g in the order i, f, g, o, or back."""
    i, f, third, fourth = stacked.chunk(4, dim=dim)
    return torch.cat([i, f, fourth, third], dim=dim)


class CIFG(Recurrence):
    """The cell of Ji et al.'s code: coupled gates (f = 1 - i), full-matrix peepholes.

    i = σ(W_xi u + W_hi h + W_ci c + b_i); c' = (1 - i)∘c + i∘tanh(W_xc u + W_hc h + b_c);
    o = σ(W_xo u + W_ho h + W_co c' + b_o); h' = o∘tanh(c').
    The output gate sees c' at the first word too, as in the library that the authors used
    (clab/cnn) since its commit cc08b107 of April 2016; `CIFG2015` is the cell before.
    Parameters: 3Hd + 5H² + 3H a layer. Weights start Glorot-uniform, biases U(±√(6/H)), as there.
    """

    gates = 3
    output_gate = True

    def __init__(self, inputs: int, hidden: int, layers: int = 2) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(_stacked(3, hidden, hidden) for _ in range(layers))
        self.peephole = nn.ParameterList(_stacked(2, hidden, hidden) for _ in range(layers))
        for layer in range(layers):
            self.lower[layer] = _stacked(3, hidden, self.lower[layer].shape[1])
            nn.init.uniform_(self.bias[layer], -((6 / hidden) ** 0.5), (6 / hidden) ** 0.5)

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory c' and output gate o of the coupled-gate cell; o sees the new c."""
        (h, c), begun = state, self.begun(state)
        to_i, to_o = self.blocks(self.peephole[layer])
        z = F.linear(h, self.recurrent[layer]).to(c.dtype).add_(projected)
        z_i, z_g, z_o = z.chunk(3, dim=1)
        i = torch.sigmoid(z_i + F.linear(c, to_i).to(c.dtype))
        c = torch.lerp(c, torch.tanh(z_g), i)
        share = F.linear(c, to_o).to(c.dtype)
        return c, torch.sigmoid(z_o + (share if begun is None else share * begun))

    def begun(self, before: State) -> Tensor | None:
        """Factors (B, 1) of the new c in the output gate, after h, c; None: all are 1."""
        return None

    def unroll_layer(self, layer: int, projected: Tensor, state: State, sizes: Sizes) -> State:
        """States of one layer, with the gradient written out."""
        weights, begun = (self.recurrent[layer], self.peephole[layer]), self.begun(state)
        if few_rows.has_few_rows(projected, state[0]):
            return few_rows.layer(projected, state, weights, begun, sizes)
        return _cifg_layer(projected, *state, *weights, begun, sizes)


class CIFG2015(CIFG):
    """The cell of Ji et al.'s code with the library of November 2015, when they released it.

    At the first word of a sentence that begins in the zero state, o = σ(W_xo u + b_o): W_co c' is
    left out, too. Weights trained for either cell cost up to 6 nats a sentence in the other.
    """

    def begun(self, before: State) -> Tensor | None:
        """0 where h = c = 0, else 1: after any word some number is not 0."""
        h, c = before
        return ((h != 0).any(dim=1, keepdim=True) | (c != 0).any(dim=1, keepdim=True)).to(c.dtype)


class PackedCIFG(torch.autograd.Function):
    """(h, c): (N, H) each, of all positions of packed sentences.

    projected: (N, 3H) shares of the inputs in the pre-activations, in the order i, g, o, where g is
    the new content of the cell; h_0, c_0: (B, H); weight: (3H, H); peepholes: (2H, H) of i and o;
    begun: (B, 1) factors of the new c in the first output gates, or None; sizes: rows alive at
    each time step. Products run in the dtype of `projected`, everything else in float32. The loops
    make views of all steps at once and write into them.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        h_0: Tensor,
        c_0: Tensor,
        weight: Tensor,
        peepholes: Tensor,
        begun: Tensor | None,
        sizes: Sizes,
    ) -> tuple[Tensor, Tensor]:
        """One pass over the time steps; O(N · H²)."""
        wide, dtype = weight.shape[1], projected.dtype
        to_gates = weight.to(dtype).T.contiguous()
        to_i, to_o = (block.T.contiguous() for block in peepholes.to(dtype).chunk(2))
        gates = projected.float().clone(memory_format=torch.contiguous_format)
        h_all, c_all = gates.new_empty(len(gates), wide), gates.new_empty(len(gates), wide)
        h, c, rows, add_product = h_0, c_0, len(h_0), _adder(dtype)
        columns = gates, *gates.chunk(3, dim=1), h_all, c_all
        views = (torch.split(x, list(sizes)) for x in columns)
        for t, (size, z, i, g, o, h_next, c_next) in enumerate(zip(sizes, *views, strict=True)):
            if size < rows:
                h, c = h[:size], c[:size]
            add_product(z, h, to_gates)
            add_product(i, c, to_i).sigmoid_()
            torch.lerp(c, g.tanh_(), i, out=c_next)
            if t == 0 and begun is not None:
                o.addcmul_(c_next.to(dtype) @ to_o, begun[:size])
            else:
                add_product(o, c_next, to_o)
            torch.mul(torch.tanh(c_next, out=h_next), o.sigmoid_(), out=h_next)
            h, c, rows = h_next, c_next, size
        ctx.save_for_backward(gates, h_all, c_all, h_0, c_0, weight, peepholes, begun)
        ctx.sizes, ctx.dtype = sizes, dtype
        return h_all, c_all

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time; the weights' gradients are products over all positions."""
        gates, h_all, c_all, h_0, c_0, weight, peepholes, begun = ctx.saved_tensors
        sizes, dtype = ctx.sizes, ctx.dtype
        c_before = before_each(c_all, c_0, sizes)
        factors = few_rows.cifg_factors(gates, c_all, c_before)
        low, (to_i, to_o) = weight.to(dtype), peepholes.to(dtype).chunk(2)
        by_row = torch.contiguous_format
        d_h, d_c = (gradient.float().clone(memory_format=by_row) for gradient in gradients)
        d_start = h_0.new_zeros(h_0.shape), c_0.new_zeros(c_0.shape)
        d_z = torch.empty_like(gates)
        columns = (torch.split(x, list(sizes)) for x in (*d_z.chunk(3, dim=1), d_z, *factors))
        steps, add_product = list(zip(*columns, strict=True)), _adder(dtype)
        d_states = zip(d_start, (d_h, d_c), strict=True)
        hs, cs = ([start, *torch.split(d, list(sizes))] for start, d in d_states)
        for k in reversed(range(len(sizes))):
            z_i, z_g, z_o, z, in_i, in_g, in_o, through, onward = steps[k]
            dh, dc, dh_before, dc_before = hs[k + 1], cs[k + 1], hs[k], cs[k]
            if sizes[k] < len(dh_before):
                dh_before, dc_before = dh_before[: sizes[k]], dc_before[: sizes[k]]
            torch.mul(dh, in_o, out=z_o)
            dc.addcmul_(dh, through)
            add_product(dc, z_o if k or begun is None else z_o * begun[: sizes[k]], to_o)
            torch.mul(dc, in_i, out=z_i)
            torch.mul(dc, in_g, out=z_g)
            add_product(dc_before.addcmul_(dc, onward), z_i, to_i)
            add_product(dh_before, z, low)
        d_i, _, d_o = d_z.chunk(3, dim=1)
        seen = c_all
        if begun is not None:
            seen = torch.cat([c_all[: sizes[0]] * begun[: sizes[0]], c_all[sizes[0] :]])
        h_before = before_each(h_all, h_0, sizes)
        d_weight = _product_over_positions(d_z, h_before, dtype)
        d_to_i = _product_over_positions(d_i, c_before, dtype)
        d_to_o = _product_over_positions(d_o, seen, dtype)
        return d_z.to(dtype), *d_start, d_weight, torch.cat([d_to_i, d_to_o]), None, None


_cifg_layer: Callable[..., tuple[Tensor, Tensor]] = PackedCIFG.apply


def _adder(dtype: torch.dtype) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Adds to a float32 total (B, C) the product of (B, D) and (D, C), multiplied in `dtype`."""
    if dtype == torch.float32:
        return Tensor.addmm_
    return lambda total, x, matrix: total.add_(x.to(dtype) @ matrix)


def _product_over_positions(d: Tensor, x: Tensor, dtype: torch.dtype) -> Tensor:
    """dᵀ x in float32, of (N, C) and (N, D), multiplied in `dtype`."""
    low, other = d.to(dtype), x.to(dtype)
    if dtype == torch.bfloat16:
        low, other = padded(low), padded(other)
    return (low.T @ other).float()


def _stacked(blocks: int, rows: int, columns: int) -> nn.Parameter:
    """`blocks` Glorot-uniform (rows, columns) matrices above one another."""
    parts = [nn.init.xavier_uniform_(torch.empty(rows, columns)) for _ in range(blocks)]
    return nn.Parameter(torch.cat(parts))
