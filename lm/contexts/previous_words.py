"""Attention over the words of the previous sentence."""

from __future__ import annotations

from lm.contexts.attention import Attention
from lm.rows import Rows
from lm.sentences import ReadSentences


class PreviousWords(Attention):
    """Top hidden states h_m of the previous sentence's words m = 1…M, weighted for each word.

    The attention of Ji et al. 2016, §2.3, eqs. 8–10. As printed it is circular: its query is h_n,
    for which it is an input. As in the authors' code, the query is h_{n-1}. Without a previous
    sentence, or with an empty one, the value is zero: the paper has no c_0 here.
    """

    reads_states = True

    def summary(self, sentences: ReadSentences) -> Rows:
        """States after each word."""
        states, mask = sentences.hidden_states()
        return Rows.of(states * mask[:, :, None], mask)
