"""Attention over the words of the previous sentence."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.contexts import Context
from lm.recurrence import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences

MOST_ENTRIES = 1 << 22  # of (positions, words, hidden) at once


class PreviousWords(Context):
    """Hidden states of the previous sentence's words, weighted anew for each word.

    The attention of Ji et al. 2016, §2.3, over the words m = 1…M of the previous sentence:
    a_m = softmax_m(w · tanh(W_1 h_{n-1} + W_2 h_m)), value Σ a_m h_m. As in the authors' code
    the query is the state of the position before, and absent at the first. Without a previous
    sentence, or with an empty one, the value is zero. A context holds the states (B, M, H) and
    a mask (B, M).
    """

    reads_states = True
    per_word = True
    averages = False

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        self.query = nn.Linear(self.width, self.width, bias=False)
        self.memory = nn.Linear(self.width, self.width, bias=False)
        self.weight = nn.Linear(self.width, 1, bias=False)

    def start(self, batch: int) -> Rows:
        """No words."""
        states = self.get_buffer("empty").new_zeros(batch, 0, self.width)
        return Rows.of(states, states[:, :, 0].bool())

    def summary(self, sentences: ReadSentences) -> Rows:
        """States after each word."""
        states, mask = sentences.hidden_states()
        return Rows.of(states * mask[:, :, None], mask)

    def word_values(self, contexts: Rows, row: Tensor, query: Tensor) -> Tensor:
        """O(N M H) time; at most `MOST_ENTRIES` numbers of the attention at once."""
        states, mask = contexts.tensors
        if not states.shape[1]:
            return query.new_zeros(len(query), self.width)
        keys, queries = self.memory(states), self.query(query)
        rows = max(1, MOST_ENTRIES // keys[0].numel())
        values = []
        for at, query_rows in zip(torch.split(row, rows), torch.split(queries, rows), strict=True):
            energy = self.weight(torch.tanh(keys[at] + query_rows[:, None]))[:, :, 0].float()
            # a finite number: without any word all shares would be NaN
            shares = torch.softmax(energy.masked_fill(~mask[at], -1e30), dim=1) * mask[at]
            values.append(torch.einsum("nm,nmh->nh", shares, states[at].float()))
        return torch.cat(values)
