"""What a model keeps of the sentences before: the context that is handed on.

A context is one row of a (B, C) tensor, so that contexts are gathered by index.
`start` is the context of no sentence, and also the null context; `advance` is the context
after one more sentence, from that sentence's summary; `value` is what fusion sees.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from lm.recurrence import Recurrence


class Context(nn.Module):
    """Base of the contexts.

    size: C, columns of a context; width: columns of its value. `markov` tells that a
    context is a function of the previous sentence alone (as far as its summary is).
    `reads_words`: the summary is the sum of the sentence's word embeddings, not a state.
    """

    markov: ClassVar[bool] = True
    reads_words: ClassVar[bool] = False
    size = 0
    width = 0

    def start(self, batch: int) -> Tensor:
        """Contexts (batch, C) before any sentence."""
        raise TypeError("a context defines its start")

    def advance(self, context: Tensor, summary: Tensor) -> Tensor:
        """Contexts (B, C) after sentences with these summaries."""
        return summary

    def value(self, context: Tensor) -> Tensor:
        """What fusion adds to the model, (B, width)."""
        return context


class NoContext(Context):
    """Sentences are independent."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        self.register_buffer("device_of", recurrence.bias[0].new_zeros(0), persistent=False)

    def start(self, batch: int) -> Tensor:
        """Nothing, (batch, 0)."""
        return self.get_buffer("device_of").new_zeros(batch, 0)


class LastHidden(Context):
    """Top hidden state after the previous sentence's last word (Ji et al. 2016, eq. 3).

    The first sentence's context c_0 is learned (H parameters).
    """

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        self.size = self.width = recurrence.hidden
        self.first = nn.Parameter(torch.empty(self.size).uniform_(-0.1, 0.1))

    def start(self, batch: int) -> Tensor:
        """c_0 for each row."""
        return self.first.expand(batch, -1)


class CarriedState(Context):
    """The whole recurrent state after the last word (the document RNNLM); starts at zero."""

    def __init__(self, recurrence: Recurrence) -> None:
        super().__init__()
        self.size = self.width = 2 * recurrence.layers * recurrence.hidden
        self.register_buffer("device_of", recurrence.bias[0].new_zeros(0), persistent=False)

    def start(self, batch: int) -> Tensor:
        """Zero states."""
        return self.get_buffer("device_of").new_zeros(batch, self.size)


class SentenceRecurrence(Context):
    """A recurrence over sentences, each the sum of its word embeddings.

    The HRNNLM in the LSTM form of Ji et al. 2016: the sentence level learns only to
    predict the words of the next sentence (`next_word_logits`); the word level receives its
    top hidden state as data, without gradient, and a learned c_0 before the first sentence.
    Columns of a context: [value (H) | recurrent state (2 · layers · H)].
    """

    markov = False
    reads_words = True

    def __init__(self, recurrence: Recurrence, *, embed: int, vocabulary: int) -> None:
        super().__init__()
        self.upper = type(recurrence)(embed, recurrence.hidden, recurrence.layers)
        self.width = recurrence.hidden
        self.size = self.width * (1 + 2 * recurrence.layers)
        self.first = nn.Parameter(torch.empty(self.width).uniform_(-0.1, 0.1))
        self.next_words = nn.Linear(self.width, vocabulary)

    def start(self, batch: int) -> Tensor:
        """[c_0 | zero state] for each row."""
        zeros = self.first.new_zeros(batch, self.size - self.width)
        return torch.cat([self.first.expand(batch, -1), zeros], dim=1)

    def advance(self, context: Tensor, summary: Tensor) -> Tensor:
        """One step of the sentence level on the summed embeddings (B, K), held constant."""
        state = tuple(context[:, self.width :].chunk(2 * self.upper.layers, dim=1))
        state = self.upper.step(self.upper.project(summary.detach()), state)
        return torch.cat([self.upper.output(state).detach(), *state], dim=1)

    def value(self, context: Tensor) -> Tensor:
        """Top hidden state of the sentence level, without gradient; c_0 at the start."""
        return context[:, : self.width]

    def next_word_logits(self, context: Tensor) -> Tensor:
        """Logits (B, V) of any word of the next sentence, with the sentence level's gradient."""
        top = context[:, self.size - 2 * self.width : self.size - self.width]
        logits: Tensor = self.next_words(top)
        return logits
