"""Attention over the states in which all earlier sentences of the document ended."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from lm.contexts.attention import Attention
from lm.rows import Rows
from lm.sentences import ReadSentences


class FinalStates(Attention):
    """States f_s = [h_1; …; h_L] after the last word of every earlier sentence, for each word.

    The memory of the attention program `dam` in the authors' code of Ji et al. 2016 (two layers
    there); the query, too, is the state of all layers. Value 0 in the first sentence; f_1 itself
    in the second one, where there is nothing to choose.
    """

    sentences = None
    reads_states = True
    reads_layers = True

    def summary(self, sentences: ReadSentences) -> Rows:
        """The state after the last word, or after `<s>` of an empty sentence."""
        return Rows.of(sentences.last_layers())

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The states and one more, O(M D) a row."""
        states, mask = contexts.tensors
        counts = mask.sum(dim=1)
        longest = int(counts.max()) if len(counts) else 0
        states = F.pad(states[:, :longest], (0, 0, 0, 1))
        mask = F.pad(mask[:, :longest], (0, 1))
        new = torch.arange(longest + 1, device=mask.device) == counts[:, None]
        return Rows.of(
            torch.where(new[:, :, None], summary.tensors[0][:, None], states), mask | new
        )
