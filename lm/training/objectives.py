"""What training minimises, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from lm.objective import NoiseDistribution

if TYPE_CHECKING:
    from lm.heads import Head

Loss: TypeAlias = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""Loss (N,) in nats from features (N, R), targets (N,) and the generator of an update."""


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective, made of a head, word counts (V,) and the number of words sampled in an update.

    samples: their number where nobody has chosen it, if it needs sampled words and a head that can
    do with them; else 0, and a recipe says how many.
    """

    create: Callable[[Head, Tensor, int], Loss]
    samples: int = 0


def likelihood(head: Head, counts: Tensor, number: int) -> Loss:
    """The head's own loss: −log p, exact or by sampled softmax (`lm.objective`)."""
    sampler = head.sampler(counts, number)
    return lambda features, targets, generator: head.loss(features, targets, sampler, generator)


def nce(head: Head, counts: Tensor, number: int) -> Loss:
    """Noise-contrastive estimation with so many noise words (`lm.objective`).

    ValueError for no noise words, and for a head whose training needs all words.
    """
    if not head.sampled:
        raise ValueError("NCE: expected a head that can be trained on a sample of the words")
    noise = NoiseDistribution.from_counts(counts, number)
    return lambda features, targets, generator: head.nce_loss(features, targets, noise, generator)


# NCE: 4,096 noise words of 10,000 are 1,040 distinct ones, as many as the sampled softmax has in
# the recipe `strong`. One epoch of it on 150,000 lines of subtitles, perplexity normalised exactly
# and seconds of a CPU: rnnlm 53.5 (238 s) by the exact softmax, 52.6 (74 s) by the sampled one,
# 52.7 (81 s) by NCE, 59.8 (77 s) with 1,024 noise words; codclm 52.0 (242 s), 51.2 (87 s) and 51.2
# (97 s). Log Z is then −0.02 ± 0.15 (rnnlm) and −0.03 ± 0.17 (codclm); by the penalty of the head
# `self-normalised` it is 0.02 ± 0.26, and perplexity 52.4 instead of 52.7 (rnnlm).
OBJECTIVES: Mapping[str, Objective] = {
    "likelihood": Objective(likelihood),
    "nce": Objective(nce, samples=4096),
}
