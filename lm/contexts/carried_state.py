"""The recurrent state carried over the sentence boundary."""

from __future__ import annotations

from torch import nn

from lm.contexts import Context, Reads
from lm.recurrence import Recurrence, join
from lm.rows import Rows
from lm.sentences import ReadSentences


class CarriedState(Context):
    """The whole recurrent state after the last word (the document RNNLM); starts at zero."""

    reads = Reads.STATES

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.columns

    def summary(self, sentences: ReadSentences) -> Rows:
        """The state's tensors side by side."""
        return Rows.of(join(sentences.last_states()))
