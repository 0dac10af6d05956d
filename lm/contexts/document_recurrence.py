"""A recurrence over the vectors of all earlier sentences: the document context of the memo."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor, nn

from lm.composition import RECURRENCES, load
from lm.contexts import learned_start
from lm.contexts.encodings import Encodings
from lm.recurrences import Recurrence
from lm.rows import Rows


class DocumentRecurrence(Encodings):
    """h_i = f(b_i, h_{i−1}) with b_i = g(w_i) (Eisenstein's memo, eqs. 4–5).

    f is the recurrence `sentence_recurrence` of `lm.composition.RECURRENCES`, by default of the
    word level's kind, as in the memo; it has as many units and layers as the word level. Unlike in
    `SentenceRecurrence`, the loss of the words trains f and g, through all sentences of a segment.
    The memo says nothing of h_0: it is learned (H parameters), the hidden state of the top layer
    before the first sentence; others, and memory cells, begin as f does. Tensors of a context: the
    state of f.
    """

    sentences = None
    options: ClassVar[tuple[str, ...]] = ("encoder", "sentence_recurrence")

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        encoder: str = "cnn",
        sentence_recurrence: str | None = None,
    ) -> None:
        super().__init__(embedding, recurrence, encoder=encoder)
        self.width, columns = recurrence.hidden, self.encoder.width
        self.level: Recurrence
        if sentence_recurrence is None:
            self.level = recurrence.like(columns)
        else:
            cell = load(RECURRENCES[sentence_recurrence])
            self.level = cell(columns, recurrence.hidden, recurrence.layers)
        self.first = learned_start(self.width)

    def start(self, batch: int) -> Rows:
        """h_0 for each row."""
        state = list(self.level.start(batch))
        state[-self.level.tensors] = self.first.expand(batch, -1)
        return Rows.of(*state)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of f (eq. 5)."""
        (encodings,) = summary.tensors
        return Rows(self.level.step(self.level.project(encodings), contexts.tensors))

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1}, (B, H)."""
        return self.level.output(contexts.tensors)
