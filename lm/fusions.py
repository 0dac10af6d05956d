"""Where a context enters the model.

A fusion says which of four places receive the context's value: nowhere, the initial
recurrent state, every input (concatenated), or the output logits (added). Only the last
leaves the hidden states free of the context, which makes all pairs one matrix product.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from lm.recurrence import Recurrence, State


class Fusion:
    """The context enters nowhere; base of the others."""

    touches_hidden: ClassVar[bool] = False

    def input_columns(self, width: int) -> int:
        """Columns that a context value of this width adds to the inputs."""
        return 0

    def output_columns(self, width: int) -> int:
        """Columns that a context value of this width adds to the output features."""
        return 0

    def initial(self, recurrence: Recurrence, value: Tensor) -> State:
        """Recurrent state (B rows) in which the sentence begins."""
        return recurrence.zeros(len(value))

    def drive(self, recurrence: Recurrence, value: Tensor, embed: int) -> Tensor | None:
        """The context's share (B, P) of every input's projection, or None."""
        return None

    def at_output(self, value: Tensor) -> Tensor | None:
        """What the head sees of the context, or None."""
        return None


class InitialState(Fusion):
    """The value is the state in which the sentence begins (document RNNLM)."""

    touches_hidden = True

    def initial(self, recurrence: Recurrence, value: Tensor) -> State:
        """The carried tensors [h_1, c_1, …]."""
        return tuple(value.chunk(2 * recurrence.layers, dim=1))


class Input(Fusion):
    """The value is concatenated to every input: [x; c] (Ji et al. 2016, eqs. 4–5)."""

    touches_hidden = True

    def input_columns(self, width: int) -> int:
        """All of it."""
        return width

    def drive(self, recurrence: Recurrence, value: Tensor, embed: int) -> Tensor | None:
        """W_c c, once per sentence instead of once per word."""
        return recurrence.project(value, first=embed)


class Output(Fusion):
    """The value is added to the logits through a matrix of its own (Ji et al. 2016, eq. 7)."""

    def output_columns(self, width: int) -> int:
        """All of it."""
        return width

    def at_output(self, value: Tensor) -> Tensor | None:
        """The value itself."""
        return value
