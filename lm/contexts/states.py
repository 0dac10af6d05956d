"""The hidden states in which earlier sentences ended, whole, projected, or read by a recurrence.

The thought vectors of Ghosh et al. 2016, arXiv:1602.06291, §5.4 and §8, are embeddings of the
previous sentence's last state, denoised by "roundoff-based projection", which the paper does not
define: here numbers are rounded in training, and not when a model is used, where the last bit of a
state, which differs between batches, must not decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context, Prepared, learned_start
from lm.recurrences import Recurrence, State
from lm.sentences import ReadSentences, Rows

STEPS = 8  # of rounding, between 0 and 1


class LastHidden(Context):
    """Top hidden state after the previous sentence's last word (Ji et al. 2016, eq. 3).

    The state before a document, c_0, is learned (H parameters), and stands for each sentence that
    is missing. Tensors of a context: the last `number` states (B, H), the oldest first.
    """

    reads_states = True
    number: ClassVar[int] = 1

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = self.number * recurrence.hidden
        self.first = learned_start(recurrence.hidden)

    def start(self, batch: int) -> Rows:
        """The learned state n times."""
        return Rows(super().start(batch).tensors * self.number)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The states but for the oldest, and that of the sentence that was read."""
        return contexts.rest.beside(summary)

    def value(self, contexts: Rows) -> Tensor:
        """The states side by side, (B, n · H)."""
        return torch.cat(contexts.tensors, dim=1)


class LastTwoHidden(LastHidden):
    """Top hidden states after the last words of the previous two sentences, side by side.

    The context of the sentence-sensitive RNNLM of Eisenstein's memo, §1.
    """

    sentences = 2
    number = 2


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
        return _zero_state(self, self.widths, batch)

    def state(self, contexts: Rows) -> State:
        """The carried state."""
        return contexts.tensors

    def value(self, contexts: Rows) -> Tensor:
        """The state's tensors side by side."""
        return torch.cat(contexts.tensors, dim=1)


def _zero_state(context: Context, widths: Sequence[int], batch: int) -> Rows:
    empty = context.get_buffer("empty")
    return Rows.of(*(empty.new_zeros(batch, width) for width in widths))


class BesideState(Context):
    """Mixin before the class of a context: a sentence also begins in the state before it.

    Tensors of a context: those of the state after the previous sentence, then the other class's.
    """

    reads_states = True
    carries_state = True
    may_carry_state = False
    merges_sentences = False

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence, **options: Any) -> None:
        super().__init__(embedding, recurrence, **options)
        self.widths = [tensor.shape[1] for tensor in recurrence.start(1)]

    def start(self, batch: int) -> Rows:
        """Zeros for each tensor of the state, and the other class's beginning."""
        return _zero_state(self, self.widths, batch).beside(super().start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The state after the last word, and what the other class takes."""
        return Rows(sentences.last().recurrent).beside(super().summary(sentences))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The state of the summary."""
        following = super().advance(self._others(contexts), self._others(summary))
        return Rows(self.state(summary)).beside(following)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The state stays."""
        return Rows(self.state(contexts)).beside(super().enter(self._others(contexts), encoded))

    def state(self, contexts: Rows) -> State:
        """The carried state."""
        return contexts.tensors[: len(self.widths)]

    def value(self, contexts: Rows) -> Tensor:
        """The other class's."""
        return super().value(self._others(contexts))

    def prepared(self, contexts: Rows) -> Prepared:
        """The other class's."""
        return super().prepared(self._others(contexts))

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The words."""
        return words.tobytes()

    def _others(self, rows: Rows) -> Rows:
        return Rows(rows.tensors[len(self.widths) :])


@cache
def carrying(context: type[Context]) -> type[Context]:
    """The class of contexts that carry the state beside what this class keeps."""
    return type(f"{context.__name__}BesideState", (BesideState, context), {})


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
    and size. The paper only draws it: here the word level begins anew in every sentence. Tensors of
    a context: the state of the upper level.
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

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of the upper level."""
        projected = self.upper.project(summary.tensors[0])
        return Rows(self.upper.step(projected, contexts.tensors))

    def value(self, contexts: Rows) -> Tensor:
        """The thought vector (B, D) of the upper level's top hidden state."""
        vector: Tensor = self.thought(self.upper.output(contexts.tensors))
        return vector
