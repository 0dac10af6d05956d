"""Attention over states that are kept of earlier sentences, or of the source sentence.

With the cell of Ji et al. and few rows the loop over words is compiled (`few_rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.backend import linear
from lm.contexts import Context, GivenContext
from lm.contexts.bags import BagContext, BagSequence
from lm.recurrences import Recurrence, Sizes, State, few_rows, packed
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
        energies added, the value is Σ softmax(e)_m f_m; 0 without any state.
        """
        n = len(queries)
        if not self.keys.shape[1]:
            return queries.new_zeros(n, self.states.shape[2])
        with torch.autocast(queries.device.type, enabled=False):
            hidden = torch.tanh(self.keys[:n] + queries.float()[:, None])
            shares = torch.softmax(hidden @ self.weight + self.energies[:n], dim=1)
            return torch.bmm(shares[:, None], self.states[:n])[:, 0]

    def take(self, row: Tensor) -> Memory:
        """The contexts at some rows."""
        return Memory(self.keys[row], self.states[row], self.energies[row], self.weight)

    def values(self, row: Tensor, queries: Tensor) -> Tensor:
        """Values (N, D) of the contexts `row` (N,); at most `MOST_ENTRIES` numbers at once."""
        most = max(1, MOST_ENTRIES // max(1, self.keys.shape[1:].numel()))
        parts = zip(torch.split(row, most), torch.split(queries, most), strict=True)
        return torch.cat([self.take(at).attend(asked) for at, asked in parts])


def memory_of(states: Tensor, mask: Tensor, keys: nn.Linear, weight: nn.Linear) -> Memory:
    """The memory of states (B, M, D), zeros where the mask (B, M) is false."""
    energies = torch.zeros_like(mask, dtype=torch.float32).masked_fill(~mask, NEVER)
    return Memory(keys(states).float(), states.float(), energies, weight.weight[0])


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
        return memory_of(states, mask, self.memory, self.weight)

    def word_values(self, prepared: Memory, row: Tensor, query: Tensor) -> Tensor:
        """O(N M (A + D)) time."""
        return prepared.values(row, self.query(query))

    def row_values(self, prepared: Memory, query: Tensor) -> Tensor:
        """Values (N, D), without a copy of the memory."""
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


class BagAttention(BagSequence):
    """Weighted mean of annotations of the last n sentences, with other weights for each word.

    The SeqBoW-ATT context of Wang & Cho 2015, arXiv:1511.03729, §3.1: two recurrences read the
    bags in both directions; z_j = [→z_j; ←z_j]; α_j = softmax_j score(z_j, h); p = Σ α_j z_j.
    The paper leaves the score open: it is v · tanh(W h + U z_j) (Bahdanau et al. 2015) of size
    `attention`, H by default. Its h is the state before the word, since late fusion makes the
    current state from p; at the first word there is none. Sentences without words have no
    annotation; p is zero without any. Parameters, for LSTM layers: VK + 8H(H + K + 1) + A(3H + 1).
    """

    per_word = True
    options = ("attention",)

    def __init__(
        self,
        embedding: nn.Embedding,
        recurrence: Recurrence,
        *,
        sentences: int = 1,
        attention: int | None = None,
    ) -> None:
        super().__init__(embedding, recurrence, sentences=sentences)
        self.backward_reader = recurrence.like(embedding.embedding_dim)
        hidden, self.width = recurrence.hidden, 2 * recurrence.hidden
        size = hidden if attention is None else attention
        self.query = nn.Linear(hidden, size, bias=False)
        self.annotation = nn.Linear(self.width, size, bias=False)
        self.weight = nn.Linear(size, 1, bias=False)

    def prepared(self, contexts: Rows) -> Memory:
        """Annotations (B, n, 2H), and their share (B, n, A) in the scores."""
        inputs, mask = self.projected(contexts)
        forward = self.read(self.reader, inputs, mask)
        backward = self.read(self.backward_reader, inputs.flip(0), mask.flip(0))[::-1]
        both = zip(forward, backward, strict=True)
        annotations = torch.stack([torch.cat(pair, dim=1) for pair in both], dim=1).float()
        return memory_of(annotations * mask.T[:, :, None], mask.T, self.annotation, self.weight)

    def word_values(self, prepared: Memory, row: Tensor, query: Tensor) -> Tensor:
        """O(N n (A + H)) time."""
        return prepared.values(row, self.query(query))


class SourceStates(GivenContext):
    """States f_m of a bidirectional recurrence over the source sentence, weighted for each word.

    With the query q: a_m = softmax_m(q · f_m), value Σ a_m f_m (the dot product of Luong et al.
    2015, arXiv:1508.04025), where f_m = W [→f_m; ←f_m] has H columns. The recurrences are of the
    word level's kind and size, over embeddings of source words. Without words the value is 0. A
    context holds the states (B, M, H), zeros where padded, and a mask (B, M).
    """

    per_word = True
    averages = False
    side_information = ("source",)
    spells = ("source",)
    alone = True
    options = ("source_words",)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, source_words: int
    ) -> None:
        super().__init__(embedding, recurrence)
        columns, self.units = embedding.embedding_dim, recurrence.hidden
        self.width = self.units
        self.embedding = nn.Embedding(source_words, columns)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.ahead, self.back = recurrence.like(columns), recurrence.like(columns)
        self.join = nn.Linear(2 * self.units, self.units, bias=False)

    def start(self, batch: int) -> Rows:
        """No states."""
        states = self.get_buffer("empty").new_zeros(batch, 0, self.units)
        return Rows.of(states, states[:, :, 0].bool())

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """No states: those of a sentence are of no use to the next."""
        return self.start(len(contexts))

    def encoded(self, side: Rows) -> Rows:
        """States of source sentences; O(N (K + H) H) time for N words, none of them padding."""
        (words,) = side.tensors
        lengths = (words > 0).sum(dim=1)
        row, time, sizes = packed(lengths)
        mask = torch.arange(len(sizes), device=words.device) < lengths[:, None]
        states = self.get_buffer("empty").new_zeros(*mask.shape, self.units)
        if not len(row):
            return Rows.of(states, mask)
        start, alive = self.ahead.start(len(words)), tuple(sizes.tolist())

        def read(reader: Recurrence, place: Tensor) -> Tensor:
            inputs = reader.project(self.embedding(words[row, place] - 1))
            return reader.output(reader.unroll(inputs, start, alive))

        turned, begin = lengths[row] - 1 - time, sizes.cumsum(0) - sizes
        rank = torch.arange(len(row), device=row.device) - begin[time]
        both = torch.cat([read(self.ahead, time), read(self.back, turned)[begin[turned] + rank]], 1)
        joined = linear(both, self.join.weight).to(states.dtype)
        return Rows.of(states.index_put((row, time), joined), mask)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states of the sentence's source."""
        return encoded

    def word_values(self, prepared: Rows, row: Tensor, query: Tensor) -> Tensor:
        """O(B C M H) time, with C the largest number of positions of a context."""
        return self.attended(prepared, _places(row, len(prepared)), query)

    def attended(self, prepared: Rows, places: tuple[Tensor, int], query: Tensor) -> Tensor:
        """Values (N, H) of the states (B, M, H) at `_places` of the queries (N, H)."""
        (states, mask), (place, most) = prepared.tensors, places
        if not states.shape[1] or not len(query):
            return query.new_zeros(len(query), self.units)
        with torch.autocast(query.device.type, enabled=False):
            empty = states.new_zeros(len(states) * most, self.units)
            queries = empty.index_copy(0, place, query.to(states.dtype)).view(-1, most, self.units)
            energies = torch.bmm(queries, states.transpose(1, 2))
            shares = torch.softmax(energies.masked_fill(~mask[:, None], NEVER), dim=2)
            return torch.bmm(shares, states).flatten(0, 1).index_select(0, place)


