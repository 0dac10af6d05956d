"""Sentences as vectors b = g(w) of an encoder: the previous one, or a recurrence over all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.composition import RECURRENCES, load
from lm.contexts import Context, learned_start
from lm.encoders import encoder_of
from lm.recurrences import Recurrence
from lm.sentences import ReadSentences, Rows
from lm.side_information import words_of


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
    first: nn.Parameter

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
        return Rows.of(contexts.tensors[0], *super().advance(contexts.rest, summary).tensors)

    def encoded(self, side: Rows) -> Rows:
        """Vectors g(w), (B, width of g), of the next sentences."""
        return Rows.of(self.encoder.encode(*words_of(side.tensors[0])))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states of f with the vectors of the next sentences."""
        return encoded.beside(contexts.rest)

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1} and the vector of the next sentence, (B, D)."""
        return torch.cat([super().value(contexts.rest), contexts.tensors[0]], dim=1)
