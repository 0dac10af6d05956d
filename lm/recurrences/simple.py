"""Cells without a memory: simple recurrent cells, and none at all."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import linear
from lm.recurrences import Addend, Recurrence, Sizes, State, uniform

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
