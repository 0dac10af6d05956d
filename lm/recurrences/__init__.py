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

from lm.products import linear
from lm.recurrences.unrolled import lstm_layer

State = tuple[Tensor, ...]
Addend = Callable[[Tensor], Tensor]  # of a memory cell (B, H), as large as it


def select(state: State, index: Tensor) -> State:
    """The states at `index`."""
    return tuple(tensor[index] for tensor in state)


class Recurrence(nn.Module):
    """Base of the cell stacks: `layers` layers of size `hidden` over inputs of size `inputs`.

    Subclasses define `gates` (pre-activations per unit fed by the input), `tensors` (of a
    layer's state, its hidden state first) and `cell`; or `memory`, if there is an `output_gate`:
    the state of a layer is then (h, c) with h = o∘tanh(c), c a memory cell and o a gate.
    recurrent: the matrix from hidden state to pre-activations of each layer.
    """

    gates: ClassVar[int]
    tensors: ClassVar[int] = 2
    output_gate: ClassVar[bool] = False
    recurrent: nn.ParameterList

    def __init__(self, inputs: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.inputs, self.hidden, self.layers = inputs, hidden, layers
        self._add_lower()

    def _add_lower(self) -> None:
        """The layers' input matrices and biases."""
        widths = [self.inputs] + [self.hidden] * (self.layers - 1)
        self.lower = nn.ParameterList(uniform(self.gates * self.hidden, d) for d in widths)
        self.bias = nn.ParameterList(torch.zeros(self.gates * self.hidden) for _ in widths)

    @property
    def width(self) -> int:
        """Columns of `output`: H, unless there are no hidden states."""
        return self.hidden

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
            if added is None or layer + 1 < self.layers:
                following.extend(self.cell(layer, projected, state[own]))
            else:
                c, o = self.memory(layer, projected, state[own])
                following.extend((o * torch.tanh(c + added(c)), c))
        return tuple(following)

    def project_below(self, layer: int, below: Tensor) -> Tensor:
        """Pre-activations (B, gates · H) of a layer above the first, from the one below it."""
        return F.linear(below, self.lower[layer], self.bias[layer])

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """State of one layer after one input: (h, c), or (h,), each (B, H)."""
        c, o = self.memory(layer, projected, state)
        return o * torch.tanh(c), c

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory cell and output gate, (B, H) each, of one layer after one input."""
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


class LSTM(Recurrence):
    """LSTM with separate input and forget gates, no peepholes (Gers et al. 2000).

    Parameters: 4H(d + H) + 4H a layer; the forget bias starts at 1.
    """

    gates = 4
    output_gate = True

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(uniform(4 * hidden, hidden) for _ in range(layers))
        for bias in self.bias:
            bias.data[hidden : 2 * hidden] = 1.0

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory c' = f∘c + i∘g and output gate o; i, f, o = σ(·), g = tanh(·)."""
        h, c = state
        z = _single(F.linear(h, self.recurrent[layer])).add_(projected)
        i, f, o = torch.sigmoid(z[:, : 3 * self.hidden]).chunk(3, dim=1)
        return torch.addcmul(f * c, i, torch.tanh(z[:, 3 * self.hidden :])), o

    def unroll(self, projected: Tensor, state: State, sizes: tuple[int, ...]) -> State:
        """Layer by layer, each with its gradient written out (`lm.recurrences.unrolled`)."""
        states: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                projected = linear(states[-2], self.lower[layer], self.bias[layer])
            h_0, c_0 = state[2 * layer : 2 * layer + 2]
            states += lstm_layer(projected, h_0, c_0, self.recurrent[layer], sizes)
        return tuple(states)


class CIFG(Recurrence):
    """The cell of Ji et al.'s code: coupled gates (f = 1 - i), full-matrix peepholes.

    i = σ(W_xi u + W_hi h + W_ci c + b_i); c' = (1 - i)∘c + i∘tanh(W_xc u + W_hc h + b_c);
    o = σ(W_xo u + W_ho h + W_co c' + b_o); h' = o∘tanh(c').
    Before the first word h = c = 0; the output gate sees c' there too, as in the library that the
    authors used (clab/cnn) since its commit cc08b107 of April 2016; `CIFG2015` is the cell before.
    Parameters: 3Hd + 5H² + 3H a layer. Weights start Glorot-uniform, biases U(±√(6/H)),
    as there.
    """

    gates = 3
    output_gate = True

    def __init__(self, inputs: int, hidden: int, layers: int = 2) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(_stacked(3, hidden, hidden) for _ in range(layers))
        self.peephole = nn.ParameterList(_stacked(2, hidden, hidden) for _ in range(layers))
        for layer in range(layers):
            self.lower[layer] = _stacked(3, hidden, self.lower[layer].shape[1])
            nn.init.uniform_(self.bias[layer], -((6 / hidden) ** 0.5), (6 / hidden) ** 0.5)

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory c' and output gate o of the coupled-gate cell; o sees the new c."""
        h, c = before = state
        H, peephole = self.hidden, self.peephole[layer]
        z = _single(F.linear(h, self.recurrent[layer])).add_(projected)
        i = torch.sigmoid(z[:, :H] + _single(F.linear(c, peephole[:H])))
        c = torch.lerp(c, torch.tanh(z[:, H : 2 * H]), i)
        return c, torch.sigmoid(z[:, 2 * H :] + self.output_peephole(layer, before, c))

    def output_peephole(self, layer: int, before: State, c: Tensor) -> Tensor:
        """W_co c', (B, H): the share of the new c in the output gate; before: h, c."""
        return _single(F.linear(c, self.peephole[layer][self.hidden :]))


class CIFG2015(CIFG):
    """The cell of Ji et al.'s code with the library of November 2015, when they released it.

    At the first word of a sentence that begins in the zero state, o = σ(W_xo u + b_o): W_co c' is
    left out, too. Trained weights are for one of the two cells: the other one costs up to 6 nats a
    sentence. A sentence that begins in a carried state has no such word, but for the first
    sentence of a document.
    """

    def output_peephole(self, layer: int, before: State, c: Tensor) -> Tensor:
        """W_co c', (B, H), but 0 where h = c = 0: after any word some number is not 0."""
        h, memory = before
        begun = (h != 0).any(dim=1, keepdim=True) | (memory != 0).any(dim=1, keepdim=True)
        return super().output_peephole(layer, before, c) * begun


def _single(products: Tensor) -> Tensor:
    """Products of autocast in float32; others unchanged."""
    return products.float() if products.dtype == torch.bfloat16 else products


def uniform(rows: int, columns: int) -> nn.Parameter:
    """A (rows, columns) matrix of U(±1/√columns)."""
    bound = columns**-0.5
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


def _stacked(blocks: int, rows: int, columns: int) -> nn.Parameter:
    """`blocks` Glorot-uniform (rows, columns) matrices above one another."""
    parts = [nn.init.xavier_uniform_(torch.empty(rows, columns)) for _ in range(blocks)]
    return nn.Parameter(torch.cat(parts))
