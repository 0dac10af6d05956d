"""What training minimises: the loss of the words by name, and the stages in which losses count.

Most models have one level, and their run is one stage. A hierarchical model has a sentence
level, with a loss of its own (`Context.auxiliary_nll`), below whose states the word level is
trained: with it, beside it, or after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from lm.heads import Head
from lm.model import DocumentLM
from lm.objective import NoiseDistribution

Parameters = tuple[nn.Parameter, ...]
Loss: TypeAlias = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""Loss (N,) in nats from features (N, R), targets (N,) and the generator of an update."""


@dataclass(frozen=True, slots=True)
class TrainingObjective:
    """A loss made of a head, word counts (V,) and the number of words sampled in an update.

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
OBJECTIVES: Mapping[str, TrainingObjective] = {
    "likelihood": TrainingObjective(likelihood),
    "nce": TrainingObjective(nce, samples=4096),
}


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A part of a run; its validation loss is that of words, or else that of sentences.

    words, sentences: whether the head's loss and the context's auxiliary loss count. groups:
    parameters that are trained; the gradient of each group is clipped by itself.
    """

    name: str
    words: bool
    sentences: bool
    groups: tuple[Parameters, ...]

    @property
    def parameters(self) -> list[nn.Parameter]:
        """All parameters that are trained, in the order of the groups."""
        return [parameter for group in self.groups for parameter in group]


def levels(model: DocumentLM) -> tuple[Parameters, Parameters]:
    """Parameters of the word level, and those of the sentence level: of the auxiliary loss."""
    sentence = {id(parameter) for parameter in model.context.auxiliary_parameters()}
    parameters = tuple(model.parameters())
    return (
        tuple(p for p in parameters if id(p) not in sentence),
        tuple(p for p in parameters if id(p) in sentence),
    )


def together(model: DocumentLM) -> list[Stage]:
    """One stage, the sum of both losses: the dual objective of Lin et al. 2015, §5.2."""
    return [Stage("words", True, True, (tuple(model.parameters()),))]


def separate(model: DocumentLM) -> list[Stage]:
    """One stage in which every segment is an update of each level, as in Ji et al.'s program.

    Both read the contexts of before the update; their gradients are clipped one by one.
    """
    return [Stage("words", True, True, tuple(filter(None, levels(model))))]


def two_step(model: DocumentLM) -> list[Stage]:
    """The sentence level to its end, then the word level on top of it, frozen (Lin et al., §5.2).

    A level without parameters has no stage.
    """
    words, sentences = levels(model)
    stages = [
        Stage("sentences", False, True, (sentences,)),
        Stage("words", True, False, (words,)),
    ]
    return [stage for stage in stages if stage.parameters]


def context_alone(model: DocumentLM) -> list[Stage]:
    """What a document adds to a model of single sentences, whose weights are frozen."""
    return [Stage("words", True, False, (tuple(model.context.added_parameters()),))]


LEVELS: Mapping[str, Callable[[DocumentLM], list[Stage]]] = {
    "together": together,
    "separate": separate,
    "two-step": two_step,
    "context": context_alone,
}
