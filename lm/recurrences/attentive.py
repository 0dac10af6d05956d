"""The cell of Ji et al. with attention before each word, over packed sentences of few rows.

The query of the attention is the state after the word before, so that neither a layer nor the
attention can be computed for all words at once: the loop over words is compiled
(`lm.recurrences.few_rows`). A value enters the first layer through a matrix; the product of that
matrix is computed for each state that is attended to, before the loop, which then adds up the
products as it does the states.

An update of `adclm` by the recipe `paper` (48 units, five sentences of a hundred words together)
takes 26 ms of an AMD EPYC, and 102 by single steps of tensors. The model's reading of two
sentences with its gradient is 3.2 times as fast for one or five rows of 48 units, twice for 16
and as fast for 64; of 256 units it is 3.6 times as fast for one and 3.0 for three.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lm.recurrences import Sizes, State, few_rows
from lm.recurrences.gated import (
    CIFG,
    as_arrays,
    before_each,
    cifg_factors,
    first_gates,
)


@dataclass(frozen=True, slots=True, eq=False)
class AttendedStates:
    """M states of each of B contexts, and the parameters by which a query weights them.

    The weights are softmax_m(weight · tanh(keys_m + query q) + energies_m), where q (D,) is the
    last D numbers of the hidden states [h_1; …; h_L]. keys: (B, M, A); values: (B, M, C), whose
    first 3H columns are shares in the pre-activations of the first layer; energies: (B, M), very
    negative where padded; query: (A, D); weight: (A,).
    """

    keys: Tensor
    values: Tensor
    energies: Tensor
    query: Tensor
    weight: Tensor


def unroll(
    cells: CIFG, projected: Tensor, state: State, attended: AttendedStates, *, sizes: Sizes
) -> tuple[State, Tensor]:
    """States after every word of packed sentences, (N, H) each, and the sums of values (N, C).

    projected: (N, 3H) shares of the words in the pre-activations; state: (B, H) each; sizes:
    sentences alive at each time step. M > 0. O(N (L H² + M (A + C))) time.
    """
    layers = [projected, *(bias.expand(len(projected), -1) for bias in cells.bias[1:])]
    both = zip(state[::2], state[1::2], strict=True)
    begun = np.stack([first_gates(cells.begun(pair), pair[0]) for pair in both], axis=1)
    h, c, sums = _attentive(
        torch.stack(layers, dim=1),
        torch.stack(state, dim=1),
        attended.keys,
        attended.values,
        torch.cat([attended.query, attended.weight[:, None]], dim=1),
        torch.stack([*cells.recurrent, *cells.lower[1:]]),
        torch.stack([*cells.peephole]),
        (attended.energies, begun, sizes),
    )
    pairs = zip(h.unbind(dim=1), c.unbind(dim=1), strict=True)
    return tuple(tensor for pair in pairs for tensor in pair), sums


class PackedAttentiveCIFG(torch.autograd.Function):
    """Hidden states and memory cells (N, L, H), and sums of values (N, C), of all positions.

    projected: (N, L, 3H) pre-activations of all layers, without the shares of states and of
    attention; start: (B, 2L, H) the first states; keys, values: those of `AttendedStates`; query:
    (A, D + 1) its matrix, and its weight as the last column; recurrent: (2L − 1, 3H, H) matrices
    from each layer's hidden state, then those from the layer below; peepholes: (L, 2H, H); fixed:
    what has no gradient, energies (B, M), whether the first output gates see the new memory
    (B, L), and the rows alive at each time step. All numbers are of one dtype.
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
        few_rows.attentive_forward(
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
        few_rows.attentive_backward(
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


_attentive: Callable[..., tuple[Tensor, Tensor, Tensor]] = PackedAttentiveCIFG.apply


def _products(d: Tensor, x: Tensor) -> Tensor:
    """Σ_n d_nl x_nlᵀ of each layer, (L, C, D), of (N, L, C) and (N, L, D)."""
    return torch.bmm(d.permute(1, 2, 0), x.transpose(0, 1))
