"""The cell of Ji et al. over packed sentences of few rows, forward and backward, compiled.

A step multiplies vectors of 48 numbers for at most five sentences in the training that the paper
prints: calls of tensor operations take longer than their arithmetic. The functions do what the
loops of `lm.recurrences.gated.PackedCIFG` do, in one dtype, row by row, and write into their
arguments. Beyond `MOST` numbers of a step products of matrices are faster: of 48 units this is
2.4 times as fast for one row, 1.2 for 16; of 256 it is 1.6 for one, 0.9 for four.

`attentive_forward` and `attentive_backward` are those of all layers with attention before each
word, for `lm.recurrences.attentive`. They stand here because numba does not compile a function
again when one that it calls has changed in another module.
"""

from __future__ import annotations

from math import exp, tanh
from typing import Any

import numpy as np
from numba import njit

MOST = 768  # rows times units


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def forward(gates: Any, states: Any, start: Any, weights: Any, begun: Any, sizes: Any) -> None:
    """Gates and states of all positions; O(N · H²).

    gates: (N, 3H) pre-activations i, g, o without the shares of states; states: hidden states and
    memory cells (N, H), written; start: both (B, H) before the first step; weights: (H, 3H) from
    hidden states, (H, H) from memory cells to i and to o; begun: (B,), whether the first output
    gate sees the new memory; sizes: rows alive at each time step.
    """
    (h_all, c_all), (h_0, c_0) = states, start
    begin = before = 0
    for t, size in enumerate(sizes):
        for r in range(size):
            n = begin + r
            h = h_all[before + r] if t else h_0[r]
            c = c_all[before + r] if t else c_0[r]
            _step(gates[n], (h, c), (h_all[n], c_all[n]), weights, t > 0 or begun[r])
        before = begin
        begin += size


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def backward(
    d_z: Any, d_states: Any, d_start: Any, shares: Any, weights: Any, begun: Any, sizes: Any
) -> None:
    """Gradients of pre-activations and of the first states; O(N · H²).

    d_z: (N, 3H), written; d_states: of hidden states and memory cells (N, H), by what uses them,
    changed; d_start: (B, H) each, added to; shares: five (N, H) factors, those of the memory's
    gradient in i and g, of the hidden state's in o and in the memory, and of the memory's in the
    memory before; weights: (3H, H) from hidden states, (H, H) from memory cells to i and to o.
    """
    (d_h, d_c), (d_h_0, d_c_0) = d_states, d_start
    in_i, in_g, in_o, through, onward = shares
    begin = len(d_h)
    for t in range(len(sizes) - 1, -1, -1):
        begin -= sizes[t]
        before = begin - sizes[t - 1]
        for r in range(sizes[t]):
            n = begin + r
            dh_before = d_h[before + r] if t else d_h_0[r]
            dc_before = d_c[before + r] if t else d_c_0[r]
            own = in_i[n], in_g[n], in_o[n], through[n], onward[n]
            after, before_it = (d_h[n], d_c[n]), (dh_before, dc_before)
            _step_back(d_z[n], after, before_it, own, weights, t > 0 or begun[r])


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def attentive_forward(
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

    gates: (N, L, 3H) pre-activations of L layers without the shares of states and of attention;
    states: hidden states and memory cells (N, L, H), written; attention: its hidden units
    (N, M, A) and its weights (N, M), written, and the sums of values (N, C), added to, whose first
    3H columns are shares in the first layer; start: both (B, L, H) before the first step; memory:
    keys (B, M, A), values (B, M, C) and energies (B, M); weights: (D, A) from the last D numbers of
    [h_1; …; h_L] to the query, (A,) of the hidden units to the energy, (L − 1, H, 3H) from the
    layers below, and (L, …) those of `forward`; begun: (B, L); sizes: as in `forward`.
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
                own = to_gates[k], to_i[k], to_o[k]
                _step(z, (h[k], c[k]), after, own, t > 0 or begun[r, k])
        before = begin
        begin += size


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def attentive_backward(
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
    (N, L, H) each, those of `backward`; weights: (A, D) from the query, (A,) from the energy to the
    hidden units, (L − 1, 3H, H) to the layers below, and (L, …) those of `backward`.
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
                own = in_i[n, k], in_g[n, k], in_o[n, k], through[n, k], onward[n, k]
                after, before_it = (d_h[n, k], d_c[n, k]), (dh_before[k], dc_before[k])
                to = weight[k], peephole_i[k], peephole_o[k]
                _step_back(d_z[n, k], after, before_it, own, to, t > 0 or begun[r, k])
                if k:
                    _add_product(d_h[n, k - 1], d_z[n, k], to_below[k - 1])
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
    """Gates z (3H,) and the state after one word of one row, both written; O(H²).

    z: at first the pre-activations without the shares of states; before, after: hidden state and
    memory cell (H,); begun: whether the output gate sees the new memory.
    """
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
    """Gradients of the pre-activations z (3H,), written, and of the state before, added to; O(H²).

    Arguments as those of `backward`, of one word of one row.
    """
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
    one = type(z)(1)
    return one / (one + exp(-z))