class SourceStatesAndPreviousWords(BagContext, SourceStates):
    """`SourceStates`, to whose value for each word those of the previous target sentence add.

    With the query q, the value c of the source, and f_m = W_p e(w_m) of the words of that sentence:
    a_m = softmax_m(q · f_m), b = Σ a_m f_m, and c + σ(W_g [q; b] + b_g) ∘ Z b (the gated sum of
    Voita et al. 2018, arXiv:1805.10163, weights c, too). Z is zero at first, so that training
    begins with a model without context; without words b is 0. The embeddings e are those of the
    word level. Order 1. Tensors of a context: those of `SourceStates`, then the sorted words (B, M)
    as `BagContext` has them. Parameters beside those of `SourceStates`: HK + 3H² + H.
    """

    sentences = 1
    alone = False

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, source_words: int
    ) -> None:
        super().__init__(embedding, recurrence, source_words=source_words)
        self.target_embedding = embedding
        self.previous = nn.Linear(embedding.embedding_dim, self.units, bias=False)
        self.gate = nn.Linear(2 * self.units, self.units)
        self.projection = nn.Linear(self.units, self.units, bias=False)
        nn.init.zeros_(self.projection.weight)

    def start(self, batch: int) -> Rows:
        """No states, and no words."""
        empty = self.get_buffer("empty")
        return super().start(batch).beside(Rows.of(empty.new_zeros(batch, 0, dtype=torch.long)))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states of the sentence's source, and the words."""
        return encoded.beside(_parts(contexts)[1])

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """No states, and the words of the sentences just read."""
        return super().start(len(contexts)).beside(summary)

    def prepared(self, contexts: Rows) -> Rows:
        """The states of the source, and f_m (B, M, H), zeros where padded, with their mask."""
        of_source, rest = _parts(contexts)
        (words,) = rest.tensors
        mask = words > 0
        embedded = self.target_embedding((words - 1).clamp(min=0)) * mask[:, :, None]
        projected = linear(embedded.flatten(0, 1), self.previous.weight)
        states = projected.view(*words.shape, self.units).to(of_source.tensors[0].dtype)
        return of_source.beside(Rows.of(states, mask))

    def word_values(self, prepared: Rows, row: Tensor, query: Tensor) -> Tensor:
        """Values (N, H); O(B C (M + M′) H + N H²) time, M′ words of the previous sentence."""
        of_source, of_words = _parts(prepared)
        places = _places(row, len(prepared))
        c, b = (self.attended(states, places, query) for states in (of_source, of_words))
        asked = torch.cat([query.to(b.dtype), b], dim=1)
        gate = torch.sigmoid(linear(asked, self.gate.weight, self.gate.bias))
        return c + (gate * linear(b, self.projection.weight)).to(c.dtype)

    def added_parameters(self) -> list[nn.Parameter]:
        """W_p, W_g and b_g, and Z."""
        parts = self.previous, self.gate, self.projection
        return [parameter for part in parts for parameter in part.parameters()]


def _places(row: Tensor, contexts: int) -> tuple[Tensor, int]:
    """Places (N,) of queries in a table of C for each context, and C; row (N,): their contexts."""
    counts = torch.bincount(row, minlength=contexts)
    order, most = row.argsort(stable=True), int(counts.max()) if len(row) else 0
    rank = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row[order]]
    return torch.empty_like(row).index_copy(0, order, rank).add_(row * most), most


def _parts(rows: Rows) -> tuple[Rows, Rows]:
    """States of the source with their mask, and the other tensors."""
    return Rows(rows.tensors[:2]), Rows(rows.tensors[2:])
