"""How words are predicted: softmax over the vocabulary, with its own or tied weights.

A head owns its training loss, its normaliser and the scores of words. What a linear head
offers beside that, logits = weight · features(h, c) + bias with features linear in the hidden
state h (B, H) and in the context's value c (B, D), makes all pairs one matrix product:
features(h, c + d) = features(h, c) + features(0, d).
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import Backend
from lm.objective import Proposal, chunked_nll, exact_nll
from lm.prediction import LinearPredictor, Predictor
from lm.sentences import Positions


class Head(nn.Module):
    """Base of the heads.

    linear: whether logits are linear in h and c; normalised: whether the probabilities of all
    words sum to 1 exactly, so that no score is above 0.
    """

    linear: ClassVar[bool] = False
    normalised: ClassVar[bool] = True

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """(N, R) features of hidden states and of the values that fusion adds to them."""
        raise TypeError("a head defines its features")

    def at_positions(self, features: Tensor, positions: Positions) -> Tensor:
        """Features with what the head takes from the words read before; here nothing."""
        return features

    def sampler(self, counts: Tensor, samples: int) -> Proposal | None:
        """Negatives for `loss` from word counts (V,), or None where the loss needs none."""
        return None

    def loss(
        self,
        features: Tensor,
        targets: Tensor,
        sampler: Proposal | None,
        generator: torch.Generator,
    ) -> Tensor:
        """Training loss of each target, (N,) nats."""
        raise TypeError("a head defines its training loss")

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        """Exact −log p of each target, (N,) nats, without gradient."""
        raise TypeError("a head defines its likelihood")

    def predictor(self, backend: Backend) -> Predictor:
        """The head ready to score words."""
        raise TypeError("a head defines its predictor")

    def pair_predictor(self, backend: Backend) -> LinearPredictor | None:
        """The head ready to score words in many contexts by one product, if it is linear."""
        return None


class LinearHead(Head):
    """Base of the heads with an output matrix and a bias."""

    linear = True
    bias: nn.Parameter

    def weight(self) -> Tensor:
        """(V, R) matrix that multiplies `features`; logits = features · weightᵀ + bias."""
        raise TypeError("a linear head defines its matrix")

    def sampler(self, counts: Tensor, samples: int) -> Proposal | None:
        """Words by frequency; None for no samples, or for more than a quarter of V."""
        if not 0 < samples <= len(self.bias) // 4:
            return None
        return Proposal.from_counts(counts, samples)

    def loss(
        self,
        features: Tensor,
        targets: Tensor,
        sampler: Proposal | None,
        generator: torch.Generator,
    ) -> Tensor:
        """−log p by sampled softmax, or exact without a sampler."""
        if sampler is None:
            return exact_nll(features, self.weight(), self.bias, targets)
        return sampler.nll(features, self.weight(), self.bias, targets, generator)

    def nll(self, features: Tensor, targets: Tensor) -> Tensor:
        """Exact −log p, a block of positions at a time."""
        return chunked_nll(features, self.weight(), self.bias, targets)

    def predictor(self, backend: Backend) -> LinearPredictor:
        """The matrix with the bias as its last column."""
        weight = torch.cat([self.weight(), self.bias[:, None]], dim=1)
        return LinearPredictor(weight, backend)

    def pair_predictor(self, backend: Backend) -> LinearPredictor:
        """The same matrix."""
        return self.predictor(backend)


class Softmax(LinearHead):
    """Output matrix of its own: V(H + D + 1) parameters."""

    def __init__(self, hidden: int, context: int, embedding: nn.Embedding) -> None:
        super().__init__()
        words, bound = embedding.num_embeddings, (hidden + context) ** -0.5
        self.hidden = hidden
        self.output = nn.Parameter(torch.empty(words, hidden + context).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(words))

    def weight(self) -> Tensor:
        """The matrix of its own."""
        return self.output

    def features(self, h: Tensor, c: Tensor | None) -> Tensor:
        """Both side by side."""
        return h if c is None else torch.cat([h, c], dim=1)


class TiedSoftmax(LinearHead):
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


def softmax(hidden: int, context: int, embedding: nn.Embedding, *, tied: bool) -> Head:
    """The softmax over H and D columns, with the embedding as its matrix if `tied`."""
    return (TiedSoftmax if tied else Softmax)(hidden, context, embedding)
