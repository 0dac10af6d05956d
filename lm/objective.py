"""Negative log-likelihood of words as training minimises it: exact, or by sampled softmax.

The sampled form (after Bengio & Senécal 2008 and Jean et al. 2015, §3) draws each word as a
negative of an update with a probability π(word), and normalises over the target and the
negatives, each logit lowered by log π. For any π > 0 the optimum is that of the exact softmax
(as in ranking NCE, Ma & Collins 2018); π = 1 is the exact softmax.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lm.products import padded

CHUNK = 1 << 23  # logits held at once: 32 MB in float32


def exact_nll(features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """−log p of each target, (N,) nats; O(N · V · R) time."""
    return F.cross_entropy(F.linear(features, weight, bias).float(), targets, reduction="none")


@torch.no_grad()
def chunked_nll(features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """−log p of each target, (N,) nats, with at most `CHUNK` logits in memory."""
    rows = max(1, CHUNK // len(bias))
    parts = zip(torch.split(features, rows), torch.split(targets, rows), strict=True)
    return torch.cat([exact_nll(f, weight, bias, t) for f, t in parts])


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Probability (V,) with which each word is a negative of an update, independently."""

    inclusion: Tensor

    @classmethod
    def from_counts(cls, counts: Tensor, samples: int) -> Proposal:
        """Probabilities min(1, κ · (count + 1)^¾), κ such that `samples` negatives are expected."""
        weights = (counts.double() + 1.0) ** 0.75
        low, high = 0.0, float(1 / weights.min())
        for _ in range(100):
            middle = (low + high) / 2
            enough = float((middle * weights).clamp(max=1).sum()) >= samples
            low, high = (low, middle) if enough else (middle, high)
        return cls((high * weights).clamp(max=1).float())

    def nll(
        self,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """Sampled −log p of each target, (N,) nats; O(N · S · R) time."""
        chances = torch.rand(len(bias), generator=generator, device=bias.device)
        drawn = (chances < self.inclusion).nonzero()[:, 0]
        if not len(drawn):  # few are expected: nothing but the target, whose probability is 1
            return 0.0 * features.float().sum(1)
        offset = bias - torch.log(self.inclusion)
        place = targets.new_full((len(bias),), -1)
        place[drawn] = torch.arange(len(drawn), device=drawn.device)
        positive = (features.float() * weight[targets].float()).sum(1) + offset[targets]
        return sampled_nll(features, weight[drawn], offset[drawn], positive, place[targets])

    def log_normalisers(self, nll: Tensor, logits: Tensor, targets: Tensor) -> Tensor:
        """Log Ẑ (N,), with Ẑ an unbiased estimate of Σ_v exp(logit) from the same sample.

        nll: what `nll` gave; logits: (N,) of the targets. The sample's sum has exp(logit) / π of
        each negative and of the target, which is always in it: there it is replaced by exp(logit).
        """
        inclusion = self.inclusion[targets]
        return nll + logits - inclusion.log() + torch.log1p((inclusion - 1) * torch.exp(-nll))


def sampled_logits(
    features: Tensor, weight: Tensor, shifts: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Features (N, R) and weight (S, R) as they are multiplied, and their float32 logits (N, S).

    The product is in the dtype of `features`; in bfloat16 N and S are rounded up, with logits of
    −inf in the columns behind S.
    """
    low = weight.to(features.dtype)
    if low.dtype == torch.bfloat16:
        features, low = padded(features), padded(low)
        shifts = F.pad(shifts, (0, len(low) - len(weight)), value=-torch.inf)
    return features, low, (features @ low.T).float().add_(shifts)


class SampledNLL(torch.autograd.Function):
    """−log p of the positive among itself and the negatives, (N,) nats.

    features: (N, R); weight: (S, R), shifts: (S,) of distinct negatives; positive: (N,)
    logits; hits: (N,) index of the target among the negatives, or −1. Memory: one (N, S) array
    of probabilities for the gradient.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, shifts: Tensor, positive: Tensor, hits: Tensor
    ) -> Tensor:
        """O(N · S · R) time; products in the dtype of `features`."""
        n = len(features)
        features, low, whole = sampled_logits(features, weight, shifts)
        logits = whole[:n]
        rows = (hits >= 0).nonzero()[:, 0]
        logits[rows, hits[rows]] = -torch.inf
        top = torch.maximum(logits.amax(dim=1), positive)
        logits.sub_(top[:, None]).exp_()
        own = torch.exp(positive - top)
        total = logits.sum(dim=1) + own
        logits.div_(total[:, None])
        whole[n:] = 0.0
        ctx.negatives = len(weight)
        ctx.save_for_backward(features, low, whole.to(features.dtype), own / total)
        return top + torch.log(total) - positive

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of a logit is its probability, less one for the positive."""
        features, low, shares, own = ctx.saved_tensors
        (d,) = gradients
        n, s = len(d), ctx.negatives
        weighted = shares * F.pad(d, (0, len(shares) - n)).to(shares.dtype)[:, None]
        d_weight = (weighted.T @ features)[:s].float()
        return (weighted @ low)[:n], d_weight, weighted.float().sum(0)[:s], d * (own - 1), None


sampled_nll: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = SampledNLL.apply
