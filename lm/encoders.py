"""How a sentence becomes a vector b = g(w).

An encoder reads the words of a sentence, and nothing else. `lm.composition.ENCODERS` names them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import linear
from lm.composition import ENCODERS, load
from lm.recurrences import Recurrence
from lm.sentences import embedding_sums

WINDOW = 3  # words


class Encoder(nn.Module):
    """Base of the sentence encoders.

    width: columns of a vector. merges_sentences: whether different sentences may have equal
    vectors, as `sentence_key` says. Constructors receive the embedding of the words, which an
    encoder shares with whatever else has it, and a recurrence of the word level's kind and size,
    for its sizes.

    The encoder of target sentences shares the embedding of the word level: no paper gives a word
    two of them, and a table of its own would be most of an encoder's parameters. Sentences of
    another language come with the embedding of their own vocabulary.
    """

    merges_sentences: ClassVar[bool] = False
    width: int

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__()
        self.embedding = embedding

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Vectors (B, width) of sentences; of a sentence without words, those of no input.

        words: (B, M) ids in reading order, padded at the beginning; mask: (B, M), true for words.
        `<s>` and `</s>` are not among them.
        """
        raise TypeError("an encoder defines encode")

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """Bytes that are equal for sentences of equal vectors; here the words."""
        return words.tobytes()


def encoder_of(name: str, embedding: nn.Embedding, recurrence: Recurrence) -> Encoder:
    """The encoder of a name of `lm.composition.ENCODERS`."""
    encoder: Encoder = load(ENCODERS[name])(embedding, recurrence)
    return encoder


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
    zeros beyond the ends of the sentence, so that one word is enough; without words the vector is
    zero. Parameters: 3KH + H. O(B M K H) time.
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

    The recurrence is of the word level's kind and size, with weights of its own; it reads neither
    `<s>` nor `</s>`. Without words the vector is that of the state before any input.
    Parameters: those of the recurrence over K inputs. O(B M (H + K) H) time.
    """

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        self.reader = recurrence.like(embedding.embedding_dim)

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, H)."""
        reader, lengths = self.reader, mask.sum(dim=1)
        start = reader.start(len(words))
        order = torch.argsort(lengths, descending=True, stable=True)
        packed, sizes = _packed(words[order], mask[order])
        if not len(packed):
            return reader.output(start)
        projected = reader.project(self.embedding(packed))
        hidden = reader.output(reader.unroll(projected, start, tuple(sizes.tolist())))
        first = sizes.cumsum(0) - sizes  # position of the longest sentence at each time step
        place = torch.arange(int(sizes[0]), device=words.device)  # of each sentence with words
        last = hidden[first[lengths[order][place] - 1] + place]
        return torch.cat([last, reader.output(start)[len(last) :]])[torch.argsort(order)]


def _packed(words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Words (N,) by time step, the longest sentence first, and sentences (T,) at each step.

    words: (B, M) of sentences in descending order of their lengths, padded at the beginning; mask:
    true for words.
    """
    time = torch.arange(words.shape[1], device=words.device)
    present = time < mask.sum(dim=1, keepdim=True)
    aligned = torch.zeros_like(words)
    aligned[present] = words[mask]
    sizes = present.sum(dim=0)
    return aligned.T[present.T], sizes[sizes > 0]
