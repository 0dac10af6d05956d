"""The recurrent state carried over the sentence boundary."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.contexts import Context
from lm.recurrences import Recurrence, State
from lm.rows import Rows
from lm.sentences import ReadSentences


class CarriedState(Context):
    """The whole recurrent state after the last word (the document RNNLM); starts at zero."""

    reads_states = True
    carries_state = True

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.widths = [tensor.shape[1] for tensor in recurrence.start(1)]
        self.width = sum(self.widths)

    def start(self, batch: int) -> Rows:
        """Zeros for each tensor of the state."""
        empty = self.get_buffer("empty")
        return Rows.of(*(empty.new_zeros(batch, width) for width in self.widths))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The state's tensors."""
        return Rows(sentences.last_states())

    def state(self, contexts: Rows) -> State:
        """The carried state."""
        return contexts.tensors

    def value(self, contexts: Rows) -> Tensor:
        """The state's tensors side by side."""
        return torch.cat(contexts.tensors, dim=1)
