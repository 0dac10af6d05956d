"""The cell of Ji et al. over packed sentences of few rows, forward and backward, compiled.

A step multiplies vectors of 48 numbers for at most five sentences in the training that the paper
prints: calls of tensor operations take longer than their arithmetic (recipes/bench). Beyond `MOST`
numbers of a step products of matrices are faster (`lm.recurrences.gated.PackedCIFG`).

With attention before each word the query is the state after the word before, so that neither a
layer nor the attention can be computed for all words at once: all layers are in the loop. A value
enters the first layer through a matrix, whose products with the states that are attended to are
computed before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, tanh
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from lm.recurrences import Sizes, State, before_each

MOST = 768  # rows times units


def has_few_rows(like: Tensor, first: Tensor) -> bool:
    """Whether compiled loops are faster for first states (B, H), and products like this tensor."""
    on_cpu = like.device.type == "cpu" and like.dtype == torch.float32
    return on_cpu and first.numel() <= MOST


def layer(
    projected: Tensor,
    state: State,
    weights: tuple[Tensor, Tensor],
    begun: Tensor | None,
    sizes: Sizes,
) -> State:
    """States of a layer after every word, (N, H) each, as `lm.recurrences.gated.PackedCIFG`."""
    rows = len(state[0])
    nothing = projected.new_zeros(rows, 0, 0)
    recurrent, peepholes = weights
    h, c, _ = attentive(
        projected[:, None],
        torch.stack(state, dim=1),
        nothing,
        nothing,
        projected.new_zeros(0, 2),
        recurrent[None],
        peepholes[None],
        (nothing.flatten(1), first_gates(begun, rows)[:, None], sizes),
    )
    return h[:, 0], c[:, 0]


class FewRowsCIFG(torch.autograd.Function):
    """Hidden states and memory cells (N, L, H), and sums of values (N, C), of all positions.

    projected: (N, L, 3H) pre-activations of L layers, without the shares of states and of
    attention; start: (B, 2L, H) the first states; keys, values: of the memory; query: (A, D + 1)
    its matrix, with the weight of the hidden units as last column; recurrent: (2L − 1, 3H, H)
    matrices from each layer's hidden state, then from the layer below; peepholes: (L, 2H, H);
    fixed: what has no gradient, energies (B, M), whether the first output gates see the new memory
    (B, L), and the rows alive at each time step.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        start: Tensor,
        keys: Tensor,
        values: Tensor,
        query: Tensor,
        recurrent: Tensor,
        peepholes: Tensor,
        fixed: tuple[Tensor, NDArray[np.bool_], Sizes],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """O(N (L H² + M (A + C))); keeps the hidden units (N, M, A) for the gradient."""
        gates = projected.clone(memory_format=torch.contiguous_format)
        (n, layers), (m, a) = gates.shape[:2], keys.shape[1:]
        h_all, c_all = (gates.new_empty(n, layers, start.shape[2]) for _ in range(2))
        hidden, shares = gates.new_empty(n, m, a), gates.new_empty(n, m)
        sums = gates.new_zeros(n, values.shape[2])
        energies, begun, sizes = fixed
        to_i, to_o = peepholes.mT.chunk(2, dim=2)
        _forward(
            gates.numpy(),
            (h_all.numpy(), c_all.numpy()),
            (hidden.numpy(), shares.numpy(), sums.numpy()),
            as_arrays((start[:, ::2], start[:, 1::2])),
            as_arrays((keys, values, energies)),
            (
                as_arrays((query[:, :-1].T, query[:, -1], recurrent[layers:].mT)),
                as_arrays((recurrent[:layers].mT, to_i, to_o)),
            ),
            begun,
            np.array(sizes),
        )
        ctx.save_for_backward(
            gates, h_all, c_all, hidden, shares, start, values, query, recurrent, peepholes
        )
        ctx.begun, ctx.sizes = begun, sizes
        return h_all, c_all, sums

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Back through time; the weights' gradients are products over all positions."""
        gates, h_all, c_all, hidden, shares, start, *parameters = ctx.saved_tensors
        values, query, recurrent, peepholes = parameters
        begun, sizes, layers = ctx.begun, ctx.sizes, gates.shape[1]
        by_row = torch.contiguous_format
        d_h, d_c, d_sums = (gradient.clone(memory_format=by_row) for gradient in gradients)
        d_z, d_energies = torch.empty_like(gates), torch.zeros_like(shares)
        d_query = query.new_zeros(len(hidden), len(query))
        d_keys, d_values = query.new_zeros(len(values), *hidden.shape[1:]), torch.zeros_like(values)
        h_0, c_0 = start[:, ::2], start[:, 1::2]
        d_start = h_0.new_zeros(h_0.shape), c_0.new_zeros(c_0.shape)
        h_before, c_before = before_each(h_all, h_0, sizes), before_each(c_all, c_0, sizes)
        _backward(
            d_z.numpy(),
            (d_h.numpy(), d_c.numpy()),
            (d_query.numpy(), d_energies.numpy(), d_sums.numpy()),
            as_arrays(d_start),
            as_arrays((d_keys, d_values)),
            as_arrays((hidden, shares, values.mT)),
            as_arrays(cifg_factors(gates, c_all, c_before)),
            (
                as_arrays((query[:, :-1], query[:, -1], recurrent[layers:])),
                as_arrays((recurrent[:layers], *peepholes.chunk(2, dim=1))),
            ),
            begun,
            np.array(sizes),
        )
        asked = h_before.flatten(1)[:, 1 - query.shape[1] :]
        d_weight = torch.mv(hidden.flatten(0, 1).T, d_energies.flatten())
        of_query = torch.cat([d_query.T @ asked, d_weight[:, None]], dim=1)
        from_states, from_below = _products(d_z, h_before), _products(d_z[:, 1:], h_all[:, :-1])
        d_i, _, d_o = d_z.chunk(3, dim=2)
        seen = c_all.clone()
        seen[: sizes[0]] *= torch.from_numpy(begun[: sizes[0], :, None])
        of_peepholes = torch.cat([_products(d_i, c_before), _products(d_o, seen)], dim=1)
        of_start = torch.stack(d_start, dim=2).flatten(1, 2)
        of_recurrent = torch.cat([from_states, from_below])
        return d_z, of_start, d_keys, d_values, of_query, of_recurrent, of_peepholes, None


