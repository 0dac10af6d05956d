"""Classifiers of the relation between two sentences, from their contexts (Eisenstein's memo)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.products import linear


class Bilinear(nn.Module):
    """Logits h_iᵀ Θ_d h_{i−1} with a matrix Θ_d (H, H) for each label d (memo, eq. 11).

    The memo's Θ must be a tensor of as many matrices as there are labels. H² parameters a label;
    O(B H²) time a label.
    """

    def __init__(self, labels: int, hidden: int) -> None:
        super().__init__()
        bound = hidden**-0.5
        self.matrices = nn.Parameter(torch.empty(labels, hidden, hidden).uniform_(-bound, bound))

    def forward(self, h: Tensor, before: Tensor) -> Tensor:
        """Logits (B, labels) from h_i and h_{i−1}, (B, H)."""
        products = linear(before, self.matrices.flatten(0, 1)).view(len(h), -1, h.shape[1])
        return (products.float() * h[:, None].float()).sum(dim=2)


class Perceptron(nn.Module):
    """Logits W_2 tanh(W_1 [h_i; h_{i−1}] + b_1) + b_2 with H hidden units (memo, eq. 12).

    The memo says "MLP" alone: one hidden layer of the size of h is ours. H(2H + 1) parameters and
    H + 1 a label; O(B H²) time.
    """

    def __init__(self, labels: int, hidden: int) -> None:
        super().__init__()
        self.units = nn.Linear(2 * hidden, hidden)
        self.labels = nn.Linear(hidden, labels)

    def forward(self, h: Tensor, before: Tensor) -> Tensor:
        """Logits (B, labels) from h_i and h_{i−1}, (B, H)."""
        pairs = torch.cat([h, before], dim=1)
        units = torch.tanh(linear(pairs, self.units.weight, self.units.bias).float())
        return linear(units, self.labels.weight, self.labels.bias).float()
