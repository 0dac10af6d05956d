"""The document context with the vector of the next target sentence."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lm.contexts.document_recurrence import DocumentRecurrence
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.side_information import words_of


class NextTarget(DocumentRecurrence):
    """h_{i−1} of `DocumentRecurrence`, and b_{i+1} = g(w_{i+1}) (Eisenstein's memo, eq. 13).

    Eq. 13 has h_{i+1} there, which by eq. 5 would contain sentence i itself: we take the vector of
    the next sentence alone, as in `NextSource`. After the last sentence of a document there is
    none, and the vector is that of no words. g is that of h. A product of these conditional
    probabilities over a document is a pseudo-likelihood (Besag 1975), no probability. Tensors of a
    context: the vector of the next sentence, then the state of f.
    """

    side_information: ClassVar[tuple[str, ...]] = ("next-target",)

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence, **named: Any) -> None:
        super().__init__(embedding, recurrence, **named)
        self.width = recurrence.hidden + self.encoder.width

    def start(self, batch: int) -> Rows:
        """h_0 for each row, and zeros."""
        state = super().start(batch).tensors
        return Rows.of(state[0].new_zeros(batch, self.encoder.width), *state)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """One step of f (eq. 5); the next sentence of the sentence after it enters later."""
        following, *state = contexts.tensors
        return Rows.of(following, *super().advance(Rows(tuple(state)), summary).tensors)

    def encoded(self, side: Rows) -> Rows:
        """Vectors g(w), (B, width of g), of the next sentences."""
        return Rows.of(self.encoder.encode(*words_of(side.tensors[0])))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states of f with the vectors of the next sentences."""
        return Rows.of(*encoded.tensors, *contexts.tensors[1:])

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1} and the vector of the next sentence, (B, D)."""
        following, *state = contexts.tensors
        return torch.cat([super().value(Rows(tuple(state))), following], dim=1)
