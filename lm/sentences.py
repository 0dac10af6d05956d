"""Sentences that a recurrence has read: its words and hidden states, position by position."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lm.recurrence import State, select


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """N positions of B sentences, each after `<s>` or one more word; a prefix may be shared.

    words: (N,) id read last; before: (N,) previous position, −1 after `<s>`; context: (N,)
    row of the context in which it was read; last: (B,) position after each sentence's last
    word; longest: number of words of the longest sentence, or more.
    """

    words: Tensor
    before: Tensor
    context: Tensor
    last: Tensor
    longest: int

    def previous(self, values: Tensor) -> Tensor:
        """Values (N, …) of the previous position; zeros after `<s>`."""
        found = values[self.before.clamp(min=0)]
        return found.masked_fill((self.before < 0).view(-1, *[1] * (values.ndim - 1)), 0.0)

    def of_words(self) -> tuple[Tensor, Tensor]:
        """Positions (B, M) after each sentence's words in reading order, and where they count.

        Sentences begin with padding where the mask (B, M) is false.
        """
        at, columns, counts = self.last, [], []
        for _ in range(self.longest):
            before = self.before[at]
            columns.append(at)
            counts.append(before >= 0)
            at = torch.where(before >= 0, before, at)
        if not columns:
            nothing = self.last.new_zeros(len(self.last), 0)
            return nothing, nothing.bool()
        return torch.stack(columns[::-1], dim=1), torch.stack(counts[::-1], dim=1)


@dataclass(frozen=True, slots=True, eq=False)
class ReadSentences:
    """What a recurrence made of B sentences, for contexts to take what they keep.

    hidden: (N, H) top hidden states; recurrent: the whole states (N rows), if the context
    reads them; embedding: of the model's words.
    """

    positions: Positions
    hidden: Tensor
    recurrent: State | None
    embedding: nn.Embedding

    def last_hidden(self) -> Tensor:
        """Top hidden states (B, H) after the last words."""
        return self.hidden[self.positions.last]

    def last_states(self) -> State:
        """Whole recurrent states (B rows) after the last words."""
        if self.recurrent is None:
            raise TypeError("only a context that reads states receives them")
        return select(self.recurrent, self.positions.last)

    def words(self) -> tuple[Tensor, Tensor]:
        """Ids (B, M) in reading order, padded at the beginning, and a mask of the words."""
        positions, mask = self.positions.of_words()
        return self.positions.words[positions], mask

    def hidden_states(self) -> tuple[Tensor, Tensor]:
        """Top hidden states (B, M, H) after each word, and a mask as of `words`."""
        positions, mask = self.positions.of_words()
        return self.hidden[positions], mask

    def summed_embeddings(self) -> Tensor:
        """Sum (B, K) of the embeddings of each sentence's words, added in reading order."""
        words, mask = self.words()
        return embedding_sums(self.embedding.weight, words, mask)


def embedding_sums(weight: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    """Sums (B, K) of rows of `weight` (V, K): words (B, M) where the mask holds, from the left."""
    counts = mask.sum(dim=1)
    return F.embedding_bag(words[mask], weight, counts.cumsum(0) - counts, mode="sum")
