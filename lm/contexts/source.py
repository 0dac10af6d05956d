"""Attention over the states of a source sentence, alone, and with what the document adds to it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.backend import linear
from lm.contexts import GivenContext
from lm.contexts.attention import NEVER
from lm.contexts.bags import BagContext
from lm.recurrences import Recurrence, packed
from lm.sentences import Rows


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
