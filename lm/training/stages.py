"""A run of training as a list of stages: which losses count, which parameters are trained.

Most models have one level, and their run is one stage. A hierarchical model has a sentence
level, with a loss of its own (`Context.auxiliary_nll`), below whose states the word level is
trained: with it, beside it, or after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import nn

from lm.model import DocumentLM

Parameters = tuple[nn.Parameter, ...]


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


LEVELS: Mapping[str, Callable[[DocumentLM], list[Stage]]] = {
    "together": together,
    "separate": separate,
    "two-step": two_step,
}
