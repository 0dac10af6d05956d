"""How words follow words: recurrent cells, those with gates apart (`lm.recurrences.gated`).

A state is a tuple of (B, H) tensors, from the lowest layer up: (h_1, c_1, h_2, c_2, …) of
cells with a memory, (h_1, h_2, …) of others. Only the recurrence knows which is which;
others select rows. `project` gives the inputs' share of the first layer's pre-activations,
which is computed once per distinct word, since it does not depend on the state.
`lm.composition.RECURRENCES` names the cells.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
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
    recurrent: matrices from hidden states to pre-activations, one a layer; width: columns of
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
        """Draw weights that depend on the vocabulary, once a model is made; here none."""

    def project(self, inputs: Tensor, first: int = 0) -> Tensor:
        """Share (B, gates · H) of input columns `first …` in layer 1's pre-activations.

        The bias belongs to the columns that start at 0, so that shares add up.
        """
        weight = self.lower[0][:, first : first + inputs.shape[-1]]
        return linear(inputs, weight, self.bias[0] if first == 0 else None)

    def project_sum(self, vectors: Tensor) -> Tensor:
        """Change (B, gates · H) of layer 1's pre-activations by vectors (B, d) added to inputs."""
        return F.linear(vectors, self.lower[0][:, : vectors.shape[-1]])

    def step(self, projected: Tensor, state: State, added: Addend | None = None) -> State:
        """State after another input, of which projected (B, gates · H) is the projection.

        added: where there is an `output_gate`, the top layer's h is o∘tanh(c + added(c)).
        """
        following: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                projected = self.project_below(layer, following[-self.tensors])
            addend = added if layer + 1 == self.layers else None
            following += self.cell(layer, projected, self._of_layer(layer, state), addend)
        return tuple(following)

    def _of_layer(self, layer: int, state: State) -> State:
        return state[layer * self.tensors : (layer + 1) * self.tensors]

    def project_below(self, layer: int, below: Tensor) -> Tensor:
        """Pre-activations (N, gates · H) of a layer above the first, from the layer below it."""
        return linear(below, self.lower[layer], self.bias[layer])

    def cell(
        self, layer: int, projected: Tensor, state: State, added: Addend | None = None
    ) -> State:
        """State of a layer after an input, (B, H) each; here of cells with an `output_gate`."""
        c, o = self.memory(layer, projected, state)
        return o * torch.tanh(c if added is None else c + added(c)), c

    def memory(self, layer: int, projected: Tensor, state: State) -> tuple[Tensor, Tensor]:
        """Memory cell and output gate, (B, H) each, of a layer after an input, if there are."""
        raise TypeError("a recurrence defines its cell, or its memory and output gate")

    def unroll(self, projected: Tensor, state: State, sizes: Sizes) -> State:
        """States after every input of packed sentences, (N, H) each, layer by layer.

        projected: (N, gates · H) in packed order; state: (B, H) each; sizes: sentences alive
        at each time step.
        """
        states: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                projected = self.project_below(layer, states[-self.tensors])
            states += self.unroll_layer(layer, projected, self._of_layer(layer, state), sizes)
        return tuple(states)

    def unroll_layer(self, layer: int, projected: Tensor, state: State, sizes: Sizes) -> State:
        """States of a layer, (N, H) each; here step by step."""
        steps: list[State] = []
        for rows in torch.split(projected, list(sizes)):
            state = self.cell(layer, rows, tuple(tensor[: len(rows)] for tensor in state))
            steps.append(state)
        return tuple(map(torch.cat, zip(*steps, strict=True)))

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


def before_each(states: Tensor, first: Tensor, sizes: Sizes) -> Tensor:
    """The state (N, H) that each position started from: one step earlier, or `first`."""
    parts, begin = [first[: sizes[0]]], 0
    for size, following in pairwise(sizes):
        parts.append(states[begin : begin + following])
        begin += size
    return torch.cat(parts)


