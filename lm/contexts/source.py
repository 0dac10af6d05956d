"""Source sentences as context: alone, with others, or with the previous target sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.composition import SOURCE_CONTEXTS
from lm.contexts import Context, GivenContext
from lm.contexts.document import DocumentRecurrence, PreviousEncoding
from lm.recurrences import Recurrence
from lm.sentences import ReadSentences, Rows
from lm.side_information import words_of


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
        encoder: str = "cnn",
        sentence_recurrence: str | None = None,
    ) -> None:
        super().__init__(embedding, recurrence)
        words = nn.Embedding(source_words, embedding.embedding_dim)
        nn.init.uniform_(words.weight, -0.1, 0.1)
        self.of_document = DocumentRecurrence(
            words, recurrence, encoder=encoder, sentence_recurrence=sentence_recurrence
        )
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
        return Rows.of(self.of_document.encoder.encode(*words_of(side.tensors[0])))

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

    Eq. 13 of Eisenstein's memo has h_{i+1} there, which by eq. 5 would contain sentence i itself:
    we take the vector of the next sentence alone, from the source side. After the last sentence of
    a document there is none, and the vector is that of no words. g is that of the source context.
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

    @property
    def source_level(self) -> DocumentRecurrence:
        """The recurrence over source sentences, and their encoder."""
        return self.source.of_document

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
        source, previous = self._parted(contexts)
        return self.source.enter(source, encoded).beside(previous)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The source context unchanged, and the vectors of the sentences just read."""
        source, previous = self._parted(contexts)
        return source.beside(self.previous.advance(previous, summary))

    def value(self, contexts: Rows) -> Tensor:
        """Both values, (B, D)."""
        source, previous = self._parted(contexts)
        return torch.cat([self.source.value(source), self.previous.value(previous)], dim=1)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """That of the target side."""
        return self.previous.sentence_key(words)

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """That of the target side."""
        return self.previous.history_key(sentences)

    def _parted(self, contexts: Rows) -> tuple[Rows, Rows]:
        """The rows of the source context, and the vector of the previous sentence."""
        return Rows(contexts.tensors[:-1]), Rows(contexts.tensors[-1:])
