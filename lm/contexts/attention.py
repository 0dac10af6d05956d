"""Attention over states that are kept of earlier sentences, with its gradient written out.

A recurrence that attends before each step makes as many small steps as a sentence has words, and
the memory, (B, M, A) numbers, takes part in each. Its gradients are therefore summed in place over
the steps: autograd alone would make a tensor of zeros and a copy of the memory for each step.

With the cell of Ji et al. and few rows the loop over words is compiled: an update of `adclm` by
the recipe `paper` (48 units, five sentences of a hundred words) takes 26 ms instead of 102.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.contexts import Context
from lm.recurrences import Recurrence, Sizes, State, few_rows
from lm.recurrences.gated import CIFG
from lm.sentences import ReadSentences, Rows

MOST_ENTRIES = 1 << 22  # of (positions, states, size of the attention) at once
NEVER = -1e30  # energy of padding; finite, for without any state all shares would be NaN


@dataclass(slots=True, eq=False)
class Sums:
    """Gradients of a memory that a backward pass has summed so far.

    energies: (B, M); squares: (B, M, A), less the energies' gradients times the squared hidden
    units; states: (B, M, D). task: number of the pass, for a graph may be gone through again.
    """

    task: int = -1
    energies: Tensor = field(default_factory=lambda: torch.empty(0))
    squares: Tensor = field(default_factory=lambda: torch.empty(0))
    states: Tensor = field(default_factory=lambda: torch.empty(0))

    def begin(self, keys: Tensor, states: Tensor) -> None:
        """Zeros, unless the pass that is under way has begun already."""
        task = torch._C._current_graph_task_id()
        if task != self.task:
            self.task = task
            self.energies = keys.new_zeros(keys.shape[:2])
            self.squares, self.states = torch.zeros_like(keys), torch.zeros_like(states)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """M states of each of B contexts, and what attention needs of them for every position.

    keys: (B, M, A) their shares in the hidden units; states: (B, M, D), zeros where padded;
    energies: (B, M) 0, very negative where padded; weight: (A,) of the hidden units. float32.
    """

    keys: Tensor
    states: Tensor
    energies: Tensor
    weight: Tensor
    sums: Sums

    @classmethod
    def of(cls, keys: Tensor, states: Tensor, energies: Tensor, weight: Tensor) -> Memory:
        """A memory whose gradients are summed up."""
        sums = Sums()
        keys, states = _summed(keys.float(), states.float(), weight, sums)
        return cls(keys, states, energies, weight, sums)

    def attend(self, queries: Tensor) -> Tensor:
        """Values (N, D) of the first N contexts: O(N M (A + D)) time.

        queries: (N, A) shares of the queries in the hidden units. With e_m = w · tanh(k_m + q) and
        energies added, the value is Σ softmax(e)_m f_m.
        """
        with torch.autocast(queries.device.type, enabled=False):
            return _attended(
                self.keys, self.states, self.energies, queries.float(), self.weight, self.sums
            )

    def take(self, row: Tensor) -> Memory:
        """The contexts at some rows, whose gradients autograd sums."""
        columns = (self.keys[row], self.states[row], self.energies[row])
        return Memory.of(*columns, self.weight)


class Summed(torch.autograd.Function):
    """Keys and states unchanged; their gradients have the sums that `Attended` has made."""

    @staticmethod
    def forward(
        ctx: Any, keys: Tensor, states: Tensor, weight: Tensor, sums: Sums
    ) -> tuple[Tensor, Tensor]:
        """Views of both."""
        ctx.save_for_backward(weight)
        ctx.sums, ctx.shapes = sums, (keys, states)
        ctx.set_materialize_grads(False)
        return keys.view_as(keys), states.view_as(states)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """w_a Σ d_m (1 − t²_ma) and Σ α_m d over all positions, and what other uses give."""
        (weight,) = ctx.saved_tensors
        sums = ctx.sums
        sums.begin(*ctx.shapes)  # zeros, if no position had a gradient
        d_keys = sums.squares.add_(sums.energies[:, :, None]).mul_(weight)
        sums.task = -1
        both = zip((d_keys, sums.states), gradients, strict=True)
        return *(ours if others is None else ours + others for ours, others in both), None, None


class Attended(torch.autograd.Function):
    """Values of the first N contexts, as `Memory.attend`."""

    @staticmethod
    def forward(
        ctx: Any,
        keys: Tensor,
        states: Tensor,
        energies: Tensor,
        queries: Tensor,
        weight: Tensor,
        sums: Sums,
    ) -> Tensor:
        """O(N M (A + D)); keeps the hidden units (N, M, A) for the gradient."""
        n = len(queries)
        hidden = (keys[:n] + queries[:, None]).tanh_()
        shares = torch.softmax(hidden @ weight + energies[:n], dim=1)
        ctx.save_for_backward(keys, states, hidden, shares, weight)
        ctx.sums = sums
        return torch.bmm(shares[:, None], states[:n])[:, 0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of the query and the weight; those of the memory are added to the sums."""
        (d,) = gradients
        keys, states, hidden, shares, weight = ctx.saved_tensors
        sums, n = ctx.sums, len(d)
        sums.begin(keys, states)
        of_shares = torch.bmm(states[:n], d[:, :, None])[:, :, 0]
        of_energies = shares * (of_shares - (shares * of_shares).sum(dim=1, keepdim=True))
        of_weight = torch.mv(hidden.flatten(0, 1).T, of_energies.flatten())
        squares = hidden.square()
        kept = of_energies.sum(dim=1, keepdim=True) - torch.bmm(of_energies[:, None], squares)[:, 0]
        sums.energies[:n] += of_energies
        sums.squares[:n].addcmul_(squares, of_energies[:, :, None], value=-1)
        sums.states[:n].baddbmm_(shares[:, :, None], d[:, None])
        return None, None, None, kept * weight, of_weight, None


