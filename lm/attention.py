"""Attention of one position in each of many contexts, with its gradient written out.

A recurrence that attends before each step makes as many small steps as a sentence has words, and
the memory, (B, M, A) numbers, takes part in each. The gradients of the memory are therefore summed
in place over the steps, and only handed on when all of them are known: autograd alone would make
a tensor of zeros and a copy of the memory for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(slots=True, eq=False)
class Sums:
    """Gradients of a memory that one backward pass has summed so far.

    energies: (B, M); squares: (B, M, A), less the energies' gradients times the squared hidden
    units; states: (B, M, D). task: number of the pass, for a graph may be gone through again.
    """

    task: int = -1
    energies: Tensor = field(default_factory=lambda: torch.empty(0))
    squares: Tensor = field(default_factory=lambda: torch.empty(0))
    states: Tensor = field(default_factory=lambda: torch.empty(0))

    def begin(self, keys: Tensor, states: Tensor) -> None:
        """Zeros, unless the pass that is under way has begun already."""
        task = torch._C._current_graph_task_id()
        if task != self.task:
            self.task = task
            self.energies = keys.new_zeros(keys.shape[:2])
            self.squares, self.states = torch.zeros_like(keys), torch.zeros_like(states)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """M states of each of B contexts, and what attention needs of them for every position.

    keys: (B, M, A) their shares in the hidden units; states: (B, M, D), zeros where padded;
    energies: (B, M) 0, very negative where padded; weight: (A,) of the hidden units. float32.
    """

    keys: Tensor
    states: Tensor
    energies: Tensor
    weight: Tensor
    sums: Sums

    @classmethod
    def of(cls, keys: Tensor, states: Tensor, energies: Tensor, weight: Tensor) -> Memory:
        """A memory whose gradients are summed up."""
        sums = Sums()
        keys, states = _summed(keys.float(), states.float(), weight, sums)
        return cls(keys, states, energies, weight, sums)

    def attend(self, queries: Tensor) -> Tensor:
        """Values (N, D) of the first N contexts: O(N M (A + D)) time.

        queries: (N, A) shares of the queries in the hidden units. With e_m = w · tanh(k_m + q) and
        energies added, the value is Σ softmax(e)_m f_m.
        """
        with torch.autocast(queries.device.type, enabled=False):
            return _attended(
                self.keys, self.states, self.energies, queries.float(), self.weight, self.sums
            )

    def take(self, row: Tensor) -> Memory:
        """The contexts at some rows, whose gradients autograd sums."""
        columns = (self.keys[row], self.states[row], self.energies[row])
        return Memory.of(*columns, self.weight)


class Summed(torch.autograd.Function):
    """Keys and states unchanged; their gradients have the sums that `Attended` has made."""

    @staticmethod
    def forward(
        ctx: Any, keys: Tensor, states: Tensor, weight: Tensor, sums: Sums
    ) -> tuple[Tensor, Tensor]:
        """Views of both."""
        ctx.save_for_backward(weight)
        ctx.sums, ctx.shapes = sums, (keys, states)
        ctx.set_materialize_grads(False)
        return keys.view_as(keys), states.view_as(states)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """w_a Σ d_m (1 − t²_ma) and Σ α_m d over all positions, and what other uses give."""
        (weight,) = ctx.saved_tensors
        sums = ctx.sums
        sums.begin(*ctx.shapes)  # zeros, if no position had a gradient
        own = (sums.squares.add_(sums.energies[:, :, None]).mul_(weight), sums.states)
        sums.task = -1
        both = zip(own, gradients, strict=True)
        return *(mine if others is None else mine + others for mine, others in both), None, None


class Attended(torch.autograd.Function):
    """Values of the first N contexts, as `Memory.attend`."""

    @staticmethod
    def forward(
        ctx: Any,
        keys: Tensor,
        states: Tensor,
        energies: Tensor,
        queries: Tensor,
        weight: Tensor,
        sums: Sums,
    ) -> Tensor:
        """O(N M (A + D)); keeps the hidden units (N, M, A) for the gradient."""
        n = len(queries)
        hidden = (keys[:n] + queries[:, None]).tanh_()
        shares = torch.softmax(hidden @ weight + energies[:n], dim=1)
        ctx.save_for_backward(keys, states, hidden, shares, weight)
        ctx.sums = sums
        return torch.bmm(shares[:, None], states[:n])[:, 0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the query and the weight; those of the memory are added to the sums."""
        (d,) = gradients
        keys, states, hidden, shares, weight = ctx.saved_tensors
        sums, n = ctx.sums, len(d)
        sums.begin(keys, states)
        of_shares = torch.bmm(states[:n], d[:, :, None])[:, :, 0]
        of_energies = shares * (of_shares - (shares * of_shares).sum(dim=1, keepdim=True))
        of_weight = torch.mv(hidden.flatten(0, 1).T, of_energies.flatten())
        squares = hidden.square()
        kept = of_energies.sum(dim=1, keepdim=True) - torch.bmm(of_energies[:, None], squares)[:, 0]
        sums.energies[:n] += of_energies
        sums.squares[:n].addcmul_(squares, of_energies[:, :, None], value=-1)
        sums.states[:n].baddbmm_(shares[:, :, None], d[:, None])
        return None, None, None, kept * weight, of_weight, None


_summed: Callable[[Tensor, Tensor, Tensor, Sums], tuple[Tensor, Tensor]] = Summed.apply
_attended: Callable[..., Tensor] = Attended.apply