def packed(lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Rows (N,) and time steps (N,) of the positions of B sequences, packed, and sizes (T,).

    The longest sequence comes first at each time step.
    """
    order = torch.argsort(lengths, descending=True, stable=True)
    longest = int(lengths.max()) if len(lengths) else 0
    alive = torch.arange(longest, device=lengths.device) < lengths[order, None]
    time, rank = alive.T.nonzero(as_tuple=True)
    return order[rank], time, alive.sum(dim=0)


def uniform(rows: int, columns: int) -> nn.Parameter:
    """A (rows, columns) matrix of U(±1/√columns)."""
    bound = columns**-0.5
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


FIRST = 0.1  # each number of the states before any input (Lin et al. 2015, §4.3)


class SimpleRNN(Recurrence):
    """h' = σ(W_x u + W_h h + b) (Elman 1990): the sigmoid that Ji et al. 2016, §2.1, allow.

    It is the cell of Mikolov et al. 2010. Parameters: H(d + H + 1) a layer. Subclasses have another
    activation.
    """

    gates = 1
    tensors = 1
    activation: Callable[[Tensor], Tensor] = staticmethod(torch.sigmoid)

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(uniform(hidden, hidden) for _ in range(layers))

    def cell(
        self, layer: int, projected: Tensor, state: State, added: Addend | None = None
    ) -> State:
        """(h',) of one layer."""
        (h,) = state
        return (self.activation(projected.to(h.dtype) + F.linear(h, self.recurrent[layer])),)


class TanhRNN(SimpleRNN):
    """h' = tanh(W_x u + W_h h + b) (Elman 1990), as torch.nn.RNN has it."""

    activation = staticmethod(torch.tanh)


class HTanh(SimpleRNN):
    """h' = HTanh(W u + U h + b), with HTanh(z) = max(−1, min(1, z)) (Lin et al. 2015, eq. 6)."""

    activation = staticmethod(F.hardtanh)


class OneHotHTanh(HTanh):
    """HTanh layers over 1-of-V words, as Lin et al. 2015 write them (eqs. 4 and 10).

    W w is a row of the embedding, which has H columns and enters as it is, as sums of rows do; only
    other inputs, such as a context's value, have a matrix. No biases. Parameters: H² and H a column
    of other inputs in layer 1, 2H² in others.

    States begin as vectors of 0.1: the paper says so of hs_0 (§4.3), and lets the word level be
    initialised in the same way (§5.2), as the model of Mikolov et al. 2010, which it extends, is.
    """

    def _add_lower(self) -> None:
        H, others = self.hidden, self.inputs - self.hidden
        self.beside = uniform(H, others) if others > 0 else None
        self.lower = nn.ParameterList(uniform(H, H) for _ in range(1, self.layers))

    def initialise(self, embedding: nn.Embedding) -> None:
        """Weights and embedding from U(±1/V): V is the size of the input layer (§4.3)."""
        bound = 1 / embedding.num_embeddings
        for weight in (*self.parameters(), embedding.weight):
            nn.init.uniform_(weight, -bound, bound)

    def project(self, inputs: Tensor, first: int = 0) -> Tensor:
        """The inputs themselves if they are the words', at `first` 0; else with their matrix."""
        if first == 0:
            return inputs
        if self.beside is None:
            raise TypeError("a recurrence over words alone has no other inputs")
        begin = first - self.hidden
        return linear(inputs, self.beside[:, begin : begin + inputs.shape[-1]])

    def project_sum(self, vectors: Tensor) -> Tensor:
        """The vectors (B, H) themselves: they are added to those of the words."""
        return vectors

    def project_below(self, layer: int, below: Tensor) -> Tensor:
        """Pre-activations (N, H) of a layer above the first, without a bias."""
        return linear(below, self.lower[layer - 1])

    def start(self, batch: int) -> State:
        """State before any input: 0.1 everywhere."""
        return (self.recurrent[0].new_full((batch, self.hidden), FIRST),) * self.layers


class NoRecurrence(Recurrence):
    """No hidden states: scores do not depend on the words read before in the sentence.

    Its state has no columns. `hidden` and `layers` are sizes for the recurrences of contexts.
    """

    gates = 0
    tensors = 1

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.width = 0
        self.recurrent = nn.ParameterList()
        self.register_buffer("empty", torch.zeros(0), persistent=False)

    def _add_lower(self) -> None:
        """No weights."""

    def project(self, inputs: Tensor, first: int = 0) -> Tensor:
        """(B, 0)."""
        return inputs[..., :0]

    def step(self, projected: Tensor, state: State, added: Addend | None = None) -> State:
        """(B, 0)."""
        return (projected,)

    def unroll(self, projected: Tensor, state: State, sizes: Sizes) -> State:
        """(N, 0)."""
        return (projected,)

    def start(self, batch: int) -> State:
        """(B, 0)."""
        return (self.get_buffer("empty").new_zeros(batch, 0),)
