"""How words follow words: recurrent cells, as one step that training and scoring share.

A state is a tuple of (B, H) tensors, from the lowest layer up: (h_1, c_1, h_2, c_2, …) of
cells with a memory, (h_1, h_2, …) of others. Only the recurrence knows which is which;
others select rows. `project` gives the inputs' share of the first layer's pre-activations,
which is computed once per distinct word, since it does not depend on the state.
"""

from __future__ import annotations

from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.unrolled import lstm_layer

State = tuple[Tensor, ...]


def select(state: State, index: Tensor) -> State:
    """The states at `index`."""
    return tuple(tensor[index] for tensor in state)


class Recurrence(nn.Module):
    """Base of the cell stacks: `layers` layers of size `hidden` over inputs of size `inputs`.

    Subclasses define `gates` (pre-activations per unit fed by the input), `tensors` (of a
    layer's state, its hidden state first) and `cell`.
    """

    gates: ClassVar[int]
    tensors: ClassVar[int] = 2

    def __init__(self, inputs: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.inputs, self.hidden, self.layers = inputs, hidden, layers
        self._add_lower()

    def _add_lower(self) -> None:
        """The layers' input matrices and biases."""
        widths = [self.inputs] + [self.hidden] * (self.layers - 1)
        self.lower = nn.ParameterList(_uniform(self.gates * self.hidden, d) for d in widths)
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
        return F.linear(inputs, weight, self.bias[0] if first == 0 else None)

    def step(self, projected: Tensor, state: State) -> State:
        """State after one more input, given its projection (B, gates · H)."""
        following: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                below = following[-self.tensors]
                projected = F.linear(below, self.lower[layer], self.bias[layer])
            own = slice(layer * self.tensors, (layer + 1) * self.tensors)
            following.extend(self.cell(layer, projected, state[own]))
        return tuple(following)

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """State of one layer after one input: (h, c), or (h,), each (B, H)."""
        raise TypeError("a recurrence defines its cell")

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

    def zeros(self, batch: int) -> State:
        """State before any input."""
        zero = self.bias[0].new_zeros(batch, self.hidden)
        return (zero,) * (self.tensors * self.layers)

    def output(self, state: State) -> Tensor:
        """Hidden state of the top layer, (B, H)."""
        return state[-self.tensors]

    def like(self, inputs: int) -> Self:
        """A new recurrence of this kind and size over inputs of another size."""
        return type(self)(inputs, self.hidden, self.layers)


class LSTM(Recurrence):
    """LSTM with separate input and forget gates, no peepholes (Gers et al. 2000).

    Parameters: 4H(d + H) + 4H a layer; the forget bias starts at 1.
    """

    gates = 4

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(_uniform(4 * hidden, hidden) for _ in range(layers))
        for bias in self.bias:
            bias.data[hidden : 2 * hidden] = 1.0

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """i, f, o = σ(·), g = tanh(·); c' = f∘c + i∘g; h' = o∘tanh(c')."""
        h, c = state
        z = _single(F.linear(h, self.recurrent[layer])).add_(projected)
        i, f, o = torch.sigmoid(z[:, : 3 * self.hidden]).chunk(3, dim=1)
        c = torch.addcmul(f * c, i, torch.tanh(z[:, 3 * self.hidden :]))
        return o * torch.tanh(c), c

    def unroll(self, projected: Tensor, state: State, sizes: tuple[int, ...]) -> State:
        """Layer by layer, each with its gradient written out (`lm.unrolled`)."""
        states: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                projected = F.linear(states[-2], self.lower[layer], self.bias[layer])
            h_0, c_0 = state[2 * layer : 2 * layer + 2]
            states += lstm_layer(projected, h_0, c_0, self.recurrent[layer], sizes)
        return tuple(states)


class CIFG(Recurrence):
    """The cell of Ji et al.'s code: coupled gates (f = 1 - i), full-matrix peepholes.

    i = σ(W_xi u + W_hi h + W_ci c + b_i); c' = (1 - i)∘c + i∘tanh(W_xc u + W_hc h + b_c);
    o = σ(W_xo u + W_ho h + W_co c' + b_o); h' = o∘tanh(c').
    Parameters: 3Hd + 5H² + 3H a layer. Weights start Glorot-uniform, biases U(±√(6/H)),
    as there.
    """

    gates = 3

    def __init__(self, inputs: int, hidden: int, layers: int = 2) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(_stacked(3, hidden, hidden) for _ in range(layers))
        self.peephole = nn.ParameterList(_stacked(2, hidden, hidden) for _ in range(layers))
        for layer in range(layers):
            self.lower[layer] = _stacked(3, hidden, self.lower[layer].shape[1])
            nn.init.uniform_(self.bias[layer], -((6 / hidden) ** 0.5), (6 / hidden) ** 0.5)

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """(h', c') of the coupled-gate cell; the output gate sees the new c."""
        h, c = state
        H, peephole = self.hidden, self.peephole[layer]
        z = _single(F.linear(h, self.recurrent[layer])).add_(projected)
        i = torch.sigmoid(z[:, :H] + _single(F.linear(c, peephole[:H])))
        c = torch.lerp(c, torch.tanh(z[:, H : 2 * H]), i)
        o = torch.sigmoid(z[:, 2 * H :] + _single(F.linear(c, peephole[H:])))
        return o * torch.tanh(c), c


class HTanh(Recurrence):
    """h' = HTanh(W u + U h + b), with HTanh(z) = max(−1, min(1, z)) (Lin et al. 2015, eq. 6).

    Parameters: H(d + H + 1) a layer.
    """

    gates = 1
    tensors = 1

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
        self.recurrent = nn.ParameterList(_uniform(hidden, hidden) for _ in range(layers))

    def cell(self, layer: int, projected: Tensor, state: State) -> State:
        """(h',) of the clipped layer."""
        return (F.hardtanh(projected + _single(F.linear(state[0], self.recurrent[layer]))),)


class OneHotHTanh(HTanh):
    """HTanh layers over 1-of-V words, as Lin et al. 2015 write them (eqs. 4 and 10).

    W w is a row of the embedding, which therefore has H columns and enters as it is, and so are
    sums of such rows; only other inputs, such as a context's value, have a matrix. No biases.
    Parameters: H² and H a column of other inputs in layer 1, 2H² in others.
    """

    def _add_lower(self) -> None:
        H, others = self.hidden, self.inputs - self.hidden
        self.beside = _uniform(H, others) if others > 0 else None
        self.lower = nn.ParameterList(_uniform(H, H) for _ in range(1, self.layers))

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
        return F.linear(inputs, self.beside[:, begin : begin + inputs.shape[-1]])

    def step(self, projected: Tensor, state: State) -> State:
        """State after one more input, given its projection (B, H)."""
        following: list[Tensor] = []
        for layer in range(self.layers):
            if layer:
                projected = F.linear(following[-1], self.lower[layer - 1])
            following.extend(self.cell(layer, projected, state[layer : layer + 1]))
        return tuple(following)

    def zeros(self, batch: int) -> State:
        """Zeros for each layer."""
        return (self.recurrent[0].new_zeros(batch, self.hidden),) * self.layers


class NoRecurrence(Recurrence):
    """No hidden states: scores do not depend on the words read before in the sentence.

    Its state has no columns, but the rows of others. `hidden` and `layers` are the sizes that
    contexts take for their own recurrences.
    """

    gates = 0
    tensors = 1

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__(inputs, hidden, layers)
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

    def step(self, projected: Tensor, state: State) -> State:
        """(B, 0)."""
        return (projected,)

    def unroll(self, projected: Tensor, state: State, sizes: tuple[int, ...]) -> State:
        """(N, 0)."""
        return (projected,)

    def zeros(self, batch: int) -> State:
        """(B, 0)."""
        return (self.get_buffer("empty").new_zeros(batch, 0),)

    def output(self, state: State) -> Tensor:
        """(B, 0)."""
        return state[0]


def _single(products: Tensor) -> Tensor:
    """Products of autocast in float32; others unchanged."""
    return products.float() if products.dtype == torch.bfloat16 else products


def _uniform(rows: int, columns: int) -> nn.Parameter:
    bound = columns**-0.5
    return nn.Parameter(torch.empty(rows, columns).uniform_(-bound, bound))


def _stacked(blocks: int, rows: int, columns: int) -> nn.Parameter:
    """`blocks` Glorot-uniform (rows, columns) matrices above one another."""
    parts = [nn.init.xavier_uniform_(torch.empty(rows, columns)) for _ in range(blocks)]
    return nn.Parameter(torch.cat(parts))


"""The recurrences that a configuration may name; compositions may bring their own."""
RECURRENCES = {"lstm": LSTM, "cifg": CIFG, "htanh": HTanh}
