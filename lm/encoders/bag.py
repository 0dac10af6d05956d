"""Sentences as bags of words: the sum of the embeddings, or their mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.encoders import Encoder
from lm.recurrences import Recurrence
from lm.sentences import embedding_sums


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