attentive: Callable[..., tuple[Tensor, Tensor, Tensor]] = FewRowsCIFG.apply


def _products(d: Tensor, x: Tensor) -> Tensor:
    """Σ_n d_nl x_nlᵀ of each layer, (L, C, D), of (N, L, C) and (N, L, D)."""
    return torch.bmm(d.permute(1, 2, 0), x.transpose(0, 1))


def cifg_factors(gates: Tensor, c: Tensor, c_before: Tensor) -> tuple[Tensor, ...]:
    """Factors (…, H) of the gradients of the memory (in i, g) and of h (in o, the memory).

    The last factor is that of the memory's gradient in the memory before.
    gates: (…, 3H) i, g and o; c, c_before: (…, H) memory cells after and before each word.
    """
    i, g, o = gates.chunk(3, dim=-1)
    t, kept = c.tanh(), 1 - i
    return (g - c_before) * i * kept, i * (1 - g * g), o * (1 - o) * t, o * (1 - t * t), kept


def as_arrays(tensors: Sequence[Tensor]) -> tuple[NDArray[np.float32], ...]:
    """The numbers of tensors, row after row, without copies of those that are so."""
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)


def first_gates(begun: Tensor | None, rows: int) -> NDArray[np.bool_]:
    """Whether the first output gates see the new memory, (B,)."""
    return np.ones(rows, bool) if begun is None else begun[:, 0].bool().numpy()


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _forward(
    gates: Any,
    states: Any,
    attention: Any,
    start: Any,
    memory: Any,
    weights: Any,
    begun: Any,
    sizes: Any,
) -> None:
    """Gates, states and attention of all positions; O(N (L H² + M (A + C))).

    gates: (N, L, 3H) pre-activations i, g, o without the shares of states and of attention; states:
    hidden states and memory cells (N, L, H), written; attention: its hidden units (N, M, A) and its
    weights (N, M), written, and the sums of values (N, C), added to; start: both (B, L, H) before
    the first step; memory: keys (B, M, A), values (B, M, C) and energies (B, M); weights: (D, A) to
    the query, (A,) of the hidden units to the energy, (L − 1, H, 3H) from the layers below, and of
    each layer (H, 3H) from hidden states, (H, H) from memory cells to i and to o.
    """
    (h_all, c_all), (h_0, c_0), (hidden, shares, sums) = states, start, attention
    keys, values, energies = memory
    (to_query, to_energy, from_below), (to_gates, to_i, to_o) = weights
    layers, wide = h_0.shape[1:]
    units, first = len(to_energy), layers * wide - len(to_query)
    query = np.empty_like(to_energy)
    begin = before = 0
    for t, size in enumerate(sizes):
        for r in range(size):
            n = begin + r
            h = h_all[before + r] if t else h_0[r]
            c = c_all[before + r] if t else c_0[r]
            if len(shares[n]):
                query[:] = 0
                _add_product(query, h.reshape(-1)[first:], to_query)
                for m in range(len(shares[n])):
                    energy = energies[r, m]
                    for a in range(units):
                        hidden[n, m, a] = tanh(keys[r, m, a] + query[a])
                        energy += to_energy[a] * hidden[n, m, a]
                    shares[n, m] = energy
                _normalise(shares[n])
                _add_product(sums[n], shares[n], values[r])
                for j in range(3 * wide):
                    gates[n, 0, j] += sums[n, j]
            for k in range(layers):
                z, after = gates[n, k], (h_all[n, k], c_all[n, k])
                if k:
                    _add_product(z, h_all[n, k - 1], from_below[k - 1])
                of_layer = to_gates[k], to_i[k], to_o[k]
                _step(z, (h[k], c[k]), after, of_layer, t > 0 or begun[r, k])
        before = begin
        begin += size


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _backward(
    d_z: Any,
    d_states: Any,
    d_attention: Any,
    d_start: Any,
    d_memory: Any,
    attention: Any,
    factors: Any,
    weights: Any,
    begun: Any,
    sizes: Any,
) -> None:
    """Gradients of pre-activations, first states and memory; O(N (L H² + M (A + C))).

    d_z: (N, L, 3H), written; d_states: (N, L, H) each, by what uses them, changed; d_attention: of
    queries (N, A) and energies (N, M), zeros that are added to, and of the sums of values (N, C),
    by what uses them, changed; d_start: (B, L, H) each, and d_memory: of keys (B, M, A) and values
    (B, M, C), added to; attention: its hidden units and weights, and the values (B, C, M); factors:
    (N, L, H) each, of `cifg_factors`; weights: those of `_forward`, transposed.
    """
    (d_h, d_c), (d_h_0, d_c_0), (d_query, d_energies, d_sums) = d_states, d_start, d_attention
    (d_keys, d_values), (hidden, shares, values) = d_memory, attention
    in_i, in_g, in_o, through, onward = factors
    (from_query, to_energy, to_below), (weight, peephole_i, peephole_o) = weights
    layers, wide = d_h_0.shape[1:]
    units, first = len(to_energy), layers * wide - from_query.shape[1]
    begin = len(d_h)
    for t in range(len(sizes) - 1, -1, -1):
        begin -= sizes[t]
        before = begin - sizes[t - 1]
        for r in range(sizes[t]):
            n = begin + r
            dh_before = d_h[before + r] if t else d_h_0[r]
            dc_before = d_c[before + r] if t else d_c_0[r]
            for k in range(layers - 1, -1, -1):
                factor = in_i[n, k], in_g[n, k], in_o[n, k], through[n, k], onward[n, k]
                after, before_it = (d_h[n, k], d_c[n, k]), (dh_before[k], dc_before[k])
                to = weight[k], peephole_i[k], peephole_o[k]
                _step_back(d_z[n, k], after, before_it, factor, to, t > 0 or begun[r, k])
                if k:
                    _add_product(d_h[n, k - 1], d_z[n, k], to_below[k - 1])
            if len(shares[n]) == 0:
                continue
            for j in range(3 * wide):
                d_sums[n, j] += d_z[n, 0, j]
            _add_product(d_energies[n], d_sums[n], values[r])
            mean = type(to_energy[0])(0)
            for m in range(len(shares[n])):
                mean += shares[n, m] * d_energies[n, m]
            for m in range(len(shares[n])):
                share = shares[n, m]
                for j in range(len(d_sums[n])):
                    d_values[r, m, j] += share * d_sums[n, j]
                d_energies[n, m] = energy = share * (d_energies[n, m] - mean)
                for a in range(units):
                    unit, d = hidden[n, m, a], energy * to_energy[a]
                    d -= d * unit * unit
                    d_query[n, a] += d
                    d_keys[r, m, a] += d
            _add_product(dh_before.reshape(-1)[first:], d_query[n], from_query)


