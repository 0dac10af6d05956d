"""The source sentences and the previous target sentence as one context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context
from lm.contexts.document_recurrence import DocumentRecurrence
from lm.contexts.encodings import PreviousEncoding
from lm.contexts.source import SourceSentences
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences


class SourceAndPrevious(Context):
    """The source context and g(w_{i−1}) of the target side (Eisenstein's memo, §3.1).

    Both have encoders of their own, of one kind. Order 1. Tensors of a context: those of the
    source context, then the vector of the previous sentence.
    """

    sentences = 1
    side_information: ClassVar[tuple[str, ...]] = SourceSentences.side_information
    options: ClassVar[tuple[str, ...]] = SourceSentences.options

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, encoder: str = "cnn", **named: Any
    ) -> None:
        super().__init__(embedding, recurrence)
        self.source = SourceSentences(embedding, recurrence, encoder=encoder, **named)
        self.previous = PreviousEncoding(embedding, recurrence, encoder=encoder)
        self.width = self.source.width + self.previous.width
        self.merges_sentences = self.previous.merges_sentences

    @property
    def source_level(self) -> DocumentRecurrence:
        """The recurrence over source sentences, and their encoder."""
        return self.source.of_document

    def start(self, batch: int) -> Rows:
        """Both starts."""
        return _side_by_side(self.source.start(batch), self.previous.start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The vectors of target sentences."""
        return self.previous.summary(sentences)

    def encoded(self, side: Rows) -> Rows:
        """The vectors of source sentences."""
        return self.source.encoded(side)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The source context entered."""
        source, previous = _parted(contexts)
        return _side_by_side(self.source.enter(source, encoded), previous)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The source context unchanged, and the vectors of the sentences just read."""
        source, previous = _parted(contexts)
        return _side_by_side(source, self.previous.advance(previous, summary))

    def value(self, contexts: Rows) -> Tensor:
        """Both values, (B, D)."""
        source, previous = _parted(contexts)
        return torch.cat([self.source.value(source), self.previous.value(previous)], dim=1)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """That of the target side."""
        return self.previous.sentence_key(words)

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """That of the target side."""
        return self.previous.history_key(sentences)


def _side_by_side(source: Rows, previous: Rows) -> Rows:
    return Rows((*source.tensors, *previous.tensors))


def _parted(contexts: Rows) -> tuple[Rows, Rows]:
    """The rows of the source context, and the vector of the previous sentence."""
    return Rows(contexts.tensors[:-1]), Rows(contexts.tensors[-1:])
