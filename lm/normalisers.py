"""log Σ_v exp(logit) of many features, alone or after many contexts, without the V columns kept.

Exponentials are summed as they are: no pass for the maximum. Where that leaves float32's
range, or so little of it that underflow may have cost 1e-6 of a sum, the sum is formed
again directly. Features are (N, R + 1) with ones in the last column, the output matrix
is (R + 1, V) with the bias in its last row, so that logits are one product.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lm.machine import Machine

TINY = 2.0**-126  # smallest normal float32: what is below may be lost
ACCURACY = 1e-6  # share of a sum that may be lost
DIRECT_ROWS = 64  # formed again at a time
ALIGNED = 16  # contexts of a product come in multiples of this


def log_sums(features: Tensor, output: Tensor, machine: Machine) -> Tensor:
    """(N,) of log Σ_v exp(features · output).

    O(N R V) time, O(rows · V) memory a thread.
    """
    words = output.shape[1]
    factor = machine.operand(output)

    def sums(rows: int) -> list[Tensor]:
        def part(chunk: Tensor) -> Tensor:
            logits = machine.buffer(len(chunk), words)
            machine.product(machine.operand(chunk), factor, logits)
            return logits.exp_().sum(dim=1)

        return machine.map(part, torch.split(features, _even(len(features), rows)))

    total = torch.cat(machine.within_memory(sums, words))
    log_z = total.log()
    weak = ~((total >= words * TINY / ACCURACY) & (total < torch.inf))
    for rows in torch.split(weak.nonzero()[:, 0], DIRECT_ROWS):
        log_z[rows] = torch.logsumexp(features[rows] @ output, dim=1)
    return log_z


def with_zero(values: Tensor) -> Tensor:
    """Values (C, D) and, in further rows that make their number even for products, zeros."""
    rows = -(-(len(values) + 1) // ALIGNED) * ALIGNED
    return torch.cat([values, values.new_zeros(rows - len(values), values.shape[1])])


def pair_log_sums(
    features: Tensor, output: Tensor, shifts: Tensor, machine: Machine
) -> tuple[Tensor, Tensor]:
    """(N, C) of log Z[n, c] = log Σ_v exp(features[n] · output + shifts[v, c]), and a mask.

    One product of positive numbers, exp(A) · exp(B): nothing cancels, and the relative
    error is about 1e-6 where A is centred, B small. The last of the shifts (V, C) must be 0
    and is the sum S_n = Σ_v exp(A_nv); a row of zero logits gives F_c = Σ_v exp(B_vc). What
    underflow can have taken from an entry is at most (V + S_n + F_c) · 2⁻¹²⁶; the mask
    marks entries for which that may be 1e-6 of them, or which overflowed: they are formed
    again directly. O(N V (R + C)) time, O(V (rows + C)) memory a thread.
    """
    words, contexts = shifts.shape
    first, second = machine.operand(output), machine.operand(shifts.exp())
    columns = torch.cat([features, features.new_zeros(1, features.shape[1])])

    def products(rows: int) -> Tensor:
        product = columns.new_empty(len(columns), contexts)
        size = _even(len(columns), rows)
        for chunk, part in zip(torch.split(columns, size), torch.split(product, size), strict=True):
            logits = machine.buffer(len(chunk), words)
            machine.product(machine.operand(chunk), first, logits)
            machine.product(machine.operand(logits.exp_()), second, part)
        return product

    product = machine.within_memory(products, words)
    product, lost = product[:-1], product[-1]
    lost = (words + product[:, -1:] + lost) * (TINY / ACCURACY)
    weak = ~((product >= lost) & (product < torch.inf))
    log_z = product.log()
    for pairs in torch.split(weak.nonzero(), DIRECT_ROWS):
        n, c = pairs[:, 0], pairs[:, 1]
        log_z[n, c] = torch.logsumexp(features[n] @ output + shifts.T[c], dim=1)
    return log_z, weak


def _even(n: int, rows: int) -> int:
    """Rows of each of the fewest equal parts of n that have at most `rows`."""
    return -(-n // max(1, -(-n // rows)))
