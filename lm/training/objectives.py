"""What training minimises, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

from lm.nce import NoiseDistribution

if TYPE_CHECKING:
    from lm.heads import Head

Loss: TypeAlias = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""Loss (N,) in nats from features (N, R), targets (N,) and the generator of an update."""


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective, made of a head, word counts (V,) and the number of words sampled in an update.

    samples: whether it needs sampled words, and a head that can do with them.
    """

    create: Callable[[Head, Tensor, int], Loss]
    samples: bool


def likelihood(head: Head, counts: Tensor, number: int) -> Loss:
    """The head's own loss: −log p, exact or by sampled softmax (`lm.objective`)."""
    sampler = head.sampler(counts, number)
    return lambda features, targets, generator: head.loss(features, targets, sampler, generator)


def nce(head: Head, counts: Tensor, number: int) -> Loss:
    """Noise-contrastive estimation with so many noise words (`lm.nce`).

    ValueError for no noise words, and for a head whose training needs all words.
    """
    if not head.sampled:
        raise ValueError("NCE: expected a head that can be trained on a sample of the words")
    noise = NoiseDistribution.from_counts(counts, number)
    return lambda features, targets, generator: head.nce_loss(features, targets, noise, generator)


OBJECTIVES: Mapping[str, Objective] = {
    "likelihood": Objective(likelihood, samples=False),
    "nce": Objective(nce, samples=True),
}
