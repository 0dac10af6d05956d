"""Sentences read by a convolution over windows of words."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.encoders import Encoder
from lm.products import linear
from lm.recurrences import Recurrence

WINDOW = 3  # words


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
