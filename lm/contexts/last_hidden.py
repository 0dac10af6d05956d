"""The hidden state in which the previous sentence ended."""

from __future__ import annotations

from torch import nn

from lm.contexts import Context, learned_start
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences


class LastHidden(Context):
    """Top hidden state after the previous sentence's last word (Ji et al. 2016, eq. 3).

    The first sentence's context c_0 is learned (H parameters).
    """

    reads_states = True

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        self.first = learned_start(self.width)

    def start(self, batch: int) -> Rows:
        """c_0 for each row."""
        return Rows.of(self.first.expand(batch, -1))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The state after the last word, or after `<s>` of an empty sentence."""
        return Rows.of(sentences.last_hidden())