_summed: Callable[[Tensor, Tensor, Tensor, Sums], tuple[Tensor, Tensor]] = Summed.apply
_attended: Callable[..., Tensor] = Attended.apply


def unroll_attentive(
    cells: CIFG, projected: Tensor, state: State, memory: Memory, *, query: Tensor, sizes: Sizes
) -> tuple[State, Tensor]:
    """States after every word of packed sentences, (N, H) each, and the sums of values (N, C).

    projected: (N, 3H) shares of the words in the pre-activations; state: (B, H) each; memory: of
    M > 0 states; the first 3H columns of its values (B, M, C) are shares in the pre-activations of
    the first layer; query: (A, D) from the last D numbers of [h_1; …; h_L]. O(N (L H² + M (A + C)))
    time.
    """
    layers = [projected, *(bias.expand(len(projected), -1) for bias in cells.bias[1:])]
    both = zip(state[::2], state[1::2], strict=True)
    begun = np.stack(
        [few_rows.first_gates(cells.begun(pair), len(pair[0])) for pair in both], axis=1
    )
    h, c, sums = few_rows.attentive(
        torch.stack(layers, dim=1),
        torch.stack(state, dim=1),
        memory.keys,
        memory.states,
        torch.cat([query, memory.weight[:, None]], dim=1),
        torch.stack([*cells.recurrent, *cells.lower[1:]]),
        torch.stack([*cells.peephole]),
        (memory.energies, begun, sizes),
    )
    pairs = zip(h.unbind(dim=1), c.unbind(dim=1), strict=True)
    return tuple(tensor for pair in pairs for tensor in pair), sums


