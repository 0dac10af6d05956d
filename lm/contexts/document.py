"""Sentences as vectors b = g(w) of an encoder: of the previous sentence, or a recurrence over all.

Those of the target side, of the source side, or of both. An encoder reads the words of a sentence,
and nothing else.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import linear
from lm.composition import ENCODERS, RECURRENCES, SOURCE_CONTEXTS, load
from lm.contexts import Context, GivenContext, learned_start
from lm.recurrences import Recurrence, packed
from lm.sentences import ReadSentences, Rows, embedding_sums
from lm.side_information import words_of

WINDOW = 3  # words


class Encoder(nn.Module):
    """Base of the sentence encoders.

    Constructors receive the embedding of the words, which the encoder shares with the word level (a
    second table would be most of an encoder's parameters), and a recurrence of the word level's
    kind and size, for its sizes.
    """

    merges_sentences: ClassVar[bool] = False  # different sentences may have equal vectors
    width: int  # columns of a vector

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__()
        self.embedding = embedding

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, width); words: (B, M) in reading order, behind padding by the mask."""
        raise TypeError("an encoder defines encode")

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Bytes that are equal for sentences of equal vectors; here the words."""
        return words.tobytes()


class SumEncoder(Encoder):
    """g(w) = Σ_n x_n: the sum (B, K) of the words' embeddings x_n, whatever their order.

    Zero for a sentence without words. No parameters. Embeddings are added in the order of the ids,
    so that equal bags have equal bits. O(B M K) time.
    """

    merges_sentences = True

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = embedding.embedding_dim

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Summed embeddings (B, K)."""
        bags = ((words + 1) * mask).sort(dim=1).values
        return embedding_sums(self.embedding.weight, bags - 1, bags > 0)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The sorted words: equal bags have equal vectors."""
        return np.sort(words).tobytes()


class BagEncoder(SumEncoder):
    """g(w) = Σ_n x_n / M: the mean (B, K) of the words' embeddings; zero without words."""

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Mean embeddings (B, K)."""
        return super().encode(words, mask) / mask.sum(dim=1, keepdim=True).clamp(min=1)


class ConvolutionalEncoder(Encoder):
    """g(w) = max_n tanh(W [x_{n−1}; x_n; x_{n+1}] + b): H filters, max-over-time pooling.

    The convolutional network of Kim 2014, https://aclanthology.org/D14-1181, eqs. 2–4, with one
    width of windows; the memo leaves the network open. There is a window around each word, with
    zeros beyond the ends of the sentence; without words the vector is zero. Parameters: 3KH + H.
    O(B M K H) time.
    """

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        self.filters = nn.Linear(WINDOW * embedding.embedding_dim, self.width)

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Largest responses (B, H) of the filters."""
        if not words.shape[1]:
            return self.filters.bias.new_zeros(len(words), self.width)
        x = self.embedding(words) * mask[:, :, None]
        columns = F.pad(x, (0, 0, WINDOW // 2, WINDOW // 2)).unfold(1, WINDOW, 1)
        windows = columns.transpose(2, 3).flatten(2)[mask]  # (N, 3K) of the words
        responses = torch.tanh(linear(windows, self.filters.weight, self.filters.bias).float())
        of_words = responses.new_full((*words.shape, self.width), -torch.inf)
        of_words[mask] = responses
        return of_words.amax(dim=1).masked_fill(~mask.any(dim=1, keepdim=True), 0.0)


class RecurrentEncoder(Encoder):
    """g(w): top hidden state (B, H) of a recurrence after the last word.

    The recurrence is of the word level's kind and size; it reads neither `<s>` nor `</s>`. Without
    words the vector is that of the state before any input. O(B M (H + K) H) time.
    """

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        self.reader = recurrence.like(embedding.embedding_dim)

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, H)."""
        reader, lengths = self.reader, mask.sum(dim=1)
        start = reader.start(len(words))
        row, time, sizes = packed(lengths)
        if not len(row):
            return reader.output(start)
        inputs = words[row, words.shape[1] - lengths[row] + time]
        projected = reader.project(self.embedding(inputs))
        hidden = reader.output(reader.unroll(projected, start, tuple(sizes.tolist())))
        last = time == lengths[row] - 1
        return reader.output(start).to(hidden.dtype).index_copy(0, row[last], hidden[last])


class Encodings(Context):
    """Base of the contexts that take from a sentence its vector b = g(w), a function of its words.

    g is the encoder `encoder` of `lm.composition.ENCODERS`, by default a convolution; the loss of
    the words trains it.
    """

    options: ClassVar[tuple[str, ...]] = ("encoder",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, encoder: str = "cnn"
    ) -> None:
        super().__init__(embedding, recurrence)
        self.encoder: Encoder = load(ENCODERS[encoder])(embedding, recurrence)
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
    word level's kind, as in the memo, and of its size. The loss of the words trains f and g,
    through all sentences of a segment. The memo says nothing of h_0: it is learned (H parameters),
    the hidden state of the top layer; others, and memory cells, begin as f does. Tensors of a
    context: the state of f.
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

    Eq. 13 has h_{i+1} there, which by eq. 5 would contain sentence i itself: here it is the vector
    of the next sentence alone; of no words after the last sentence of a document. g is that of h. A
    product of these conditional probabilities over a document is a pseudo-likelihood (Besag 1975),
    no probability. Tensors of a context: the vector of the next sentence, then the state of f.
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
        return torch.cat([h for h, kept in zip(both, self.chosen, strict=True) if kept], dim=1)


class NextSource(GivenContext):
    """The context of `SourceSentences`, and b_{i+1} = g(w_{i+1} of the source) (memo, eq. 13).

    Eq. 13 has h_{i+1} there; here it is the vector of the next sentence alone, as in `NextTarget`.
    g is that of the source context. Tensors of a context: the vectors of other sentences, then the
    source context.
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
        source = Rows(contexts.tensors[self.n_others :])
        entered = self.source.enter(source, Rows(encoded.tensors[:1]))
        return encoded.rest.beside(entered)

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

    Their encoders are of the same kind. Order 1. Tensors of a context: those of the
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
        source, previous = Rows(contexts.tensors[:-1]), Rows(contexts.tensors[-1:])
        return self.source.enter(source, encoded).beside(previous)

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
