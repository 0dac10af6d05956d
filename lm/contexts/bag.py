"""The words of the last few sentences, whatever their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.contexts import Context
from lm.recurrences import Recurrence
from lm.rows import Rows
from lm.sentences import ReadSentences, embedding_sums


class BagOfWords(Context):
    """Sum of the embeddings of all words of the last n sentences, with a separate table.

    Documents begin with empty bags, whose sum is zero. A context holds the words
    (B, M, n) of each sentence as 1 + id in descending order, 0 where there is none; embeddings
    are added in the order of the ids, so that equal sums have equal bits. Parameters: VK.
    """

    averages = False
    merges_sentences = True

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, sentences: int = 1
    ) -> None:
        super().__init__(embedding, recurrence)
        self.sentences = self.bags = sentences
        self.width = embedding.embedding_dim
        self.table = nn.Parameter(torch.empty_like(embedding.weight).uniform_(-0.1, 0.1))

    def start(self, batch: int) -> Rows:
        """Empty bags."""
        empty = self.get_buffer("empty")
        return Rows.of(torch.zeros(batch, 0, self.bags, dtype=torch.long, device=empty.device))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The sorted words (B, M) of each sentence, as a context holds them."""
        words, mask = sentences.words()
        return Rows.of(((words + 1) * mask).sort(dim=1, descending=True).values)

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The last bag after the n − 1 before it."""
        newest = Rows.of(summary.tensors[0][:, :, None])
        (older,) = contexts.tensors
        slots = [Rows.of(bag) for bag in torch.split(older, 1, dim=2)[1:]]
        # bags of different sizes are padded to the same number of words
        padded = torch.tensor_split(Rows.cat([*slots, newest]).tensors[0], self.bags)
        return Rows.of(torch.cat(padded, dim=2))

    def value(self, contexts: Rows) -> Tensor:
        """Summed embeddings (B, K)."""
        return self.sums(contexts.tensors[0].flatten(1).sort(dim=1).values)

    def sums(self, bags: Tensor) -> Tensor:
        """Summed embeddings (B, K) of sorted bags (B, M), as contexts hold them."""
        return embedding_sums(self.table, bags - 1, bags > 0)

    def means(self, bags: Tensor) -> Tensor:
        """P s (B, K) of sorted bags (B, M): s has the frequencies of their words; 0 if empty."""
        return self.sums(bags) / (bags > 0).sum(dim=1, keepdim=True).clamp(min=1)

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """The sorted words: equal bags are equal contexts."""
        return np.sort(words).tobytes()

    def history_key(self, sentences: Sequence[bytes]) -> bytes:
        """The sorted words of all sentences: equal sums give equal scores."""
        return np.sort(np.frombuffer(b"".join(sentences), dtype=np.int32)).tobytes()


class WordFrequencies(BagOfWords):
    """Relative frequencies s of the words of the last n sentences, projected: p = P s.

    The BoW context of Wang & Cho 2015, arXiv:1511.03729, §3.1: the sentences are one bag, whose
    counts are divided by their sum. p is zero at the beginning of a document.
    """

    def value(self, contexts: Rows) -> Tensor:
        """P s, (B, K)."""
        return self.means(contexts.tensors[0].flatten(1).sort(dim=1).values)
