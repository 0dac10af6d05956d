"""log Σ_v exp(logit) of many features, alone or in many contexts, a block of words at a time.

Features are rows of R + 1 numbers, the last of which multiplies the bias: logits are
features · weightᵀ with a weight of (V, R + 1). Exponentials are summed as they are, without a
pass for the maximum. Where that leaves float32's range, or so little of it that underflow
may have cost 1e-6 of a sum, the sum is formed again directly.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from lm.machine import Machine

TINY = 2.0**-126  # smallest normal float32: what is below may be lost
ACCURACY = 1e-6  # share of a sum that may be lost
ROWS = 512  # of features in one piece of work
DIRECT_ROWS = 64  # formed again at a time
ALIGNED = 16  # contexts of a product come in multiples of this


def log_sums(features: Tensor, weight: Tensor, machine: Machine) -> Tensor:
    """(N,) of log Σ_v exp(features · weight[v]).

    O(N R V) time; memory: `Machine.floats` a thread.
    """
    factor = machine.operand(weight)

    def sums(rows: Tensor) -> Tensor:
        def attempt(floats: int) -> Tensor:
            total = rows.new_zeros(len(rows))
            own = machine.operand(rows)
            for words in _blocks(factor, len(rows), floats):
                logits = machine.buffer(rows, len(words))
                total += machine.product(own, words.T, logits).exp_().sum(dim=1)
            return total

        return machine.within_memory(attempt)

    total = torch.cat(machine.map(sums, torch.split(features, ROWS)))
    log_z = total.log()
    weak = ~((total >= len(weight) * TINY / ACCURACY) & (total < torch.inf))
    for rows in torch.split(weak.nonzero()[:, 0], DIRECT_ROWS):
        log_z[rows] = torch.logsumexp(features[rows] @ weight.T, dim=1)
    return log_z


def pair_log_sums(
    features: Tensor, contexts: Tensor, weight: Tensor, machine: Machine
) -> tuple[Tensor, Tensor]:
    """(N, C) of log Z[n, c] = log Σ_v exp((features[n] + contexts[c]) · weight[v]), and a mask.

    With A and B the logits of features and contexts alone, one product of positive numbers,
    exp(A) · exp(B)ᵀ: nothing cancels, and the relative error is about 1e-6 where the contexts
    are centred. A context of zeros comes with the others and gives S_n = Σ_v exp(A_nv), a
    feature of zeros F_c = Σ_v exp(B_cv). Underflow has taken at most (V + S_n + F_c) · 2⁻¹²⁶
    from an entry: the mask marks those of which that may be 1e-6, or which overflowed; they
    are formed again directly. O(N V (R + C)) time; memory: `Machine.floats` and (N, C).
    """
    n, c = len(features), len(contexts)
    rows = torch.cat([features, features.new_zeros(1, features.shape[1])])
    columns = contexts.new_zeros(-(-(c + 1) // ALIGNED) * ALIGNED, contexts.shape[1])
    columns[:c] = contexts
    factor = machine.operand(weight)

    def attempt(floats: int) -> Tensor:
        product = rows.new_zeros(len(rows), len(columns))
        of_rows, of_columns = machine.operand(rows), machine.operand(columns)
        for words in _blocks(factor, len(rows) + len(columns), floats):
            a = machine.buffer(rows, len(words))
            machine.product(of_rows, words.T, a).exp_()
            b = machine.product(words, of_columns.T).exp_()
            product += machine.product(machine.operand(a), machine.operand(b))
        return product

    product = machine.within_memory(attempt)
    lost = (len(weight) + product[:n, c:][:, :1] + product[n:, :c]) * (TINY / ACCURACY)
    product = product[:n, :c]
    weak = ~((product >= lost) & (product < torch.inf))
    log_z = product.log()
    for pairs in torch.split(weak.nonzero(), DIRECT_ROWS):
        both = features[pairs[:, 0]] + contexts[pairs[:, 1]]
        log_z[pairs[:, 0], pairs[:, 1]] = torch.logsumexp(both @ weight.T, dim=1)
    return log_z, weak


def _blocks(weight: Tensor, rows: int, floats: int) -> Iterator[Tensor]:
    """Words (w, R + 1) whose logits with so many rows are at most `floats`, or 16 words."""
    yield from torch.split(weight, max(16, floats // rows))
