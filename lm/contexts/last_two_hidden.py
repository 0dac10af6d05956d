"""The hidden states in which the previous two sentences ended."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.contexts.last_hidden import LastHidden
from lm.recurrences import Recurrence
from lm.rows import Rows


class LastTwoHidden(LastHidden):
    """Top hidden states after the last words of the previous two sentences, side by side.

    The context of the sentence-sensitive RNNLM of Eisenstein's memo, §1. The state before a
    document is learned and stands for each sentence that is missing (H parameters). Tensors of a
    context: the states (B, H) of the sentence before the previous one, and of the previous one.
    """

    sentences = 2

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = 2 * recurrence.hidden

    def start(self, batch: int) -> Rows:
        """The learned state twice."""
        first = self.first.expand(batch, -1)
        return Rows.of(first, first)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The previous sentence's state and that of the sentence that was read."""
        return Rows.of(contexts.tensors[1], summary.tensors[0])

    def value(self, contexts: Rows) -> Tensor:
        """Both states, (B, 2H)."""
        return torch.cat(contexts.tensors, dim=1)
