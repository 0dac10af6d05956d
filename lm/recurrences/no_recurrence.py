"""The word level of models that only predict the words of a sentence from other sentences."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.recurrences import Addend, Recurrence, State


class NoRecurrence(Recurrence):
    """No hidden states: scores do not depend on the words read before in the sentence.

    Its state has no columns, but the rows of others. `hidden` and `layers` are the sizes that
    contexts take for their own recurrences.
    """

    gates = 0
    tensors = 1

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList()
        self.register_buffer("empty", torch.zeros(0), persistent=False)

    def _add_lower(self) -> None:
        """No weights."""

    @property
    def width(self) -> int:
        """No columns."""
        return 0

    def project(self, inputs: Tensor, first: int = 0) -> Tensor:
        """(B, 0)."""
        return inputs[..., :0]

    def step(self, projected: Tensor, state: State, added: Addend | None = None) -> State:
        """(B, 0)."""
        return (projected,)

    def unroll(self, projected: Tensor, state: State, sizes: tuple[int, ...]) -> State:
        """(N, 0)."""
        return (projected,)

    def start(self, batch: int) -> State:
        """(B, 0)."""
        return (self.get_buffer("empty").new_zeros(batch, 0),)