class Attention(Context):
    """Base of the contexts that weight M kept states f_m (D) anew for each word.

    With the query q, the state at the previous position:
    a_m = softmax_m(w · tanh(W_1 q + W_2 f_m)), value Σ a_m f_m (Bahdanau et al. 2015, without
    biases). W_1 q is absent at the first word, where q = 0; without any state the value is 0.
    A context holds the states (B, M, D), zeros where padded, and a mask (B, M). The hidden layer
    has A units (`attention`; None for H): A(2D + 1) parameters.
    """

    per_word = True
    averages = False
    options = ("attention",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, attention: int | None = None
    ) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden * (recurrence.layers if self.reads_layers else 1)
        units = recurrence.hidden if attention is None else attention
        self.query = nn.Linear(self.width, units, bias=False)
        self.memory = nn.Linear(self.width, units, bias=False)
        self.weight = nn.Linear(units, 1, bias=False)

    def start(self, batch: int) -> Rows:
        """No states."""
        states = self.get_buffer("empty").new_zeros(batch, 0, self.width)
        return Rows.of(states, states[:, :, 0].bool())

    def prepared(self, contexts: Rows) -> Memory:
        """The states with W_2 f_m (B, M, A)."""
        states, mask = contexts.tensors
        energies = torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, NEVER)
        return Memory.of(self.memory(states), states, energies, self.weight.weight[0])

    def word_values(self, prepared: Memory, row: Tensor, query: Tensor) -> Tensor:
        """O(N M (A + D)) time; at most `MOST_ENTRIES` numbers of the attention at once."""
        most = max(1, MOST_ENTRIES // max(1, prepared.keys.shape[1:].numel()))
        parts = zip(torch.split(row, most), torch.split(query, most), strict=True)
        return torch.cat([self.row_values(prepared.take(at), asked) for at, asked in parts])

    def row_values(self, prepared: Memory, query: Tensor) -> Tensor:
        """Values (N, D), without a copy of the memory."""
        if not prepared.keys.shape[1]:
            return query.new_zeros(len(query), self.width)
        return prepared.attend(self.query(query))

    def unroll(
        self,
        cells: Recurrence,
        words: Tensor,
        state: State,
        *,
        sizes: Sizes,
        prepared: Memory,
        share: Callable[[Tensor], Tensor],
    ) -> tuple[State, Tensor] | None:
        """All values are 0 without any states; of few rows `unroll_attentive` gives them."""
        if not prepared.keys.shape[1]:
            return cells.unroll(words, state, sizes), state[0].new_zeros(len(words), self.width)
        if not (isinstance(cells, CIFG) and few_rows.has_few_rows(words, state[0])):
            return None
        # a value enters through a matrix: its products with the states are added up as these are
        shares = share(prepared.states.flatten(0, 1)).view(*prepared.states.shape[:2], -1)
        memory = replace(prepared, states=torch.cat([shares, prepared.states], dim=2))
        states, sums = unroll_attentive(
            cells, words, state, memory, query=self.query.weight, sizes=sizes
        )
        return states, sums[:, shares.shape[2] :]


class FinalStates(Attention):
    """States f_s = [h_1; …; h_L] after the last word of every earlier sentence, for each word.

    The memory of the attention program `dam` in the authors' code of Ji et al. 2016 (two layers
    there); the query, too, is the state of all layers. Value 0 in the first sentence; f_1 itself
    in the second one, where there is nothing to choose.
    """

    sentences = None
    reads_states = True
    reads_layers = True

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """The states and one more, O(M D) a row."""
        states, mask = contexts.tensors
        counts = mask.sum(dim=1)
        longest = int(counts.max()) if len(counts) else 0
        states = F.pad(states[:, :longest], (0, 0, 0, 1))
        mask = F.pad(mask[:, :longest], (0, 1))
        new = torch.arange(longest + 1, device=mask.device) == counts[:, None]
        return Rows.of(
            torch.where(new[:, :, None], summary.tensors[0][:, None], states), mask | new
        )


class PreviousWords(Attention):
    """Top hidden states h_m of the previous sentence's words m = 1…M, weighted for each word.

    The attention of Ji et al. 2016, §2.3, eqs. 8–10. As printed it is circular: its query is h_n,
    for which it is an input. As in the authors' code, the query is h_{n-1}. Without a previous
    sentence, or with an empty one, the value is zero: the paper has no c_0 here.
    """

    reads_states = True

    def summary(self, sentences: ReadSentences) -> Rows:
        """States after each word."""
        positions, mask = sentences.positions.of_words()
        return Rows.of(sentences.hidden[positions] * mask[:, :, None], mask)
