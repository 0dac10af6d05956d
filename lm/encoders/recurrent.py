"""Sentences read from left to right by a recurrence of their own."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lm.encoders import Encoder
from lm.recurrences import Recurrence


class RecurrentEncoder(Encoder):
    """g(w): top hidden state (B, H) of a recurrence after the last word.

    The recurrence is of the word level's kind and size, with weights of its own; it reads neither
    `<s>` nor `</s>`. Without words the vector is that of the state before any input.
    Parameters: those of the recurrence over K inputs. O(B M (H + K) H) time.
    """

    def __init__(self, embedding: nn.Embedding, recurrence: Recurrence) -> None:
        super().__init__(embedding, recurrence)
        self.width = recurrence.hidden
        self.reader = recurrence.like(embedding.embedding_dim)

    def encode(self, words: Tensor, mask: Tensor) -> Tensor:
        """Last hidden states (B, H)."""
        reader, lengths = self.reader, mask.sum(dim=1)
        start = reader.start(len(words))
        order = torch.argsort(lengths, descending=True, stable=True)
        alive = torch.arange(words.shape[1], device=words.device) < lengths[order, None]
        sizes = alive.sum(dim=0)
        sizes = sizes[sizes > 0]
        if not len(sizes):
            return reader.output(start)
        # from padding at the beginning to packed sentences, the longest first
        aligned = torch.zeros_like(words)
        aligned[alive] = words[order][mask[order]]
        projected = reader.project(self.embedding(aligned.T[alive.T]))
        states = reader.unroll(projected, start, tuple(sizes.tolist()))
        first = sizes.cumsum(0) - sizes  # position of each time step's first sentence
        ends = first[lengths[order].clamp(min=1) - 1] + torch.arange(
            len(words), device=words.device
        )
        read = int(sizes[0])  # sentences with words
        last = torch.cat([reader.output(states)[ends[:read]], reader.output(start)[read:]])
        return last[torch.argsort(order)]
