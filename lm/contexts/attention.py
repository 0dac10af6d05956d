"""Attention over states that are kept of earlier sentences."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.attention import Memory
from lm.contexts import Context
from lm.recurrences import Recurrence
from lm.rows import Rows

MOST_ENTRIES = 1 << 22  # of (positions, states, size of the attention) at once
_NEVER = -1e30  # energy of padding; finite, for without any state all shares would be NaN


class Attention(Context):
    """Base of the contexts that weight M kept states f_m (D) anew for each word.

    With the query q, the state at the previous position:
    a_m = softmax_m(w · tanh(W_1 q + W_2 f_m)), value Σ a_m f_m (Bahdanau et al. 2015, without
    biases). W_1 q is absent at the first word, where q = 0; without any state the value is 0.
    A context holds the states (B, M, D), zeros where padded, and a mask (B, M). The hidden layer
    has A units (`attention`; None for H): A(2D + 1) parameters.
    """

    per_word = True
    averages = False
    options = ("attention",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, attention: int | None = None
    ) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden * (recurrence.layers if self.reads_layers else 1)
        units = recurrence.hidden if attention is None else attention
        self.query = nn.Linear(self.width, units, bias=False)
        self.memory = nn.Linear(self.width, units, bias=False)
        self.weight = nn.Linear(units, 1, bias=False)

    def start(self, batch: int) -> Rows:
        """No states."""
        states = self.get_buffer("empty").new_zeros(batch, 0, self.width)
        return Rows.of(states, states[:, :, 0].bool())

    def prepared(self, contexts: Rows) -> Memory:
        """The states with W_2 f_m (B, M, A)."""
        states, mask = contexts.tensors
        energies = torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, _NEVER)
        return Memory.of(self.memory(states), states, energies, self.weight.weight[0])

    def word_values(self, prepared: Memory, row: Tensor, query: Tensor) -> Tensor:
        """O(N M (A + D)) time; at most `MOST_ENTRIES` numbers of the attention at once."""
        if not prepared.keys.shape[1]:
            return query.new_zeros(len(query), self.width)
        most = max(1, MOST_ENTRIES // prepared.keys[0].numel())
        parts = zip(torch.split(row, most), torch.split(query, most), strict=True)
        return torch.cat([self.row_values(prepared.take(at), own) for at, own in parts])

    def row_values(self, prepared: Memory, query: Tensor) -> Tensor:
        """Values (N, D) of one position in each context, without a copy of the memory."""
        if not prepared.keys.shape[1]:
            return query.new_zeros(len(query), self.width)
        return prepared.attend(self.query(query))
