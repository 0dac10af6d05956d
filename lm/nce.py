"""Noise-contrastive estimation: a language model that tells words of the text from noise words.

Gutmann & Hyvärinen 2010; for language models Mnih & Teh 2012, §3
(https://arxiv.org/abs/1206.6426). A target w stands among k noise words of a distribution q. With
the score s of the unnormalised model p̃ = exp(s), a word of this sample is the target with

    p(D = 1 | w) = p̃(w) / (p̃(w) + k q(w)) = σ(Δ(w)),   Δ(w) = s(w) − log k q(w),

and the loss is −log σ(Δ(w)) − Σ log σ(−Δ(v)) over the noise words v. The gradient of a logit of v
has the expectation (p̃(v) − p(v)) · k q(v) / (p̃(v) + k q(v)), which for large k is that of maximum
likelihood with log Z = 0. No normaliser is computed, nor is there a parameter for it: log Z is
fixed at 0, where the model learns to keep it, and where training has to begin: from log Z = log V
perplexity was 1,588 instead of 90 (§3.1; Chen et al. 2015 fix it at another constant).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from lm.objective import sampled_logits


@dataclass(frozen=True, slots=True, eq=False)
class NoiseDistribution:
    """Where noise words come from: expected (V,) is k q, how often each is one of k noise words.

    All targets of an update share them, as in Zoph et al. 2016
    (https://aclanthology.org/N16-1145): for each target they are a sample of q, so that the
    gradient has no bias, but its variance no longer falls with the number of targets. In return
    one matrix product serves all targets, and k may be a thousand where Mnih & Teh have 25.

    A word is drawn with probability min(1, k q), independently of the others, and then counts
    max(1, k q) times: k q times in expectation, as among k words drawn with replacement. Frequent
    words are always there in their expected number, which lowers the variance.
    """

    expected: Tensor

    @classmethod
    def from_counts(cls, counts: Tensor, samples: int) -> NoiseDistribution:
        """`samples` noise words of the unigram distribution q ∝ count + 1; ValueError for none.

        As in Mnih & Teh 2012; one more makes room for words that the text lacks.
        """
        if samples < 1:
            raise ValueError(f"NCE: expected at least 1 noise word, found {samples}")
        weights = counts.double() + 1.0
        return cls((samples * weights / weights.sum()).float())

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
    `features`. Memory: O(N · S) for the gradient, which autograd finds: one by hand, as that of the
    sampled softmax, saves a tenth of this function's time and no more than 2 % of an update.
    """
    *_, deltas = sampled_logits(features, weight, shifts)
    weights = F.pad(times, (0, deltas.shape[1] - len(times)))
    noise = (F.softplus(deltas[: len(features)]) * weights).sum(dim=1)
    return F.softplus(-positive) + noise
