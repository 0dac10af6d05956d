"""Where a context enters the model.

A fusion receives the context's value, for each sentence or for each word, and states two
facts: whether the hidden states depend on the context, and whether the context only adds to
the logits. From these, and not from its kind, follow the order and the way of scoring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from lm.recurrence import Recurrence, State

Value = Callable[[], Tensor]


class Fusion(nn.Module):
    """Base of the fusions; width: D, columns of a value.

    input_columns: columns that a value adds to the inputs; output_columns: to the features.
    """

    uses_context: ClassVar[bool] = True
    hidden_depends_on_context: ClassVar[bool] = False
    adds_to_logits: ClassVar[bool] = False
    input_columns = 0
    output_columns = 0

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__()

    def initial(self, recurrence: Recurrence, batch: int, value: Value) -> State:
        """Recurrent states in which sentences begin."""
        return recurrence.zeros(batch)

    def share(self, recurrence: Recurrence, value: Tensor) -> Tensor | None:
        """What `step` needs of values (B, D), with B rows, or None."""
        return None

    def step(
        self, recurrence: Recurrence, projected: Tensor, state: State, share: Tensor | None
    ) -> State:
        """States after one more word each, given the projections of the words."""
        return recurrence.step(projected if share is None else projected + share, state)

    def unroll(
        self,
        recurrence: Recurrence,
        projected: Tensor,
        state: State,
        *,
        sizes: tuple[int, ...],
        share: Tensor | None,
    ) -> State:
        """States after every word of packed sentences; share: N rows in packed order."""
        return recurrence.unroll(projected if share is None else projected + share, state, sizes)

    def output(self, hidden: Tensor, value: Value) -> tuple[Tensor, Tensor | None]:
        """Hidden states (N, …) and values (N, D), or None, as the head receives them."""
        return hidden, None


class NoFusion(Fusion):
    """The context enters nowhere."""

    uses_context = False


class InitialState(Fusion):
    """The value is the state in which the sentence begins (document RNNLM)."""

    hidden_depends_on_context = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        if width != recurrence.columns:
            raise ValueError(f"expected a value of {recurrence.columns} columns, found {width}")

    def initial(self, recurrence: Recurrence, batch: int, value: Value) -> State:
        """The value, parted into the state's tensors."""
        return recurrence.parted(value())


class Input(Fusion):
    """The value is concatenated to every input: [x; c] (Ji et al. 2016, eqs. 4–5)."""

    hidden_depends_on_context = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.input_columns = width

    def share(self, recurrence: Recurrence, value: Tensor) -> Tensor:
        """W_c c: computed once where the value is one for the sentence."""
        return recurrence.project(value, first=recurrence.inputs - self.input_columns)


class Output(Fusion):
    """The value is added to the logits through a matrix of its own (Ji et al. 2016, eq. 7)."""

    adds_to_logits = True

    def __init__(self, width: int, recurrence: Recurrence) -> None:
        super().__init__(width, recurrence)
        self.output_columns = width

    def output(self, hidden: Tensor, value: Value) -> tuple[Tensor, Tensor | None]:
        """Both as they are."""
        return hidden, value()
