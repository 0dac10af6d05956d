"""The source context with the vectors of other source sentences: the next one, the nucleus."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context
from lm.contexts.document_recurrence import DocumentRecurrence
from lm.contexts.source import SourceSentences
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.side_information import words_of


class NextSource(Context):
    """The context of `SourceSentences`, and b_{i+1} = g(w_{i+1} of the source) (memo, eq. 13).

    Eq. 13 of Eisenstein's memo has h_{i+1} there, which by eq. 5 would contain sentence i itself:
    we take the vector of the next sentence alone, from the source side. After the last sentence of
    a document there is none, and the vector is that of no words. g is that of the source context.
    Tensors of a context: the vectors of other sentences, then the source context.
    """

    sentences = 0
    side_information: ClassVar[tuple[str, ...]] = ("source", "next-source")
    options: ClassVar[tuple[str, ...]] = SourceSentences.options

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence, **named: Any) -> None:
        super().__init__(embedding, recurrence)
        self.source = SourceSentences(embedding, recurrence, **named)
        self.encoder_width = self.source.of_document.encoder.width
        self.n_others = len(self.side_information) - 1
        self.width = self.source.width + self.n_others * self.encoder_width

    @property
    def source_level(self) -> DocumentRecurrence:
        """The recurrence over source sentences, and their encoder."""
        return self.source.of_document

    def start(self, batch: int) -> Rows:
        """The start of the source context, and zeros."""
        zeros = self.get_buffer("empty").new_zeros(batch, self.encoder_width)
        return Rows.of(*[zeros] * self.n_others, *self.source.start(batch).tensors)

    def encoded(self, side: Rows) -> Rows:
        """Vectors g(w), (B, width of g), of source sentences and of the others."""
        encode = self.source.of_document.encoder.encode
        return Rows.of(*(encode(*words_of(words)) for words in side.tensors))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The source context entered, and the vectors of the other sentences."""
        own, *others = encoded.tensors
        source = Rows(contexts.tensors[self.n_others :])
        return Rows.of(*others, *self.source.enter(source, Rows.of(own)).tensors)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The contexts, unchanged: target sentences leave nothing."""
        return contexts

    def value(self, contexts: Rows) -> Tensor:
        """The value of the source context and the vectors of the others, (B, D)."""
        others, source = contexts.tensors[: self.n_others], contexts.tensors[self.n_others :]
        return torch.cat([self.source.value(Rows(source)), *others], dim=1)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Nothing: all target sentences leave equal contexts."""
        return b""


class NextAndParentSource(NextSource):
    """`NextSource`, and g(w_{Γ(i)} of the source), Γ(i) the nucleus of sentence i (memo, eq. 14).

    As there, the vector is that of the sentence alone; it is that of no words if Γ(i) is none.
    """

    side_information: ClassVar[tuple[str, ...]] = ("source", "next-source", "parent-source")
