"""The vector b = g(w) of an encoder: what is kept of the previous sentence, and of others."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from lm.contexts import Context, learned_start
from lm.encoders import encoder_of
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences


class Encodings(Context):
    """Base of the contexts that take from a sentence its vector b = g(w), a function of its words.

    g is the encoder `encoder` of `lm.composition.ENCODERS`, by default a convolution; the loss of
    the words trains it. It shares the embedding of the words (`lm.encoders.Encoder`).
    """

    options: ClassVar[tuple[str, ...]] = ("encoder",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, encoder: str = "cnn"
    ) -> None:
        super().__init__(embedding, recurrence)
        self.encoder = encoder_of(encoder, embedding, recurrence)
        self.merges_sentences = self.encoder.merges_sentences

    def summary(self, sentences: ReadSentences) -> Rows:
        """The vectors b (B, width of g)."""
        return Rows.of(self.encoder.encode(*sentences.words()))

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """That of the encoder."""
        return self.encoder.sentence_key(words)


class PreviousEncoding(Encodings):
    """h_{i−1} = g(w_{i−1}), without a recurrence over sentences (Eisenstein's memo, §3.1).

    The memo says nothing of the first sentence. Its context h_0 is learned, as c_0 of Ji et al.
    2016: a parameter for each column of g.
    """

    sentences = 1

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, encoder: str = "cnn"
    ) -> None:
        super().__init__(embedding, recurrence, encoder=encoder)
        self.width = self.encoder.width
        self.first = learned_start(self.width)

    def start(self, batch: int) -> Rows:
        """h_0 for each row."""
        return Rows.of(self.first.expand(batch, -1))
