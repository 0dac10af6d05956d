"""Weights of a whole model in training: the initial ones, averages, and dropout of recurrent ones.

A module whose parameters stack several matrices or vectors of its equations says so by a method
`blocks(tensor)`: views of a parameter, each one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy

import torch
from torch import Tensor, nn

from lm.model import DocumentLM
from lm.noise import dropout_mask
from lm.recurrences import Recurrence
from lm.training.optimisers import sparse_parameters

Blocks = Callable[[Tensor], Sequence[Tensor]]


def _whole(tensor: Tensor) -> Sequence[Tensor]:
    return (tensor,)


@torch.no_grad()
def glorot(model: nn.Module, seed: int) -> None:
    """Every matrix U(±√(6 / (rows + columns))), every vector of d numbers U(±√(6 / d)).

    Glorot & Bengio 2010, and for vectors Ji et al.'s program, for which each word's embedding is
    a vector. Sparse parameters keep their values.
    """
    kept = {id(parameter) for parameter in sparse_parameters(model)}
    generator = torch.Generator().manual_seed(seed)
    for parameter, blocks, by_rows in _parameters(model, _whole):
        if id(parameter) in kept:
            continue
        kept.add(id(parameter))  # tied ones are met twice
        for block in blocks(parameter):
            if block.numel():
                bound = (6 / (block.shape[-1] if by_rows else sum(block.shape))) ** 0.5
                drawn = torch.rand(block.shape, generator=generator)
                block.copy_((2 * drawn - 1) * bound)


def _parameters(module: nn.Module, blocks: Blocks) -> Iterator[tuple[Tensor, Blocks, bool]]:
    """Parameters, the views of each that its owner defines, and whether their rows are vectors."""
    blocks = getattr(module, "blocks", blocks)
    for parameter in module.parameters(recurse=False):
        yield parameter, blocks, isinstance(module, nn.Embedding)
    for child in module.children():
        yield from _parameters(child, blocks if isinstance(child, nn.ParameterList) else _whole)


# own: the weights with which the parts were made
INITIALISATIONS: Mapping[str, Callable[[nn.Module, int], None]] = {
    "own": lambda model, seed: None,
    "glorot": glorot,
}


class WeightAverage:
    """Polynomial-decay average of Shamir & Zhang 2013 (https://arxiv.org/abs/1212.1824).

    After update t: average += (weights − average) / (1 + share · (t − 1)), an exponential average
    over about the last `share` of the updates so far; share 1 is the mean of all of them. It does
    not depend on the run's end, which a time limit leaves open. `model` has the averaged weights.
    """

    def __init__(self, model: DocumentLM, share: float) -> None:
        # sparse tables are shared with the model, not averaged: an update reads little of them
        shared: dict[int, object] = {id(p): p for p in sparse_parameters(model)}
        self.share, self.model = share, deepcopy(model, shared)

    @torch.no_grad()
    def add(self, model: DocumentLM, update: int) -> None:
        """Take in the weights after an update; updates count from 1. O(parameters) time."""
        weight = 1 / (1 + self.share * (update - 1))
        for mine, theirs in zip(self.model.parameters(), model.parameters(), strict=True):
            if mine is not theirs:
                mine.lerp_(theirs, weight)


@contextmanager
def dropped_weights(model: nn.Module, rate: float, generator: torch.Generator) -> Iterator[None]:
    """Hidden-to-hidden matrices W of all recurrences are W ∘ mask inside, and W again after it.

    Merity et al. 2018 (https://arxiv.org/abs/1708.02182), §2. One mask of an update serves all its
    time steps, so that any unrolling, also one with its gradient written out, computes with the
    matrix as it stands.

    The forward and the backward pass belong inside; gradients are those of W after it:
    d/dW = mask ∘ d/d(W ∘ mask). The pre-activations keep their expectation given the states.
    """
    parts = model.modules() if rate else ()
    matrices = [m for part in parts if isinstance(part, Recurrence) for m in part.recurrent]
    whole = [matrix.detach().clone() for matrix in matrices]
    masks = [dropout_mask(tuple(matrix.shape), rate, generator) for matrix in matrices]
    with torch.no_grad():
        for matrix, mask in zip(matrices, masks, strict=True):
            matrix.mul_(mask)
    try:
        yield
    finally:
        with torch.no_grad():
            for matrix, kept, mask in zip(matrices, whole, masks, strict=True):
                matrix.copy_(kept)
                if matrix.grad is not None:
                    matrix.grad.mul_(mask)