@njit(cache=True, nogil=True, error_model="numpy")
def _normalise(energies: Any) -> None:
    """The softmax (M,) of energies (M,), in their place; M > 0."""
    total, largest = type(energies[0])(0), energies.max()
    for m in range(len(energies)):
        energies[m] = exp(energies[m] - largest)
        total += energies[m]
    for m in range(len(energies)):
        energies[m] /= total


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _step(z: Any, before: Any, after: Any, weights: Any, begun: Any) -> None:
    """Gates z (3H,) and the state after a word of a row, both written; O(H²)."""
    (h, c), (h_next, c_next), (to_gates, to_i, to_o) = before, after, weights
    wide = len(h)
    _add_product(z, h, to_gates)
    _add_product(z[:wide], c, to_i)
    for j in range(wide):
        i, g = _sigmoid(z[j]), tanh(z[wide + j])
        z[j], z[wide + j] = i, g
        c_next[j] = c[j] + i * (g - c[j])
    if begun:
        _add_product(z[2 * wide :], c_next, to_o)
    for j in range(wide):
        o = _sigmoid(z[2 * wide + j])
        z[2 * wide + j] = o
        h_next[j] = o * tanh(c_next[j])


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _step_back(z: Any, d_after: Any, d_before: Any, shares: Any, weights: Any, begun: Any) -> None:
    """Gradients of the pre-activations z (3H,), written, and of the state before, added to."""
    (dh, dc), (dh_before, dc_before) = d_after, d_before
    in_i, in_g, in_o, through, onward = shares
    weight, peephole_i, peephole_o = weights
    wide = len(dh)
    for j in range(wide):
        z[2 * wide + j] = dh[j] * in_o[j]
        dc[j] += dh[j] * through[j]
    if begun:
        _add_product(dc, z[2 * wide :], peephole_o)
    for j in range(wide):
        z[j], z[wide + j] = dc[j] * in_i[j], dc[j] * in_g[j]
        dc_before[j] += dc[j] * onward[j]
    _add_product(dc_before, z[:wide], peephole_i)
    _add_product(dh_before, z, weight)


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _add_product(total: Any, x: Any, matrix: Any) -> None:
    """Add x (D,) times the matrix (D, C) to total (C,), four rows at a time."""
    whole = len(x) - len(x) % 4
    for k in range(0, whole, 4):
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(len(total)):
            total[j] += (
                a * matrix[k, j]
                + b * matrix[k + 1, j]
                + c * matrix[k + 2, j]
                + d * matrix[k + 3, j]
            )
    for k in range(whole, len(x)):
        for j in range(len(total)):
            total[j] += x[k] * matrix[k, j]


@njit(cache=True, nogil=True, error_model="numpy")
def _sigmoid(z: Any) -> Any:
    """σ(z), of the type of z."""
    unit = type(z)(1)
    return unit / (unit + exp(-z))
