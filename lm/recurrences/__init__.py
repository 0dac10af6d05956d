"""How words follow words: recurrent cells, as one step that training and scoring share.

A state is a tuple of (B, H) tensors, from the lowest layer up: (h_1, c_1, h_2, c_2, …) of
cells with a memory, (h_1, h_2, …) of others. Only the recurrence knows which is which;
others select rows. `project` gives the inputs' share of the first layer's pre-activations,
which is computed once per distinct word, since it does not depend on the state.
`lm.composition.RECURRENCES` names the cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import linear

State = tuple[Tensor, ...]
Sizes = tuple[int, ...]  # sentences that are alive at each time step
Addend = Callable[[Tensor], Tensor]  # of a memory cell (B, H), as large as it


def select(state: State, index: Tensor) -> State:
    """The states at `index`."""
    return tuple(tensor[index] for tensor in state)


class Recurrence(nn.Module):
    """Base of the cell stacks: `layers` layers of size `hidden` over inputs of size `inputs`.

    Subclasses define `gates` (pre-activations per unit fed by the input), `tensors` (of a
    layer's state, its hidden state first) and `cell`; or `memory`, if there is an `output_gate`:
    the state of a layer is then (h, c) with h = o∘tanh(c), c a memory cell and o a gate.
    recurrent: the matrix from hidden state to pre-activations of each layer; width: columns of
    `output`, H unless there are no hidden states.
    """

    gates: ClassVar[int]
    tensors: ClassVar[int] = 2
    output_gate: ClassVar[bool] = False
    recurrent: nn.ParameterList

    def __init__(self, inputs: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.inputs, self.hidden, self.layers, self.width = inputs, hidden, layers, hidden
        self._add_lower()

    def _add_lower(self) -> None:
        """The layers' input matrices and biases."""
        widths = [self.inputs] + [self.hidden] * (self.layers - 1)
        self.lower = nn.ParameterList(uniform(self.gates * self.hidden, d) for d in widths)
        self.bias = nn.ParameterList(torch.zeros(self.gates * self.hidden) for _ in widths)

    def initialise(self, embedding: nn.Embedding) -> None:
        """Draw initial weights that depend on the vocabulary; here none.

        Called on the recurrence of the words, with their embedding, once a model is made.
        """

    def project(self, inputs: Tensor, first: int = 0) -> Tensor:
        """Share (B, gates · H) of input columns `first …` in layer 1's pre-activations.

        The bias belongs to the columns that start at 0, so that shares add up.
        """
        weight = self.lower[0][:, first : first + inputs.shape[-1]]
        return linear(inputs, weight, self.bias[0] if first == 0 else None)

    def project_sum(self, vectors: Tensor) -> Tensor:
        """Change (B, gates · H) of layer 1's pre-activations by vectors added to the inputs.

        vectors: (B, d), for the input columns 0 … d − 1.
        """
        return F.linear(vectors, self.lower[0][:, : vectors.shape[-1]])

    def step(self, projected: Tensor, state: State, added: Addend | None = None) -> State:
        """State after one more input, given its projection (B, gates · H).

        added: where there is an `output_gate`, the top layer's h is o∘tanh(c + added(c)).
        """
        following: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                projected = self.project_below(layer, following[-self.tensors])
            own = slice(layer * self.tensors, (layer + 1) * self.tensors)
            if not self.output_gate:
                following.extend(self.cell(layer, projected, state[own]))
                continue
            c, o = self.memory(layer, projected, state[own])
            seen = c + added(c) if added is not None and layer + 1 == self.layers else c
            following.extend((o * torch.tanh(seen), c))
        return tuple(following)

    def project_below(self, layer: int, below: Tensor) -> Tensor:
        """Pre-activations (B, gates · H) of a layer above the first, from the one below it."""
        return F.linear(below, self.lower[layer], self.bias[layer])

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """State of one layer after one input, (B, H) each, if there is no `output_gate`."""
        raise TypeError("a recurrence defines its cell, or its memory and output gate")

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory cell and output gate, (B, H) each, of one layer after one input, if there are."""
        raise TypeError("a recurrence defines its cell, or its memory and output gate")

    def unroll(self, projected: Tensor, state: State, sizes: tuple[int, ...]) -> State:
        """States after every input of packed sentences, (N, H) each.

        projected: (N, gates · H) in packed order; state: (B, H) each; sizes: sentences alive
        at each time step.
        """
        states: list[State] = []
        for step in torch.split(projected, list(sizes)):
            state = self.step(step, tuple(tensor[: len(step)] for tensor in state))
            states.append(state)
        return tuple(torch.cat(column) for column in zip(*states, strict=True))

    def start(self, batch: int) -> State:
        """State before any input: zeros."""
        zero = self.bias[0].new_zeros(batch, self.hidden)
        return (zero,) * (self.tensors * self.layers)

    def output(self, state: State) -> Tensor:
        """Hidden state of the top layer, (B, H)."""
        return state[-self.tensors]

    def hidden_states(self, state: State) -> Tensor:
        """Hidden states of all layers side by side, (B, L · H), the lowest layer first."""
        return torch.cat(state[:: self.tensors], dim=1)

    def blocks(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """The matrices or vectors of single gates, which a parameter stacks."""
        return torch.split(tensor, self.hidden)

    def like(self, inputs: int) -> Self:
        """A new recurrence of this kind and size over inputs of another size."""
        return type(self)(inputs, self.hidden, self.layers)


def uniform(rows: int, columns: int) -> nn.Parameter:
    """A (rows, columns) matrix of U(±1/√columns)."""
    bound = columns**-0.5
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))
