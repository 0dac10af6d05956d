"""Attention over the states of a source sentence, alone or with what the document adds to it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lm.backend import linear
from lm.contexts import GivenContext
from lm.contexts.attention import NEVER
from lm.contexts.document import DocumentRecurrence, SourceAndPrevious
from lm.recurrences import Recurrence
from lm.sentences import ReadSentences, Rows


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
    options: ClassVar[tuple[str, ...]] = ("source_words",)

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
        """No states: those of a sentence are of no use to the next one."""
        return self.start(len(contexts))

    def encoded(self, side: Rows) -> Rows:
        """States of source sentences; O(N (K + H) H) time for N words, none of them padding."""
        lengths = (side.tensors[0] > 0).sum(dim=1)
        order = torch.argsort(lengths, descending=True, stable=True)
        words, lengths = side.tensors[0][order], lengths[order, None]
        longest = int(lengths.max()) if len(lengths) else 0
        time = torch.arange(longest, device=words.device)
        present = time < lengths
        mask = torch.zeros_like(present).index_copy(0, order, present)
        states = self.get_buffer("empty").new_zeros(*mask.shape, self.units)
        if not longest:
            return Rows.of(states, mask)
        sizes = present.sum(dim=0)
        at, row = present.T.nonzero(as_tuple=True)  # packed by time steps
        turned = lengths[row, 0] - 1 - at
        start, alive = self.ahead.start(len(words)), tuple(sizes.tolist())

        def read(reader: Recurrence, place: Tensor) -> Tensor:
            inputs = reader.project(self.embedding(words[row, place] - 1))
            return reader.output(reader.unroll(inputs, start, alive))

        back = read(self.back, turned)[(sizes.cumsum(0) - sizes)[turned] + row]
        both = torch.cat([read(self.ahead, at), back], dim=1)
        joined = linear(both, self.join.weight).to(states.dtype)
        return Rows.of(states.index_put((order[row], at), joined), mask)

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states of the sentence's source."""
        return encoded

    def word_values(self, prepared: Rows, row: Tensor, query: Tensor) -> Tensor:
        """O(B C M H) time, with C the largest number of positions of a context."""
        states, mask = prepared.tensors
        if not states.shape[1] or not len(query):
            return query.new_zeros(len(query), self.units)
        counts = torch.bincount(row, minlength=len(states))
        order, most = row.argsort(stable=True), int(counts.max())
        rank = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row[order]]
        place = torch.empty_like(row).index_copy(0, order, rank).add_(row * most)
        with torch.autocast(query.device.type, enabled=False):
            empty = states.new_zeros(len(states) * most, self.units)
            queries = empty.index_copy(0, place, query.to(states.dtype)).view(-1, most, self.units)
            energies = torch.bmm(queries, states.transpose(1, 2))
            shares = torch.softmax(energies.masked_fill(~mask[:, None], NEVER), dim=2)
            return torch.bmm(shares, states).flatten(0, 1).index_select(0, place)


class SourceStatesAndDocument(SourceStates):
    """`SourceStates` of the sentence's source for words, and beside it what adds to the logits.

    That is Z [h_{i−1}; g(w_{i−1})], the vectors of `SourceAndPrevious` of earlier sentences alone:
    h of source sentences (`previous`), g of the target sentence before. The gate Z, a matrix of H
    rows, is zero at first, so that training begins with a model without context. Source words have
    one embedding. Order 1. Tensors of a context: those of `SourceStates`, then those of
    `SourceAndPrevious`.
    """

    sentences = 1
    alone = False
    adds_value = True
    options = (*SourceStates.options, *DocumentRecurrence.options)

    def __init__(
        self, embedding: nn.Embedding, recurrence: Recurrence, *, source_words: int, **named: Any
    ) -> None:
        super().__init__(embedding, recurrence, source_words=source_words)
        named |= {"source_words": source_words, "source_context": "previous"}
        self.document = SourceAndPrevious(embedding, recurrence, **named)
        self.document.source.of_document.encoder.embedding = self.embedding
        self.merges_sentences = self.document.merges_sentences
        self.gate = nn.Linear(self.document.width, self.units, bias=False)
        nn.init.zeros_(self.gate.weight)
        self.width += self.units

    def start(self, batch: int) -> Rows:
        """No states of the source, and the start of the document."""
        return super().start(batch).beside(self.document.start(batch))

    def summary(self, sentences: ReadSentences) -> Rows:
        """The vectors of target sentences."""
        return self.document.summary(sentences)

    def encoded(self, side: Rows) -> Rows:
        """States of the source sentences, and their vectors."""
        return super().encoded(side).beside(self.document.encoded(side))

    def enter(self, contexts: Rows, encoded: Rows) -> Rows:
        """The states of the source, and the source context entered."""
        (of_words, of_source), (_, own) = _parts(encoded), _parts(contexts)
        return of_words.beside(self.document.enter(own, of_source))

    def advance(self, contexts: Rows, summary: Rows) -> Rows:
        """No states, and the vectors of the sentences just read."""
        own = self.document.advance(_parts(contexts)[1], summary)
        return super().start(len(contexts)).beside(own)

    def value(self, contexts: Rows) -> Tensor:
        """What is added to the logits of a sentence, (B, H)."""
        return linear(self.document.value(_parts(contexts)[1]), self.gate.weight).float()

    def prepared(self, contexts: Rows) -> Rows:
        """The states of the source, and the values of the sentences."""
        return _parts(contexts)[0].beside(Rows.of(self.value(contexts)))

    def word_values(self, prepared: Rows, row: Tensor, query: Tensor) -> Tensor:
        """Those of `SourceStates`, (N, H), with the value of the sentence beside them."""
        states, rest = _parts(prepared)
        return torch.cat([super().word_values(states, row, query), rest.tensors[0][row]], dim=1)

    def added_parameters(self) -> list[nn.Parameter]:
        """Those of the document's vectors and of the gate, without the embeddings."""
        encoders = self.document.previous.encoder, self.document.source.of_document.encoder
        shared = {id(encoder.embedding.weight) for encoder in encoders}
        own = (*self.document.parameters(), *self.gate.parameters())
        return [parameter for parameter in own if id(parameter) not in shared]

    def sentence_key(self, words: NDArray[np.int32]) -> bytes:
        """That of the target side."""
        return self.document.sentence_key(words)


def _parts(rows: Rows) -> tuple[Rows, Rows]:
    """States of the source and their mask, and the other tensors."""
    return Rows(rows.tensors[:2]), Rows(rows.tensors[2:])
