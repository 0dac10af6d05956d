"""Sentences as vectors b = g(w) of an encoder: the previous one, or a recurrence over all.

Those of the target side, of the source side, or of both.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.composition import RECURRENCES, SOURCE_CONTEXTS, load
from lm.contexts import Context, GivenContext, learned_start
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

    def encoded(self, side: Rows) -> Rows:
        """Vectors (B, width of g) of each kind of sentences that side information has."""
        return Rows.of(*(self.encoder.encode(*words_of(words)) for words in side.tensors))

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
        name = sentence_recurrence
        cell = type(recurrence) if name is None else load(RECURRENCES[name])
        self.width = recurrence.hidden
        self.level: Recurrence = cell(self.encoder.width, self.width, recurrence.layers)
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

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states of f with the vectors of the next sentences."""
        return encoded.beside(contexts.rest)

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1} and the vector of the next sentence, (B, D)."""
        return torch.cat([super().value(contexts.rest), contexts.tensors[0]], dim=1)


class SourceSentences(GivenContext):
    """h_i = f(g(w_i of the source), h_{i−1}) (Eisenstein's memo, §2.1, eqs. 6–8).

    g and f are those of `DocumentRecurrence`, over embeddings of source words. The memo conditions
    sentence i on h_{i−1} (`previous`); the source of sentence i itself is known, too (`current`,
    `both`, the default). Tensors of a context: h_{i−1}, then the state of f after sentence i.
    """

    side_information: ClassVar[tuple[str, ...]] = ("source",)
    options: ClassVar[tuple[str, ...]] = (
        *DocumentRecurrence.options,
        *("source_words", "source_context"),
    )

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        source_words: int,
        source_context: str = "both",
        **named: Any,
    ) -> None:
        super().__init__(embedding, recurrence)
        words = nn.Embedding(source_words, embedding.embedding_dim)
        nn.init.uniform_(words.weight, -0.1, 0.1)
        self.of_document = DocumentRecurrence(words, recurrence, **named)
        self.chosen = SOURCE_CONTEXTS[source_context]
        self.width = sum(self.chosen) * self.of_document.width

    @property
    def source_level(self) -> DocumentRecurrence:
        """The recurrence over source sentences, and their encoder."""
        return self.of_document

    def start(self, batch: int) -> Rows:
        """h_0 for each row, before any sentence."""
        start = self.of_document.start(batch)
        return Rows.of(self.of_document.value(start), *start.tensors)

    def encoded(self, side: Rows) -> Rows:
        """Vectors g(w), (B, width of g), of source sentences."""
        return self.of_document.encoded(side)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """One step of f: h_i becomes h_{i−1}, and the sentences' vectors enter."""
        state = contexts.rest
        following = self.of_document.advance(state, encoded)
        return Rows.of(self.of_document.value(state), *following.tensors)

    def value(self, contexts: Rows) -> Tensor:
        """h_{i−1}, h_i, or both, (B, H) or (B, 2H)."""
        both = contexts.tensors[0], self.of_document.value(contexts.rest)
        return torch.cat([h for h, given in zip(both, self.chosen, strict=True) if given], dim=1)


class NextSource(GivenContext):
    """The context of `SourceSentences`, and b_{i+1} = g(w_{i+1} of the source) (memo, eq. 13).

    Eq. 13 of Eisenstein's memo has h_{i+1} there. Its reason on the target side, that h_{i+1} would
    contain sentence i itself (eq. 5), does not hold for the source, which is all known; here it is
    the vector of the next sentence alone, as in `NextTarget`. After the last sentence of a document
    there is none, and the vector is that of no words. g is that of the source context.
    Tensors of a context: the vectors of other sentences, then the source context.
    """

    side_information: ClassVar[tuple[str, ...]] = ("source", "next-source")
    options: ClassVar[tuple[str, ...]] = SourceSentences.options

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence, **named: Any) -> None:
        super().__init__(embedding, recurrence)
        self.source = SourceSentences(embedding, recurrence, **named)
        self.encoder_width = self.source.of_document.encoder.width
        self.n_others = len(self.side_information) - 1
        self.width = self.source.width + self.n_others * self.encoder_width

    def start(self, batch: int) -> Rows:
        """The start of the source context, and zeros."""
        zeros = self.get_buffer("empty").new_zeros(batch, self.encoder_width)
        return Rows.of(*[zeros] * self.n_others, *self.source.start(batch).tensors)

    def encoded(self, side: Rows) -> Rows:
        """Vectors g(w), (B, width of g), of source sentences and of the others."""
        return self.source.encoded(side)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The source context entered, and the vectors of the other sentences."""
        own, *others = encoded.tensors
        source = Rows(contexts.tensors[self.n_others :])
        return Rows.of(*others, *self.source.enter(source, Rows.of(own)).tensors)

    def value(self, contexts: Rows) -> Tensor:
        """The value of the source context and the vectors of the others, (B, D)."""
        others, source = contexts.tensors[: self.n_others], contexts.tensors[self.n_others :]
        return torch.cat([self.source.value(Rows(source)), *others], dim=1)


class NextAndParentSource(NextSource):
    """`NextSource`, and g(w_{Γ(i)} of the source), Γ(i) the nucleus of sentence i (memo, eq. 14).

    As there, the vector is that of the sentence alone; it is that of no words if Γ(i) is none.
    """

    side_information: ClassVar[tuple[str, ...]] = ("source", "next-source", "parent-source")


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

    def start(self, batch: int) -> Rows:
        """Both starts."""
        return self.source.start(batch).beside(self.previous.start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The vectors of target sentences."""
        return self.previous.summary(sentences)

    def encoded(self, side: Rows) -> Rows:
        """The vectors of source sentences."""
        return self.source.encoded(side)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The source context entered."""
        *source, previous = contexts.tensors
        return self.source.enter(Rows.of(*source), encoded).beside(Rows.of(previous))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The source context unchanged, and the vectors of the sentences just read."""
        return Rows(contexts.tensors[:-1]).beside(summary)

    def value(self, contexts: Rows) -> Tensor:
        """Both values, (B, D)."""
        *source, previous = contexts.tensors
        return torch.cat([self.source.value(Rows.of(*source)), previous], dim=1)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """That of the target side."""
        return self.previous.sentence_key(words)
