"""Attention over states that are kept of earlier sentences.

With the cell of Ji et al. and few rows the loop over words is compiled: an update of `adclm` by
the recipe `paper` (48 units, five sentences of a hundred words) takes 26 ms instead of 102.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

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

    def attend(self, queries: Tensor) -> Tensor:
        """Values (N, D) of the first N contexts: O(N M (A + D)) time.

        queries: (N, A) shares of the queries in the hidden units. With e_m = w · tanh(k_m + q) and
        energies added, the value is Σ softmax(e)_m f_m.
        """
        n = len(queries)
        with torch.autocast(queries.device.type, enabled=False):
            hidden = torch.tanh(self.keys[:n] + queries.float()[:, None])
            shares = torch.softmax(hidden @ self.weight + self.energies[:n], dim=1)
            return torch.bmm(shares[:, None], self.states[:n])[:, 0]

    def take(self, row: Tensor) -> Memory:
        """The contexts at some rows."""
        return Memory(self.keys[row], self.states[row], self.energies[row], self.weight)


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
        return Memory(self.memory(states).float(), states.float(), energies, self.weight.weight[0])

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
