"""Dropout of recurrent weights (Merity et al. 2018, https://arxiv.org/abs/1708.02182, §2).

One mask of an update serves all its time steps, so that any unrolling, also one with its gradient
written out, computes with the matrix as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from lm.noise import dropout_mask
from lm.recurrences import Recurrence


@contextmanager
def dropped_weights(model: nn.Module, rate: float, generator: torch.Generator) -> Iterator[None]:
    """Hidden-to-hidden matrices W of all recurrences are W ∘ mask inside, and W again after it.

    The forward and the backward pass belong inside; gradients are those of W after it:
    d/dW = mask ∘ d/d(W ∘ mask). The pre-activations keep their expectation given the states.
    """
    matrices = [
        matrix
        for part in model.modules()
        if isinstance(part, Recurrence)
        for matrix in part.recurrent
    ]
    if rate == 0.0:
        matrices = []
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
