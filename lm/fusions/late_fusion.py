"""Late fusion: the context enters after the memory cell, under a gate of its own."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from lm.fusions import Fusion
from lm.recurrences import Recurrence, State
from lm.recurrences.unrolled import Sizes


class LateFusion(Fusion):
    """Late fusion of Wang & Cho 2015, arXiv:1511.03729, §3.2.

    r = σ(W_r (W_p p) + W_r' c + b_r); h = o∘tanh(c + r∘(W_p p)), where c and o are the memory
    cell and the output gate of the recurrence's top layer. The paper prints W_r twice; they are
    two matrices here. c does not see the context in the same step; the gates of the next step
    do, through h. Parameters: HD + 2H² + H.

    ValueError for a recurrence without memory cell and output gate.
    """

    hidden_depends_on_context = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        if not recurrence.output_gate:
            raise ValueError(
                "late fusion expects a recurrence with a memory cell and an output gate, found "
                f"{type(recurrence).__name__}; choose lstm or cifg, or early fusion"
            )
        self.projection = nn.Linear(width, recurrence.hidden, bias=False)
        self.gate = nn.Linear(recurrence.hidden, recurrence.hidden)
        self.memory_gate = nn.Linear(recurrence.hidden, recurrence.hidden, bias=False)

    def share(self, recurrence: Recurrence, value: Tensor) -> Tensor:
        """W_p p and W_r (W_p p) + b_r side by side, (B, 2H): all that does not depend on c."""
        projected = self.projection(value)
        return torch.cat([projected, self.gate(projected)], dim=1)

    def step(self, cells: Recurrence, words: Tensor, state: State, share: Tensor | None) -> State:
        """States after one more word each."""
        projected, gate = cast(Tensor, share).float().chunk(2, dim=1)

        def added(c: Tensor) -> Tensor:
            return torch.sigmoid(gate + self.memory_gate(c)) * projected

        return cells.step(words, state, added)

    def unroll(
        self, cells: Recurrence, words: Tensor, state: State, *, sizes: Sizes, share: Tensor | None
    ) -> State:
        """States after every word of packed sentences, step by step."""
        states: list[State] = []
        steps = (torch.split(rows, list(sizes)) for rows in (words, cast(Tensor, share)))
        for step, own in zip(*steps, strict=True):
            state = self.step(cells, step, tuple(rows[: len(step)] for rows in state), own)
            states.append(state)
        return tuple(torch.cat(column) for column in zip(*states, strict=True))
