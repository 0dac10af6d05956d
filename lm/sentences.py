"""Rows of contexts, and sentences that a recurrence has read, position by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F

from lm.recurrences import State, select


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """B rows of some tensors, each (B, …).

    Only the context that made a batch knows what its tensors hold. The second dimension of a
    tensor may be padded at its end, with zeros: `cat` pads the shorter ones.
    """

    tensors: tuple[Tensor, ...]

    @classmethod
    def of(cls, *tensors: Tensor) -> Self:
        """Rows of these tensors."""
        return cls(tensors)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """All rows of the parts, in order."""
        return cls(tuple(map(_cat, zip(*(part.tensors for part in parts), strict=True))))

    def __len__(self) -> int:
        return len(self.tensors[0])

    @property
    def device(self) -> torch.device:
        """Where the rows are."""
        return self.tensors[0].device

    @property
    def rest(self) -> Self:
        """The rows without their first tensor."""
        return type(self)(self.tensors[1:])

    def beside(self, other: Self) -> Self:
        """The tensors of these rows, then those of others."""
        return type(self)((*self.tensors, *other.tensors))

    def take(self, index: Tensor | slice) -> Self:
        """The rows at some positions, or where a mask holds."""
        return type(self)(tuple(tensor[index] for tensor in self.tensors))

    def repeat_interleave(self, times: int) -> Self:
        """Each row `times` times, one after the other."""
        repeated = (tensor.repeat_interleave(times, dim=0) for tensor in self.tensors)
        return type(self)(tuple(repeated))

    def detach(self) -> Self:
        """The rows without their gradient."""
        return type(self)(tuple(tensor.detach() for tensor in self.tensors))

    def to(self, device: torch.device) -> Self:
        """The rows on a device."""
        return type(self)(tuple(tensor.to(device) for tensor in self.tensors))

    def put(self, index: Tensor, other: Self) -> Self:
        """These rows with those at `index` (M,), or under a mask (B,), replaced by `other` (M)."""
        chosen = torch.arange(len(self), device=self.device)
        chosen[index] = torch.arange(len(other), device=self.device) + len(self)
        return self.cat([self, other]).take(chosen)


def _cat(tensors: Sequence[Tensor]) -> Tensor:
    if len({tensor.shape[1:] for tensor in tensors}) > 1:
        longest = max(tensor.shape[1] for tensor in tensors)
        ends = [[*[0, 0] * (t.ndim - 2), 0, longest - t.shape[1]] for t in tensors]
        tensors = [F.pad(t, end) for t, end in zip(tensors, ends, strict=True)]
    return torch.cat(list(tensors))


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """N positions of B sentences, each after `<s>` or another word; a prefix may be shared.

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
        first = (self.before < 0).view(-1, *[1] * (values.ndim - 1))
        return values[self.before.clamp(min=0)].masked_fill(first, 0.0)

    def sums(self, terms: Tensor) -> Tensor:
        """Sums (N, …) of whole numbers from each sentence's first position on; O(N log M) time."""
        at = self.before
        for _ in range(self.longest.bit_length()):  # sums of 2, 4, 8, … positions
            first, jump = at < 0, at.clamp(min=0)
            terms = terms + terms[jump].masked_fill(first.view(-1, *[1] * (terms.ndim - 1)), 0)
            at = torch.where(first, -1, at[jump])
        return terms

    def of_words(self) -> tuple[Tensor, Tensor]:
        """Positions (B, M) after each word in reading order, behind padding, and a mask (B, M)."""
        at = self.last
        places = at.new_empty(len(at), self.longest)
        for column in reversed(range(self.longest)):
            places[:, column] = at
            at = torch.where(self.before[at] >= 0, self.before[at], at)
        return places, self.before[places] >= 0


@dataclass(frozen=True, slots=True, eq=False)
class PositionStates:
    """What is kept of N positions that a recurrence has read.

    hidden: (N, H) top hidden states; recurrent: whole states (N rows), if the context carries them;
    layers: (N, L · H) hidden states of all layers, if it reads them; values: (N, D) of the context,
    if any entered with the words.
    """

    hidden: Tensor
    recurrent: State = ()
    layers: Tensor | None = None
    values: Tensor | None = None

    def take(self, index: Tensor) -> Self:
        """The positions at `index`."""
        layers, values = (None if x is None else x[index] for x in (self.layers, self.values))
        return type(self)(self.hidden[index], select(self.recurrent, index), layers, values)

    @classmethod
    def cat(cls, parts: Sequence[Self]) -> Self:
        """The positions of all parts, in order."""
        if len(parts) == 1:
            return parts[0]
        recurrent = zip(*(part.recurrent for part in parts), strict=True)
        layers = [part.layers for part in parts if part.layers is not None]
        values = [part.values for part in parts if part.values is not None]
        return cls(
            torch.cat([part.hidden for part in parts]),
            tuple(map(torch.cat, recurrent)),
            torch.cat(layers) if layers else None,
            torch.cat(values) if values else None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReadSentences:
    """B sentences as a recurrence read them, from which contexts take what they keep."""

    positions: Positions
    states: PositionStates

    @classmethod
    def unread(cls, positions: Positions) -> Self:
        """Sentences of which no recurrence has read more than the words: without hidden states."""
        words = positions.words
        return cls(positions, PositionStates(words.new_zeros(len(words), 0, dtype=torch.float32)))

    @property
    def hidden(self) -> Tensor:
        """Top hidden states (N, H) of the positions."""
        return self.states.hidden

    def last(self) -> PositionStates:
        """What is kept of the positions (B) after the last words."""
        return self.states.take(self.positions.last)

    def words(self) -> tuple[Tensor, Tensor]:
        """Ids (B, M) in reading order, padded at the beginning, and a mask of the words."""
        positions, mask = self.positions.of_words()
        return self.positions.words[positions], mask


def embedding_sums(weight: Tensor, words: Tensor, mask: Tensor) -> Tensor:
    """Sums (B, K) of rows of `weight` (V, K): words (B, M) where the mask holds, from the left."""
    counts = mask.sum(dim=1)
    return F.embedding_bag(words[mask], weight, counts.cumsum(0) - counts, mode="sum")
