"""Initial weights that a recipe gives to a whole model, in place of those of its parts.

A module whose parameters stack several matrices or vectors of its equations says so by a method
`blocks(tensor)`: views of a parameter, each one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from lm.training.optimisers import sparse_parameters

Blocks = Callable[[Tensor], Sequence[Tensor]]


def own(model: nn.Module, seed: int) -> None:
    """The weights with which the parts were made."""


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


INITIALISATIONS: Mapping[str, Callable[[nn.Module, int], None]] = {"own": own, "glorot": glorot}


def _parameters(module: nn.Module, blocks: Blocks) -> Iterator[tuple[Tensor, Blocks, bool]]:
    """Parameters, the views of each that its owner defines, and whether their rows are vectors."""
    blocks = getattr(module, "blocks", blocks)
    for parameter in module.parameters(recurse=False):
        yield parameter, blocks, isinstance(module, nn.Embedding)
    for child in module.children():
        yield from _parameters(child, blocks if isinstance(child, nn.ParameterList) else _whole)


def _whole(tensor: Tensor) -> Sequence[Tensor]:
    return (tensor,)
