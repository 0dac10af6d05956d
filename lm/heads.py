"""How words are predicted: softmax over the vocabulary, with its own or tied weights.

logits = weight · features(h, c) + bias, with the hidden state h (B, H) and, where fusion
adds the context to the output, its value c (B, D). Features are linear in both:
features(h, c + d) = features(h, c) + features(0, d), which the all-pairs product lives on.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Softmax(nn.Module):
    """Output matrix of its own: V(H + D + 1) parameters."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding) -> None:
        super().__init__()
        words, bound = embedding.num_embeddings, (hidden + context) ** -0.5
        self.hidden = hidden
        self.output = nn.Parameter(torch.empty(words, hidden + context).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(words))

    def weight(self) -> Tensor:
        """(V, R) matrix that multiplies `features`."""
        return self.output

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(B, R) features; logits = features · weightᵀ + bias."""
        return h if c is None else torch.cat([h, c], dim=1)


class TiedSoftmax(nn.Module):
    """Output matrix shared with the embeddings behind a projection: K(H + D) + V parameters.

    Press & Wolf 2017; the projection follows Inan et al. 2017.
    """

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding) -> None:
        super().__init__()
        words, columns = embedding.num_embeddings, hidden + context
        self.hidden = hidden
        self.embedding = embedding
        self.projection = nn.Linear(columns, embedding.embedding_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(words))

    def weight(self) -> Tensor:
        """(V, K) embedding matrix."""
        return self.embedding.weight

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(B, K) projected features."""
        both = h if c is None else torch.cat([h, c], dim=1)
        return F.linear(both, self.projection.weight)


Head = Softmax | TiedSoftmax
