"""Losses of words that training minimises: exact, sampled softmax, noise-contrastive estimation.

The sampled form (after Bengio & Senécal 2008 and Jean et al. 2015, §3) draws each word as a
negative of an update with a probability π(word), and normalises over the target and the
negatives, each logit lowered by log π. For any π > 0 the optimum is that of the exact softmax
(as in ranking NCE, Ma & Collins 2018); π = 1 is the exact softmax.

Noise-contrastive estimation trains a model to tell words of the text from noise words: Gutmann &
Hyvärinen 2010; for language models Mnih & Teh 2012, §3 (https://arxiv.org/abs/1206.6426). A target
w stands among k noise words of a distribution q. With the score s of the unnormalised model
p̃ = exp(s), a word of this sample is the target with

    p(D = 1 | w) = p̃(w) / (p̃(w) + k q(w)) = σ(Δ(w)),   Δ(w) = s(w) − log k q(w),

and the loss is −log σ(Δ(w)) − Σ log σ(−Δ(v)) over the noise words v. The gradient of a logit of v
has the expectation (p̃(v) − p(v)) · k q(v) / (p̃(v) + k q(v)), which for large k is that of maximum
likelihood with log Z = 0. No normaliser is computed: log Z is fixed at 0 (§3.1), where training
has to begin: from log Z = log V perplexity was 1,588 instead of 90.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lm.backend import padded

CHUNK = 1 << 23  # logits held at once: 32 MB in float32


def exact_nll(features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """−log p of each target, (N,) nats; O(N · V · R) time."""
    return cross_entropy(F.linear(features, weight, bias).float(), targets)


class CrossEntropy(torch.autograd.Function):
    """−log p (N,) of targets (N,) by the softmax of logits (N, V), which are overwritten.

    The softmax is computed once, for the gradient as for the loss, and in place; torch computes its
    logarithm, and the exponentials of that again, in new memory.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        """O(N · V) time; log Z = top logit − log p(top word), which is at least 1 / V."""
        top, chosen = logits.amax(dim=1), logits.gather(1, targets[:, None])[:, 0]
        shares = torch.softmax(logits, dim=1, out=logits)
        ctx.shares, ctx.targets = shares, targets
        return top - shares.amax(dim=1).log() - chosen

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient of a logit is its probability, less one for the target; computed once."""
        (d,), shares, ctx.shares = gradients, ctx.shares, None
        d = d[:, None]
        return shares.mul_(d).scatter_add_(1, ctx.targets[:, None], -d), None


cross_entropy: Callable[[Tensor, Tensor], Tensor] = CrossEntropy.apply


@torch.no_grad()
def chunked_nll(features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> Tensor:
    """−log p of each target, (N,) nats, with at most `CHUNK` logits in memory."""
    rows = max(1, CHUNK // len(bias))
    parts = zip(torch.split(features, rows), torch.split(targets, rows), strict=True)
    each = (
        F.cross_entropy(F.linear(f, weight, bias).float(), t, reduction="none") for f, t in parts
    )
    return torch.cat(list(each))


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """Probability (V,) with which each word is a negative of an update, independently."""

    inclusion: Tensor

    @classmethod
    def from_counts(cls, counts: Tensor, samples: int) -> Proposal:
        """Probabilities min(1, κ · (count + 1)^¾), κ such that `samples` negatives are expected."""
        weights = (counts.cpu().double() + 1.0) ** 0.75
        low, high = 0.0, float(1 / weights.min())
        for _ in range(100):
            middle = (low + high) / 2
            enough = float((middle * weights).clamp(max=1).sum()) >= samples
            low, high = (low, middle) if enough else (middle, high)
        return cls((high * weights).clamp(max=1).float().to(counts.device))

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
    logits; hits: (N,) index of the target among the negatives, or −1. Memory: (N, S) for the
    gradient.
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
        of_positive = torch.exp(positive - top)
        total = logits.sum(dim=1) + of_positive
        logits.div_(total[:, None])
        whole[n:] = 0.0
        ctx.negatives = len(weight)
        ctx.save_for_backward(features, low, whole.to(features.dtype), of_positive / total)
        return top + torch.log(total) - positive

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of a logit is its probability, less one for the positive."""
        features, low, shares, share = ctx.saved_tensors
        (d,) = gradients
        n, s = len(d), ctx.negatives
        weighted = shares * F.pad(d, (0, len(shares) - n)).to(shares.dtype)[:, None]
        d_weight = (weighted.T @ features)[:s].float()
        return (weighted @ low)[:n], d_weight, weighted.float().sum(0)[:s], d * (share - 1), None


sampled_nll: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = SampledNLL.apply


@dataclass(frozen=True, slots=True, eq=False)
class NoiseDistribution:
    """Where noise words come from: expected (V,) is k q, how often each is among k noise words.

    All targets of an update share them, as in Zoph et al. 2016
    (https://aclanthology.org/N16-1145): the gradient has no bias, but its variance no longer falls
    with the number of targets. In return a single matrix product serves all targets, and k may be a
    thousand where Mnih & Teh have 25.

    A word is drawn with probability min(1, k q), independently of the others, and then counts
    max(1, k q) times: k q times in expectation, as among k words drawn with replacement.
    """

    expected: Tensor

    @classmethod
    def from_counts(cls, counts: Tensor, samples: int) -> NoiseDistribution:
        """`samples` noise words of the unigram distribution q ∝ count + 1 (Mnih & Teh 2012)."""
        if samples < 1:
            raise ValueError(f"NCE: expected at least 1 noise word, found {samples}")
        weights = counts.cpu().double() + 1.0
        return cls((samples * weights / weights.sum()).float().to(counts.device))

    def loss(
        self,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        generator: torch.Generator,
    ) -> Tensor:
        """NCE loss of each target, (N,) nats; O(N · S · R) time for S distinct noise words.

        bias: of scores with log Z = 0. S is Σ min(1, k q) in the mean.
        """
        chances = torch.rand(len(bias), generator=generator, device=bias.device)
        drawn = (chances < self.expected).nonzero()[:, 0]
        shifts = bias - torch.log(self.expected)
        positive = (features.float() * weight[targets].float()).sum(1) + shifts[targets]
        times = self.expected[drawn].clamp(min=1.0)
        return contrast(features, weight[drawn], shifts[drawn], positive, times)


def contrast(
    features: Tensor, weight: Tensor, shifts: Tensor, positive: Tensor, times: Tensor
) -> Tensor:
    """−log σ(positive) − Σ times · log σ(−Δ) over the noise words, (N,) nats; O(N · S · R) time.

    features: (N, R); weight: (S, R), shifts: (S,) and times: (S,) of distinct noise words, whose
    Δ is features · weightᵀ + shifts; positive: (N,) Δ of the targets. Products in the dtype of
    `features`. Memory: O(N · S) for the gradient, which autograd finds: writing it out saves no
    more than 2 % of an update.
    """
    *_, deltas = sampled_logits(features, weight, shifts)
    weights = F.pad(times, (0, deltas.shape[1] - len(times)))
    noise = (F.softplus(deltas[: len(features)]) * weights).sum(dim=1)
    return F.softplus(-positive) + noise
