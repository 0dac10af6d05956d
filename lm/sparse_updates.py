"""Updates of parameters of which an update reads few numbers, such as tables of hashed features.

AdaGrad (Duchi et al. 2011), whose cost follows the numbers that have a gradient, where this is
sparse. Adam would make whole steps of the gradients of words that are not observed, which are
tiny, because it divides by their size; AdaGrad divides by √(a + Σ g²), and a, the square of what
one observed word contributes, keeps tiny gradients tiny.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

RATE = 30.0  # times the learning rate of the other parameters


def sparse_optimiser(
    parameters: Sequence[nn.Parameter], *, streams: int
) -> torch.optim.Optimizer | None:
    """An optimiser without weight decay for these parameters, None if there are none.

    streams: what the summed loss is divided by. Memory: 4 bytes a number.
    """
    if not parameters:
        return None
    return torch.optim.Adagrad(
        parameters, lr=RATE, initial_accumulator_value=1 / streams**2, eps=1e-10
    )
