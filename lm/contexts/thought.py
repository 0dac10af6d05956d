"""Thought vectors: what an LSTM makes of the sentences before, in few numbers.

Ghosh et al. 2016, arXiv:1602.06291, §5.4 and §8. In place of a topic, every cell receives a
low-dimensional embedding of the previous sentence's last state, denoised by "roundoff-based
projection", which the paper does not define: here numbers are rounded in training, and not when
a model is used, where the last bit of a state, which differs between batches, must not decide.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.contexts import Context
from lm.contexts.carried_state import CarriedState
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences

STEPS = 8  # of rounding, between 0 and 1


class ThoughtVector(nn.Module):
    """tanh(W h), (B, D), of hidden states (B, H); in training rounded to multiples of 1/`STEPS`.

    The gradient is that of the numbers before they were rounded. DH parameters.
    """

    def __init__(self, hidden: int, width: int | None) -> None:
        super().__init__()
        self.width = -(-hidden // 8) if width is None else width
        self.projection = nn.Linear(hidden, self.width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """The vectors; 0 where there is no sentence yet and the state is zero."""
        exact = torch.tanh(self.projection(hidden))
        if not self.training:
            return exact
        return exact + (torch.round(exact * STEPS) / STEPS - exact).detach()


class PreviousThought(CarriedState):
    """The state after the previous sentence, to begin in, and its thought vector as value (fig. 8).

    The sentences' LSTMs are one long chain. thought: D, by default H/8, rounded up.
    """

    options = ("thought",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, thought: int | None = None
    ) -> None:
        super().__init__(embedding, recurrence)
        self.top = -recurrence.tensors
        self.thought = ThoughtVector(recurrence.hidden, thought)
        self.width = self.thought.width

    def value(self, contexts: Rows) -> Tensor:
        """The thought vector (B, D) of the top hidden state."""
        vector: Tensor = self.thought(contexts.tensors[self.top])
        return vector


class SentenceThoughts(Context):
    """The thought vector of a recurrence over sentences, the upper level of the HLSTM (fig. 9).

    Its inputs are the word level's states after the last words; it is of the word level's kind
    and size. The paper only draws it: here the word level begins anew in every sentence, and what
    is carried on is the upper level's. Tensors of a context: its state.
    """

    sentences = None
    reads_states = True
    options = ("thought",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, thought: int | None = None
    ) -> None:
        super().__init__(embedding, recurrence)
        self.upper = recurrence.like(recurrence.hidden)
        self.thought = ThoughtVector(recurrence.hidden, thought)
        self.width = self.thought.width

    def start(self, batch: int) -> Rows:
        """The upper level's state before any sentence."""
        return Rows(self.upper.start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The word level's state after the last word, or after `<s>` of an empty sentence."""
        return Rows.of(sentences.last_hidden())

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of the upper level."""
        projected = self.upper.project(summary.tensors[0])
        return Rows(self.upper.step(projected, contexts.tensors))

    def value(self, contexts: Rows) -> Tensor:
        """The thought vector (B, D) of the upper level's top hidden state."""
        vector: Tensor = self.thought(self.upper.output(contexts.tensors))
        return vector
